#include "keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lane/error.h"

namespace lane {
namespace {

// Keys of many architectures that change nothing in a text model's step.
constexpr std::string_view kHarmless[] = {
    "vocab_size",  // checked with the embedding table
    "tensor_data_layout",
    "attention.layer_norm_epsilon",  // the norms' own is read, whichever that is
    "attention.layer_norm_rms_epsilon",
    "rope.scaling.finetuned",  // whether a scaling was trained in; architectures for which it means more read it
};

// Keys that change nothing while they hold the value that switches them off.
bool is_off(const MetaEntry& entry) {
  if (const auto* number = std::get_if<uint64_t>(&entry.value)) return *number == 0;
  if (const auto* number = std::get_if<int64_t>(&entry.value)) return *number == 0;
  if (const auto* number = std::get_if<double>(&entry.value)) return *number == 0;
  if (const auto* flag = std::get_if<bool>(&entry.value)) return !*flag;
  return false;
}

// The decimal that its author wrote: the shortest that rounds to the file's 32-bit float.
double decimal(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

}  // namespace

bool Keys::in_range(std::string_view key, int64_t value, Range range) const {
  if (value >= range.low && value <= range.high) return true;
  refuse(key, fmt::format("{}", value), fmt::format("{} to {}", range.low, range.high));
  return false;
}

std::optional<Size> Keys::integer(std::string_view key, Range range) {
  asked_.insert(full(key));
  const auto value = refusals_.attempt([&] { return checkpoint_.integer(full(key)); });
  if (!value) return has(key) ? std::optional(Size::unknown()) : std::nullopt;
  const int64_t number = *value > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(*value);
  return in_range(key, number, range) ? Size(number) : Size::unknown();
}

std::optional<double> Keys::real(std::string_view key) {
  asked_.insert(full(key));
  const auto value = refusals_.attempt([&] { return checkpoint_.real(full(key)); });
  if (!value) return std::nullopt;
  if (!std::isfinite(*value)) {
    refuse(key, fmt::format("{}", *value), "a finite number");
    return std::nullopt;
  }
  return checkpoint_.find(full(key))->type == MetaType::F32 ? decimal(float(*value)) : *value;
}

std::optional<double> Keys::positive(std::string_view key) {
  const auto value = real(key);
  if (!value || *value > 0) return value;
  refuse(key, fmt::format("{}", *value), "a number over 0");
  return std::nullopt;
}

std::optional<double> Keys::not_negative(std::string_view key) {
  const auto value = real(key);
  if (!value || *value >= 0) return value;
  refuse(key, fmt::format("{}", *value), "0 or more");
  return std::nullopt;
}

std::optional<bool> Keys::boolean(std::string_view key) {
  asked_.insert(full(key));
  return refusals_.attempt([&] { return checkpoint_.boolean(full(key)); });
}

std::optional<std::string_view> Keys::string(std::string_view key) {
  asked_.insert(full(key));
  return refusals_.attempt([&] { return checkpoint_.string(full(key)); });
}

bool Keys::is_array(std::string_view key) const {
  const MetaEntry* entry = checkpoint_.find(full(key));
  return entry && entry->type == MetaType::Array;
}

std::optional<std::vector<Size>> Keys::by_layer(std::string_view key, Size layers, Range range) {
  if (is_array(key)) return array(key, layers, range);
  const auto value = integer(key, range);
  if (!value) return std::nullopt;
  return std::vector<Size>(size_t(layers.value()), *value);
}

std::optional<std::vector<Size>> Keys::array(std::string_view key, Size count, Range range) {
  asked_.insert(full(key));
  if (!has(key)) return std::nullopt;
  std::vector<Size> sizes(size_t(count.value()), Size::unknown());
  const auto values = refusals_.attempt([&] { return checkpoint_.integers(full(key)); });
  if (!values) return sizes;
  if (values->size() != sizes.size()) {
    refuse(key, fmt::format("{} values", values->size()), fmt::format("{} values", sizes.size()));
    return sizes;
  }
  for (size_t i = 0; i < sizes.size(); ++i)
    if (in_range(key, (*values)[i], range)) sizes[i] = (*values)[i];
  return sizes;
}

Size Keys::required_integer(std::string_view key, Range range) {
  const auto value = integer(key, range);
  return value ? *value : refuse_missing(key, "an integer");
}

std::vector<Size> Keys::required_by_layer(std::string_view key, Size layers, Range range) {
  if (auto values = by_layer(key, layers, range)) return *std::move(values);
  return std::vector(size_t(layers.value()), refuse_missing(key, "an integer, or one for each block"));
}

double Keys::required_positive(std::string_view key) {
  if (const auto value = positive(key)) return *value;
  if (!has(key)) refuse(key, "", "a float");
  return 1;
}

Size Keys::refuse_missing(std::string_view key, const std::string& expected) const {
  if (!has(key)) refuse(key, "", expected);
  return Size::unknown();
}

Size Keys::refuse_size(std::string_view key, const std::string& found, const std::string& expected) const {
  refuse(key, found, expected);
  return Size::unknown();
}

void Keys::refuse_unread(std::string_view key, const std::string& found) const {
  refusals_.add(NotYetError(fmt::format("'{}' = {}: the architecture has no such option", full(key), found)));
}

void Keys::refuse_meaning(std::string_view key, const std::string& meaning) const {
  refusals_.add(
      NotYetError(fmt::format("'{}' = {}: {}", full(key), value_text(*checkpoint_.find(full(key))), meaning)));
}

void Keys::refuse(std::string_view key, const std::string& found, const std::string& expected) const {
  const MetaEntry* entry = checkpoint_.find(full(key));
  const Shard& shard = checkpoint_.shards.front();
  // A key that is missing is missed where the header ends.
  refusals_.add(CheckpointError(
      printable(shard.path, 4096), entry ? entry->offset : shard.data_start,
      entry ? fmt::format("'{}' = {}", full(key), found) : fmt::format("no key '{}'", full(key)), expected));
}

void Keys::refuse_the_rest() const {
  std::vector<std::string> unknown;
  for (const MetaEntry& entry : checkpoint_.metadata) {
    if (!entry.key.starts_with(prefix_) || asked_.contains(entry.key) || is_off(entry)) continue;
    const auto key = entry.key.substr(prefix_.size());
    if (std::find(std::begin(kHarmless), std::end(kHarmless), key) == std::end(kHarmless))
      unknown.push_back(fmt::format("'{}' = {}", printable(entry.key), value_text(entry)));
  }
  if (!unknown.empty())
    refusals_.add(NotYetError(fmt::format("{}: no known meaning for {}; left out, the model's text would differ",
                                          unknown.size() == 1 ? "a key" : "keys", fmt::join(unknown, ", "))));
}

}  // namespace lane
