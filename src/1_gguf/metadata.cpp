// Header and metadata: magic, version, counts, then key, type and value of each entry.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "parts.h"

namespace lane {
namespace {

constexpr std::string_view kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};
constexpr uint64_t kTypeSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr uint64_t kTypes = std::size(kTypeNames);
// A length and its bytes, a type, a value: the least that an entry and a tensor info can take.
constexpr uint64_t kSmallestEntry = 8 + 1 + 4 + 1, kSmallestInfo = 8 + 1 + 4 + 4 + 8;
constexpr uint64_t kLongestKey = 65535;
constexpr size_t kDeepestArray = 8;
constexpr uint64_t kLongestArray = uint64_t(1) << 30;

std::string quoted(std::string_view text) { return fmt::format("'{}'", printable(text)); }

[[noreturn]] void refuse_magic(const Cursor& in, std::string_view start) {
  if (start.starts_with("FUGG")) in.fail(0, "a big-endian GGUF file", "a little-endian one");
  if (start.starts_with("version https://git-lfs"))
    in.fail(0, "a Git LFS pointer, the text that stands for a file not fetched", "the file itself: run `git lfs pull`");
  if (start.empty()) in.fail(0, "an empty file", "the magic 'GGUF'");
  in.fail(0, quoted(start.substr(0, 16)), "the magic 'GGUF'");
}

void check_version(const Cursor& in, uint32_t version) {
  if (version == 2 || version == 3) return;
  // The version is a small number: in its high half alone it was written by a machine of the other byte order.
  if (version != 0 && (version & 0xFFFF) == 0) in.fail(4, "a big-endian GGUF file", "a little-endian one");
  in.fail(4, fmt::format("GGUF version {}", version), "version 2 or 3");
}

uint64_t read_count(Cursor& in, std::string_view what, uint64_t smallest) {
  const uint64_t at = in.at(), count = in.take<uint64_t>(fmt::format("the number of {}", what));
  if (count > in.left() / smallest)
    in.fail(at, fmt::format("{} {}", count, what),
            fmt::format("at most {}, as {} bytes follow", in.left() / smallest, in.left()));
  return count;
}

MetaType read_type(Cursor& in, const std::string& what) {
  const uint64_t at = in.at();
  const auto type = in.take<uint32_t>(what);
  if (type >= kTypes) in.fail(at, fmt::format("{} {}", what, type), fmt::format("a type from 0 to {}", kTypes - 1));
  return MetaType(type);
}

struct ArrayHead {
  MetaType element;
  uint64_t count;
};

ArrayHead read_array_head(Cursor& in, const std::string& what) {
  const MetaType element = read_type(in, "the element type of " + what);
  const uint64_t at = in.at(), count = in.take<uint64_t>("the length of " + what);
  // An empty string is its length, an empty array its type and length.
  const uint64_t smallest = element == MetaType::String ? 8 : element == MetaType::Array ? 12 : fixed_size(element);
  const uint64_t most = std::min(in.left() / smallest, kLongestArray);
  if (count > most)
    in.fail(at, fmt::format("{} elements of {} in {}", count, type_name(element), what),
            fmt::format("at most {}, as {} bytes follow", most, in.left()));
  return {element, count};
}

/// Moves past the elements of an array. Arrays of arrays have an own stack of bounded depth, not the machine's.
void skip_elements(Cursor& in, ArrayHead head, const std::string& what) {
  std::vector<ArrayHead> open = {head};
  const std::string string = "a string of " + what;
  while (!open.empty()) {
    ArrayHead& array = open.back();
    if (array.element == MetaType::Array && array.count > 0) {
      array.count--;
      if (open.size() == kDeepestArray)
        in.fail(in.at(), fmt::format("arrays {} deep in {}", open.size() + 1, what),
                fmt::format("at most {}", kDeepestArray));
      open.push_back(read_array_head(in, what));
      continue;
    }
    if (array.element == MetaType::String)
      for (uint64_t i = 0; i < array.count; i++) in.take_string(string);
    else if (array.element != MetaType::Array)
      in.take_bytes(array.count * fixed_size(array.element), what);
    open.pop_back();
  }
}

MetaValue read_value(Cursor& in, MetaType type, const std::string& what) {
  if (type == MetaType::String) return in.take_string(what);
  if (type != MetaType::Array) return array_element(type, in.take_bytes(fixed_size(type), what));
  const ArrayHead head = read_array_head(in, what);
  MetaArray array{head.element, head.count, in.at(), {}};
  skip_elements(in, head, what);
  array.bytes = in.since(array.offset);
  return array;
}

MetaEntry read_entry(Cursor& in, uint64_t number) {
  MetaEntry entry;
  entry.offset = in.at();
  entry.key = in.take_string(fmt::format("key {} of the metadata", number));
  if (entry.key.empty()) in.fail(entry.offset, "an empty key", "a name");
  if (entry.key.size() > kLongestKey)
    in.fail(entry.offset, fmt::format("a key of {} bytes, {}", entry.key.size(), quoted(entry.key)),
            fmt::format("at most {}", kLongestKey));
  // Where a C string ends, such a key would pass for another one.
  if (entry.key.find('\0') != entry.key.npos) in.fail(entry.offset, "a NUL in key " + quoted(entry.key), "text");
  const std::string what = "key " + quoted(entry.key);
  entry.type = read_type(in, "the type of " + what);
  entry.value = read_value(in, entry.type, what);
  return entry;
}

template <class T>
T as(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace

uint64_t fixed_size(MetaType type) { return kTypeSizes[size_t(type)]; }
std::string_view type_name(MetaType type) { return kTypeNames[size_t(type)]; }

std::string type_name(const MetaEntry& entry) {
  const auto* array = std::get_if<MetaArray>(&entry.value);
  return array ? fmt::format("array of {}", type_name(array->element)) : std::string(type_name(entry.type));
}

MetaValue array_element(MetaType type, std::span<const std::byte> bytes) {
  switch (type) {
    case MetaType::U8:
      return uint64_t(as<uint8_t>(bytes));
    case MetaType::I8:
      return int64_t(as<int8_t>(bytes));
    case MetaType::U16:
      return uint64_t(as<uint16_t>(bytes));
    case MetaType::I16:
      return int64_t(as<int16_t>(bytes));
    case MetaType::U32:
      return uint64_t(as<uint32_t>(bytes));
    case MetaType::I32:
      return int64_t(as<int32_t>(bytes));
    case MetaType::F32:
      return double(as<float>(bytes));
    case MetaType::Bool:
      return as<uint8_t>(bytes) != 0;
    case MetaType::U64:
      return as<uint64_t>(bytes);
    case MetaType::I64:
      return as<int64_t>(bytes);
    case MetaType::F64:
      return as<double>(bytes);
    case MetaType::String:
    case MetaType::Array:
      break;
  }
  throw InternalError(fmt::format("a {} has no fixed size", type_name(type)));
}

std::vector<MetaValue> first_elements(const MetaArray& array, uint64_t most) {
  std::vector<MetaValue> elements;
  if (array.element == MetaType::Array) return elements;
  Cursor in("", array.bytes);
  const uint64_t size = fixed_size(array.element);
  for (uint64_t i = 0; i < std::min(array.count, most); i++)
    elements.push_back(size ? array_element(array.element, in.take_bytes(size, "an element"))
                            : in.take_string("an element"));
  return elements;
}

double shortest_real(double value) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{}", float(value));
  double shortest = 0;
  std::from_chars(text.data(), text.data() + text.size(), shortest);
  return shortest;
}

size_t NameHash::operator()(std::string_view name) const {
  static const uint64_t seed = uint64_t(std::random_device{}()) << 32 | std::random_device{}();
  return XXH3_64bits_withSeed(name.data(), name.size(), seed);
}

const MetaEntry* Metadata::find(std::string_view key) const {
  const auto at = index.find(key);
  return at == index.end() ? nullptr : &entries[at->second];
}

Header read_header(Cursor& in) {
  const auto start = in.take_bytes(std::min<uint64_t>(in.left(), 4), "the magic");
  const std::string_view magic(reinterpret_cast<const char*>(start.data()), start.size());
  if (magic != "GGUF") {
    const auto more = in.take_bytes(std::min<uint64_t>(in.left(), 20), "text");
    refuse_magic(in, {magic.data(), magic.size() + more.size()});
  }
  Header header;
  header.version = in.take<uint32_t>("the version");
  check_version(in, header.version);
  header.tensors = read_count(in, "tensors", kSmallestInfo);
  header.entries = read_count(in, "metadata entries", kSmallestEntry);
  return header;
}

Metadata read_metadata(Cursor& in, uint64_t count) {
  Metadata metadata;
  for (uint64_t i = 0; i < count; i++) {
    const MetaEntry entry = read_entry(in, i);
    const auto [first, added] = metadata.index.try_emplace(entry.key, i);
    if (!added)
      in.fail(entry.offset, "key " + quoted(entry.key) + " again",
              fmt::format("it once: it stands at byte {}", metadata.entries[first->second].offset));
    metadata.entries.push_back(entry);
  }
  return metadata;
}

}  // namespace lane
