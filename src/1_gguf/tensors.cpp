// Tensor infos: name, shape, type and place of each tensor.
#include <fmt/format.h>

#include <algorithm>

#include "parts.h"

namespace lane {
namespace {

constexpr size_t kLongestName = 63;
constexpr uint32_t kMostDims = 4;

std::string described(std::string_view name) { return fmt::format("tensor '{}'", printable(name)); }

std::string_view read_name(Cursor& in, uint64_t number) {
  const uint64_t at = in.at();
  const auto name = in.take_string(fmt::format("the name of tensor {}", number));
  if (name.empty()) in.fail(at, fmt::format("no name for tensor {}", number), "a name");
  if (name.size() > kLongestName)
    in.fail(at, fmt::format("{}, a name of {} bytes", described(name), name.size()),
            fmt::format("at most {}", kLongestName));
  if (name.find('\0') != name.npos) in.fail(at, "a NUL in the name of " + described(name), "text");
  return name;
}

/// Fills `info.dims` and `info.ne`; returns the number of elements, which fits int64_t.
uint64_t read_shape(Cursor& in, TensorInfo& info) {
  const std::string what = described(info.name);
  const uint64_t at = in.at();
  const auto dims = in.take<uint32_t>("the number of dimensions of " + what);
  if (dims > kMostDims)
    in.fail(at, fmt::format("{} of {} dimensions", what, dims), fmt::format("at most {}", kMostDims));
  info.dims = int(dims);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dims; i++) {
    const uint64_t place = in.at();
    const auto extent = in.take<int64_t>("the shape of " + what);
    if (extent <= 0) in.fail(place, fmt::format("{} with dimension {} of {}", what, i, extent), "1 or more");
    info.ne[i] = uint64_t(extent);
    if (__builtin_mul_overflow(elements, info.ne[i], &elements) || elements > uint64_t(INT64_MAX))
      in.fail(place, what + " with a product of dimensions above 2^63 - 1", "one that fits");
  }
  return elements;
}

void read_format(Cursor& in, TensorInfo& info, uint64_t elements) {
  const uint64_t at = in.at();
  const auto id = in.take<int32_t>("the type of " + described(info.name));
  info.format = find_format(id);
  if (!info.format)
    throw FormatError(
        printable(info.name), fmt::format("of type {}", id),
        fmt::format("{}, byte {}: GGUF has no such type; lanec reads {}", in.file(), at, supported_formats()));
  const auto block = uint64_t(info.format->block_elements);
  if (info.ne[0] % block != 0)
    in.fail(at, fmt::format("{} of type {} with {} columns", described(info.name), info.format->name, info.ne[0]),
            fmt::format("columns divisible by {}", block));
  if (__builtin_mul_overflow(elements / block, uint64_t(info.format->block_bytes), &info.bytes))
    in.fail(at, described(info.name) + " of 2^64 bytes or more", "a size that fits");
}

TensorInfo read_info(Cursor& in, uint64_t number) {
  TensorInfo info;
  info.info_offset = in.at();
  info.name = read_name(in, number);
  const uint64_t elements = read_shape(in, info);
  read_format(in, info, elements);
  return info;
}

uint64_t padding(uint64_t bytes, uint64_t alignment) { return (alignment - bytes % alignment) % alignment; }

/// Checks that every offset is the sum of the padded sizes before it, and that the data ends within the file.
class DataCheck {
 public:
  DataCheck(const Cursor& in, uint64_t alignment) : in_(in), alignment_(alignment) {}

  void add(const TensorInfo& info, uint64_t offset, uint64_t offset_at) {
    if (offset != end_)
      in_.fail(offset_at, fmt::format("{} at offset {} of the data", described(info.name), offset),
               fmt::format("offset {}, where the tensor before it ends", end_));
    if (__builtin_add_overflow(end_, info.bytes, &end_) ||
        __builtin_add_overflow(end_, padding(info.bytes, alignment_), &end_))
      in_.fail(offset_at, described(info.name) + " ending at 2^64 or later", "an end within the file");
  }

 private:
  const Cursor& in_;
  uint64_t alignment_, end_ = 0;
};

/// Turns offsets that count from `data_start` into offsets in the file.
void place(const Cursor& in, const Shard& shard, std::span<TensorInfo> tensors) {
  for (TensorInfo& info : tensors) {
    const uint64_t room = shard.file_bytes > shard.data_start ? shard.file_bytes - shard.data_start : 0;
    if (info.offset > room || info.bytes > room - info.offset)
      in.fail(info.info_offset,
              fmt::format("{} of {} bytes at offset {} of the data, which starts at byte {} of a file of {}",
                          described(info.name), info.bytes, info.offset, shard.data_start, shard.file_bytes),
              "a tensor within the file: it is cut short or damaged");
    info.offset += shard.data_start;
  }
}

}  // namespace

void read_tensors(Cursor& in, uint64_t count, int shard_number, Shard& shard, std::vector<TensorInfo>& tensors,
                  NameIndex& index) {
  const size_t first = tensors.size();
  DataCheck data(in, shard.alignment);
  for (uint64_t i = 0; i < count; i++) {
    TensorInfo info = read_info(in, i);
    info.shard = shard_number;
    const uint64_t offset_at = in.at();
    info.offset = in.take<uint64_t>("the offset of " + described(info.name));
    data.add(info, info.offset, offset_at);
    if (!index.try_emplace(info.name, tensors.size()).second)
      in.fail(info.info_offset, described(info.name) + " again", "every tensor once");
    tensors.push_back(info);
  }
  // A file without tensors ends where its header does, unpadded.
  shard.data_start = in.at() + (count ? padding(in.at(), shard.alignment) : 0);
  place(in, shard, std::span(tensors).subspan(first));
}

}  // namespace lane
