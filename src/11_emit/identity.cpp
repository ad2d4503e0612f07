#include <algorithm>

#include "lane/error.h"
#include "parts.h"
#include "runtime/file.h"
#include "runtime/xxh3.h"

namespace lane {
namespace {

namespace rt = LANE_NAMESPACE;

void check(const rt::Status& status) {
  if (!status.ok()) throw IoError(status.message);
}

/// With pread, not through the mapping: a file that shrinks meanwhile is refused.
ShardIdentity identify(const Shard& shard) {
  rt::File file;
  check(file.open(shard.path));
  if (file.bytes() != shard.file_bytes) throw IoError(printable(shard.path) + ": changed while it was compiled");
  std::vector<uint8_t> piece(shard.data_start);
  check(file.read(0, piece.data(), piece.size()));
  ShardIdentity id{shard.file_bytes, shard.data_start, rt::digest(piece.data(), piece.size()), 0};
  rt::PieceDigest data;
  for (uint64_t at = shard.data_start; at < shard.file_bytes; at += rt::kPieceBytes) {
    piece.resize(std::min<uint64_t>(rt::kPieceBytes, shard.file_bytes - at));
    check(file.read(at, piece.data(), piece.size()));
    data.add(piece.data(), piece.size());
  }
  id.data_digest = data.value();
  return id;
}

}  // namespace

std::vector<ShardIdentity> identify(const Checkpoint& checkpoint) {
  std::vector<ShardIdentity> ids;
  for (const Shard& shard : checkpoint.shards) ids.push_back(identify(shard));
  return ids;
}

}  // namespace lane
