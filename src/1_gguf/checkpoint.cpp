// Look-ups in a checkpoint that was read.
#include <fmt/format.h>

#include "mapped_file.h"
#include "parts.h"

namespace lane {
namespace {

[[noreturn]] void wrong_type(const Checkpoint& checkpoint, const MetaEntry& entry, std::string_view accepted) {
  throw CheckpointError(printable(checkpoint.shards[0].path, 4096), entry.offset,
                        fmt::format("key '{}' of type {}", printable(entry.key), type_name(entry)),
                        std::string(accepted));
}

/// An integer of any width as int64_t; a u64 above its range is no value that a model has.
std::optional<int64_t> as_signed(const MetaValue& value) {
  if (const auto* natural = std::get_if<uint64_t>(&value))
    return *natural <= uint64_t(INT64_MAX) ? std::optional(int64_t(*natural)) : std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  return std::nullopt;
}

/// Calls `use` with each element of an array whose elements have a fixed size.
template <class Use>
void for_each_element(const MetaArray& array, Use use) {
  const uint64_t size = fixed_size(array.element);
  for (uint64_t i = 0; i < array.count; i++) use(array_element(array.element, array.bytes.subspan(i * size, size)));
}

bool is_float(MetaType type) { return type == MetaType::F32 || type == MetaType::F64; }
bool is_integer(MetaType type) { return fixed_size(type) != 0 && !is_float(type) && type != MetaType::Bool; }

}  // namespace

const MetaEntry* Checkpoint::find(std::string_view key) const {
  const auto at = index->metadata.find(key);
  return at == index->metadata.end() ? nullptr : &metadata[at->second];
}

const TensorInfo* Checkpoint::tensor(std::string_view name) const {
  const auto at = index->tensors.find(name);
  return at == index->tensors.end() ? nullptr : &tensors[at->second];
}

std::span<const std::byte> Checkpoint::data(const TensorInfo& t) const {
  const Shard& shard = shards[size_t(t.shard)];
  shard.file->check_size();
  return shard.bytes.subspan(t.offset, t.bytes);
}

std::optional<uint64_t> Checkpoint::integer(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* natural = std::get_if<uint64_t>(&entry->value)) return *natural;
  const auto* integer = std::get_if<int64_t>(&entry->value);
  if (!integer) wrong_type(*this, *entry, "an integer");
  if (*integer < 0)
    throw CheckpointError(printable(shards[0].path, 4096), entry->offset,
                          fmt::format("key '{}' of {}", printable(key), *integer), "0 or more");
  return uint64_t(*integer);
}

std::optional<int64_t> Checkpoint::signed_integer(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto value = as_signed(entry->value)) return value;
  wrong_type(*this, *entry, "an integer below 2^63");
}

std::optional<double> Checkpoint::real(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<double>(&entry->value)) return *value;
  wrong_type(*this, *entry, "f32 or f64");
}

std::optional<bool> Checkpoint::boolean(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&entry->value)) return *value;
  wrong_type(*this, *entry, "bool");
}

std::optional<std::string_view> Checkpoint::string(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<std::string_view>(&entry->value)) return *value;
  wrong_type(*this, *entry, "string");
}

std::optional<std::vector<int64_t>> Checkpoint::integers(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  const auto* array = std::get_if<MetaArray>(&entry->value);
  if (!array || !(is_integer(array->element) || array->element == MetaType::Bool))
    wrong_type(*this, *entry, "an array of integers or bools");
  std::vector<int64_t> values;
  for_each_element(*array, [&](const MetaValue& element) {
    const auto* flag = std::get_if<bool>(&element);
    const auto value = flag ? std::optional<int64_t>(*flag) : as_signed(element);
    if (!value) wrong_type(*this, *entry, "an array of integers below 2^63");
    values.push_back(*value);
  });
  return values;
}

std::optional<std::vector<double>> Checkpoint::reals(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  const auto* array = std::get_if<MetaArray>(&entry->value);
  if (!array || !is_float(array->element)) wrong_type(*this, *entry, "an array of f32 or f64");
  std::vector<double> values;
  for_each_element(*array, [&](const MetaValue& element) { values.push_back(std::get<double>(element)); });
  return values;
}

std::optional<std::vector<std::string_view>> Checkpoint::strings(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (!entry) return std::nullopt;
  const auto* array = std::get_if<MetaArray>(&entry->value);
  if (!array || array->element != MetaType::String) wrong_type(*this, *entry, "an array of strings");
  std::vector<std::string_view> values;
  Cursor in(printable(shards[0].path, 4096), array->bytes);
  for (uint64_t i = 0; i < array->count; i++) values.push_back(in.take_string("a string"));
  return values;
}

}  // namespace lane
