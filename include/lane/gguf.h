// Pass 1: a GGUF checkpoint, checked. Decides nothing: header, metadata and tensor infos are read and verified; tensor
// data is mapped and never copied. Versions 2 and 3, little-endian, one file or the shards of a split one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lane/formats.h"

namespace lane {

class MappedFile;  // RAII read-only mapping

/// GGUF's metadata value types, with its numbers.
enum class MetaType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

/// An array of the metadata, left in the file: elements are decoded on demand.
struct MetaArray {
  MetaType element = MetaType::U8;
  uint64_t count = 0;
  uint64_t offset = 0;               // of the first element, in bytes from the start of the file
  std::span<const std::byte> bytes;  // all elements as they lie in the file
};

using MetaValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, MetaArray>;

struct MetaEntry {
  std::string_view key;
  MetaType type = MetaType::U8;
  MetaValue value;      // integers widened to 64 bits, floats to double
  uint64_t offset = 0;  // of the key, in bytes from the start of the file
};

struct TensorInfo {
  std::string_view name;
  int dims = 0;                   // as the file says, 0 to 4
  uint64_t ne[4] = {1, 1, 1, 1};  // ne[0] is the contiguous dimension (columns), as GGUF writes it
  const Format* format = nullptr;
  int shard = 0;
  uint64_t offset = 0;  // of the data, in bytes from the start of its shard's file
  uint64_t bytes = 0;
  uint64_t info_offset = 0;  // where the shard's header describes it
  uint64_t columns() const { return ne[0]; }
  uint64_t rows() const { return ne[1]; }
  uint64_t experts() const { return ne[2]; }
};

struct Shard {
  std::string path;
  uint32_t version = 0;
  uint64_t file_bytes = 0;
  uint64_t data_start = 0;  // header, metadata, infos and padding lie before it
  uint64_t alignment = 32;
  std::shared_ptr<const MappedFile> file;
  std::span<const std::byte> bytes;  // the whole file
};

struct Checkpoint {
  std::vector<Shard> shards;        // in order; metadata is the first one's
  std::vector<MetaEntry> metadata;  // file order
  std::vector<TensorInfo> tensors;  // file order, shard by shard

  const MetaEntry* find(std::string_view key) const;      // null where absent; constant time
  const TensorInfo* tensor(std::string_view name) const;  // null where absent; constant time
  std::span<const std::byte> data(const TensorInfo& t) const;

  // Typed look-ups. Absent: nullopt. Present with another type: CheckpointError naming the key, its type and what is
  // accepted.
  std::optional<uint64_t> integer(std::string_view key) const;  // any integer type, not negative
  std::optional<int64_t> signed_integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;  // f32 or f64
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const;  // integer or bool arrays
  std::optional<std::vector<double>> reals(std::string_view key) const;
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;

  // Index of the two look-ups above: made by read_checkpoint.
  struct Index;
  std::shared_ptr<const Index> index;
};

/// Reads `path` and, where it is the first shard of a split file, the others beside it. Linear in the header's size;
/// touches no tensor data. Throws CheckpointError (malformed), FormatError (a tensor type that GGUF has removed or does
/// not have), IoError.
Checkpoint read_checkpoint(const std::filesystem::path& path);

std::string type_name(const MetaEntry& entry);  // "u32", "array of string"
/// As `lanec inspect` prints it: strings quoted and escaped, the first elements of an array.
std::string value_text(const MetaEntry& entry);

/// Throws InternalError where the product contradicts itself: tensors outside their shard, overlapping, out of order.
void verify(const Checkpoint& checkpoint);

/// What `lanec inspect` and `lanec compile --emit gguf` print: metadata, tensors, totals by type. No path, date or
/// host.
std::string to_text(const Checkpoint& checkpoint);

}  // namespace lane
