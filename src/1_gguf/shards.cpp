// One file, or the shards of a split one: NAME-00001-of-00003.gguf and so on, metadata in the first.
#include <fmt/format.h>

#include <filesystem>

#include "mapped_file.h"
#include "parts.h"

namespace lane {
namespace {

// A greater alignment than any page or sector would be padding and nothing else.
constexpr uint64_t kGreatestAlignment = uint64_t(1) << 24;

struct ShardHead {
  Header header;
  Metadata metadata;
  Cursor rest;  // at the first tensor info
  Shard shard;
};

uint64_t read_alignment(const Cursor& in, const Metadata& metadata) {
  const MetaEntry* entry = metadata.find("general.alignment");
  if (!entry) return 32;
  if (entry->type != MetaType::U32)
    in.fail(entry->offset, fmt::format("'general.alignment' of type {}", type_name(*entry)), "u32");
  const uint64_t alignment = std::get<uint64_t>(entry->value);
  if (!std::has_single_bit(alignment) || alignment > kGreatestAlignment)
    in.fail(entry->offset, fmt::format("'general.alignment' of {}", alignment),
            fmt::format("a power of two up to {}", kGreatestAlignment));
  return alignment;
}

ShardHead read_head(const std::string& path) {
  Shard shard;
  shard.path = path;
  shard.file = std::make_shared<const MappedFile>(path);
  shard.bytes = shard.file->bytes();
  shard.file_bytes = shard.bytes.size();
  Cursor in(printable(path, 4096), shard.bytes);
  const Header header = read_header(in);
  shard.version = header.version;
  Metadata metadata = read_metadata(in, header.entries);
  shard.alignment = read_alignment(in, metadata);
  return {header, std::move(metadata), in, std::move(shard)};
}

/// One of the counts that a split file's shards carry; absent: nullopt.
std::optional<uint64_t> split_key(const ShardHead& head, std::string_view key) {
  const MetaEntry* entry = head.metadata.find(key);
  if (!entry) return std::nullopt;
  const auto* natural = std::get_if<uint64_t>(&entry->value);
  const auto* integer = std::get_if<int64_t>(&entry->value);
  if (natural) return *natural;
  if (integer && *integer >= 0) return uint64_t(*integer);
  head.rest.fail(
      entry->offset,
      integer ? fmt::format("'{}' of {}", key, *integer) : fmt::format("'{}' of type {}", key, type_name(*entry)),
      "an integer of 0 or more");
}

void expect_split_key(const ShardHead& head, std::string_view key, uint64_t expected, std::string_view why) {
  const auto found = split_key(head, key);
  if (found == expected) return;
  const MetaEntry* entry = head.metadata.find(key);
  head.rest.fail(entry ? entry->offset : 0,
                 found ? fmt::format("'{}' of {}", key, *found) : fmt::format("no key '{}'", key),
                 fmt::format("{}: {}", expected, why));
}

/// The path of shard `number` (0-based) beside the first one, whose own name must end as split files' do.
std::string shard_path(const ShardHead& first, uint64_t number, uint64_t count) {
  const std::string& path = first.shard.path;
  const std::string ending = fmt::format("-{:05}-of-{:05}.gguf", 1, count);
  if (!path.ends_with(ending))
    first.rest.fail(first.metadata.find("split.count")->offset,
                    fmt::format("the first of {} shards under a name that does not say so", count),
                    fmt::format("a file name ending in '{}', by which the others are found", ending));
  return path.substr(0, path.size() - ending.size()) + fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

void add_tensors(Checkpoint& checkpoint, Checkpoint::Index& index, ShardHead& head) {
  const int number = int(checkpoint.shards.size());
  read_tensors(head.rest, head.header.tensors, number, head.shard, checkpoint.tensors, index.tensors);
  checkpoint.shards.push_back(head.shard);
}

void add_other_shards(Checkpoint& checkpoint, Checkpoint::Index& index, const ShardHead& first, uint64_t count) {
  for (uint64_t number = 1; number < count; number++) {
    const std::string path = shard_path(first, number, count);
    if (!std::filesystem::exists(path))
      throw IoError(fmt::format("{}: no such file; it is shard {} of the {} that {} is the first of",
                                printable(path, 4096), number + 1, count, first.rest.file()));
    ShardHead head = read_head(path);
    expect_split_key(head, "split.no", number, "the file's name says which shard it is");
    if (head.metadata.find("split.count")) expect_split_key(head, "split.count", count, "the first shard says so");
    add_tensors(checkpoint, index, head);
  }
  if (const auto total = split_key(first, "split.tensors.count"); total && *total != checkpoint.tensors.size())
    first.rest.fail(first.metadata.find("split.tensors.count")->offset,
                    fmt::format("'split.tensors.count' of {}", *total),
                    fmt::format("{}, the tensors of all {} shards", checkpoint.tensors.size(), count));
}

}  // namespace

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  ShardHead first = read_head(path.string());
  const uint64_t count = split_key(first, "split.count").value_or(1);
  if (count > 1)
    expect_split_key(first, "split.no", 0,
                     fmt::format("a split file is opened by its first shard, NAME-00001-of-{:05}.gguf", count));

  Checkpoint checkpoint;
  auto index = std::make_shared<Checkpoint::Index>();
  add_tensors(checkpoint, *index, first);
  add_other_shards(checkpoint, *index, first, count);
  for (const Shard& shard : checkpoint.shards) shard.file->check_size();
  checkpoint.metadata = std::move(first.metadata.entries);
  index->metadata = std::move(first.metadata.index);
  checkpoint.index = std::move(index);
  return checkpoint;
}

}  // namespace lane
