#include <fmt/format.h>

#include "parts.h"

namespace lane {
namespace {

[[noreturn]] void contradiction(const std::string& what) { throw InternalError("gguf: " + what); }

void verify_shard(const Shard& shard) {
  if (!shard.file || shard.bytes.size() != shard.file_bytes) contradiction("a shard's bytes are not its file's");
  if (!std::has_single_bit(shard.alignment)) contradiction(fmt::format("an alignment of {}", shard.alignment));
}

void verify_tensor(const Checkpoint& checkpoint, const TensorInfo& t) {
  const std::string name = fmt::format("tensor '{}'", printable(t.name));
  if (!t.format) contradiction(name + " has no format");
  if (t.shard < 0 || size_t(t.shard) >= checkpoint.shards.size()) contradiction(name + " is in no shard");
  const Shard& shard = checkpoint.shards[size_t(t.shard)];
  if (t.offset < shard.data_start || t.offset > shard.file_bytes || t.bytes > shard.file_bytes - t.offset)
    contradiction(name + " lies outside its shard's data");
  if ((t.offset - shard.data_start) % shard.alignment != 0) contradiction(name + " is not aligned");
  if (t.bytes != t.format->row_bytes(t.ne[0]) * t.ne[1] * t.ne[2] * t.ne[3])
    contradiction(name + " has another size than its shape");
  if (checkpoint.tensor(t.name) != &t) contradiction(name + " is not what its name finds");
}

}  // namespace

void verify(const Checkpoint& checkpoint) {
  if (checkpoint.shards.empty() || !checkpoint.index) contradiction("no file");
  for (const Shard& shard : checkpoint.shards) verify_shard(shard);
  for (const MetaEntry& entry : checkpoint.metadata)
    if (checkpoint.find(entry.key) != &entry)
      contradiction("key '" + printable(entry.key) + "' is not what its name finds");
  const TensorInfo* before = nullptr;
  for (const TensorInfo& t : checkpoint.tensors) {
    verify_tensor(checkpoint, t);
    if (before && t.shard < before->shard) contradiction("tensor '" + printable(t.name) + "' is out of order");
    if (before && t.shard == before->shard && t.offset < before->offset + before->bytes)
      contradiction("tensor '" + printable(t.name) + "' overlaps the one before it");
    before = &t;
  }
}

}  // namespace lane
