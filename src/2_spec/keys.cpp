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

int64_t Keys::in_range(std::string_view key, int64_t value, Range range) const {
  if (value < range.low || value > range.high)
    refuse(key, fmt::format("{}", value), fmt::format("{} to {}", range.low, range.high));
  return value;
}

std::optional<int64_t> Keys::integer(std::string_view key, Range range) {
  asked_.insert(full(key));
  const auto value = checkpoint_.integer(full(key));
  if (!value) return std::nullopt;
  return in_range(key, *value > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(*value), range);
}

std::optional<double> Keys::real(std::string_view key) {
  asked_.insert(full(key));
  const auto value = checkpoint_.real(full(key));
  if (!value) return std::nullopt;
  if (!std::isfinite(*value)) refuse(key, fmt::format("{}", *value), "a finite number");
  return checkpoint_.find(full(key))->type == MetaType::F32 ? decimal(float(*value)) : *value;
}

std::optional<double> Keys::positive(std::string_view key) {
  const auto value = real(key);
  if (value && *value <= 0) refuse(key, fmt::format("{}", *value), "a number over 0");
  return value;
}

std::optional<bool> Keys::boolean(std::string_view key) {
  asked_.insert(full(key));
  return checkpoint_.boolean(full(key));
}

std::optional<std::string_view> Keys::string(std::string_view key) {
  asked_.insert(full(key));
  return checkpoint_.string(full(key));
}

bool Keys::is_array(std::string_view key) const {
  const MetaEntry* entry = checkpoint_.find(full(key));
  return entry && entry->type == MetaType::Array;
}

std::optional<std::vector<int64_t>> Keys::by_layer(std::string_view key, int64_t layers, Range range) {
  if (!is_array(key)) {
    const auto value = integer(key, range);
    if (!value) return std::nullopt;
    return std::vector<int64_t>(size_t(layers), *value);
  }
  asked_.insert(full(key));
  auto values = *checkpoint_.integers(full(key));
  if (int64_t(values.size()) != layers)
    refuse(key, fmt::format("{} values", values.size()), fmt::format("{} values", layers));
  for (int64_t value : values) in_range(key, value, range);
  return values;
}

int64_t Keys::required_integer(std::string_view key, Range range) {
  const auto value = integer(key, range);
  if (!value) refuse(key, "", "an integer");
  return *value;
}

std::vector<int64_t> Keys::required_by_layer(std::string_view key, int64_t layers, Range range) {
  auto values = by_layer(key, layers, range);
  if (!values) refuse(key, "", "an integer, or one for each block");
  return *std::move(values);
}

double Keys::required_positive(std::string_view key) {
  const auto value = positive(key);
  if (!value) refuse(key, "", "a float");
  return *value;
}

void Keys::refuse(std::string_view key, const std::string& found, const std::string& expected) const {
  const MetaEntry* entry = checkpoint_.find(full(key));
  const Shard& shard = checkpoint_.shards.front();
  if (entry)
    throw CheckpointError(printable(shard.path, 4096), entry->offset, fmt::format("'{}' = {}", full(key), found),
                          expected);
  // A key that is missing is missed where the header ends.
  throw CheckpointError(printable(shard.path, 4096), shard.data_start, fmt::format("no key '{}'", full(key)), expected);
}

void Keys::refuse_the_rest(Refusals& refusals) const {
  std::vector<std::string> unknown;
  for (const MetaEntry& entry : checkpoint_.metadata) {
    if (!entry.key.starts_with(prefix_) || asked_.contains(entry.key) || is_off(entry)) continue;
    const auto key = entry.key.substr(prefix_.size());
    if (std::find(std::begin(kHarmless), std::end(kHarmless), key) == std::end(kHarmless))
      unknown.push_back(fmt::format("'{}'", printable(entry.key)));
  }
  if (!unknown.empty())
    refusals.add(NotYetError(fmt::format("{}: no known meaning for {}; left out, the model's text would differ",
                                         unknown.size() == 1 ? "a key" : "keys", fmt::join(unknown, ", "))));
}

}  // namespace lane
