// The parts of reading a checkpoint, in the order of a file.
#pragma once
#include <bit>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cursor.h"
#include "lane/gguf.h"

namespace lane {

static_assert(std::endian::native == std::endian::little, "GGUF's values are read as the machine's own");

/// Counts of a file's header: magic, version and both counts checked.
struct Header {
  uint32_t version = 0;
  uint64_t tensors = 0, entries = 0;
};
Header read_header(Cursor& in);

/// Names to positions. Its hash is seeded anew in every run, so that no file can be written to collide.
struct NameHash {
  size_t operator()(std::string_view name) const;
};
using NameIndex = std::unordered_map<std::string_view, size_t, NameHash>;

struct Checkpoint::Index {
  NameIndex metadata, tensors;
};

/// Metadata of one file, in its order.
struct Metadata {
  std::vector<MetaEntry> entries;
  NameIndex index;
  const MetaEntry* find(std::string_view key) const;
};
Metadata read_metadata(Cursor& in, uint64_t count);

/// One decoded element of an array.
MetaValue array_element(MetaType type, std::span<const std::byte> bytes);
/// The first elements of an array, `most` at the most; none of an array of arrays.
std::vector<MetaValue> first_elements(const MetaArray& array, uint64_t most);
/// The double of the shortest decimal that gives this float back: 0.1 for 0.100000001490116.
double shortest_real(double value);
/// Bytes of a value of this type; 0 for strings and arrays, whose sizes differ.
uint64_t fixed_size(MetaType type);
std::string_view type_name(MetaType type);  // "u32"

/// Tensor infos of one file, appended to `tensors`; then `shard.data_start` is set and every tensor is known to lie in
/// the file.
void read_tensors(Cursor& in, uint64_t count, int shard_number, Shard& shard, std::vector<TensorInfo>& tensors,
                  NameIndex& index);

}  // namespace lane
