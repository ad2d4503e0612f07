#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

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

/// Read in parts that stay in the cache until they are digested.
uint64_t digest_piece(const rt::File& file, uint64_t at, uint64_t bytes) {
  constexpr uint64_t kPart = 256 << 10;
  std::vector<uint8_t> part(std::min(bytes, 2 * kPart));
  rt::RunningDigest running;
  for (; bytes >= 2 * kPart; at += kPart, bytes -= kPart) {
    check(file.read(at, part.data(), kPart));
    running.add(part.data(), kPart);
  }
  check(file.read(at, part.data(), bytes));
  return bytes < kPart ? rt::digest(part.data(), bytes) : running.finish(part.data(), bytes);
}

uint64_t digest_data(const rt::File& file, const Shard& shard) {
  const uint64_t data = shard.file_bytes - shard.data_start;
  std::vector<uint64_t> digests((data + rt::kPieceBytes - 1) / rt::kPieceBytes);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t piece; (piece = next++) < digests.size();) {
      const uint64_t at = piece * rt::kPieceBytes;
      digests[piece] = digest_piece(file, shard.data_start + at, std::min<uint64_t>(rt::kPieceBytes, data - at));
    }
  };
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1u, 8u); ++i) {
    workers.push_back(std::async(std::launch::async, work));
  }
  for (std::future<void>& worker : workers) worker.get();
  rt::PieceDigest sum;
  for (const uint64_t digest : digests) sum.add(digest);
  return sum.value();
}

/// With pread, not through the mapping: a file that shrinks meanwhile is refused.
ShardIdentity identify(const Shard& shard) {
  rt::File file;
  check(file.open(shard.path));
  if (file.bytes() != shard.file_bytes) throw IoError(printable(shard.path) + ": changed while it was compiled");
  std::vector<uint8_t> header(shard.data_start);
  check(file.read(0, header.data(), header.size()));
  return {shard.file_bytes, shard.data_start, rt::digest(header.data(), header.size()), digest_data(file, shard)};
}

}  // namespace

std::vector<ShardIdentity> identify(const Checkpoint& checkpoint) {
  std::vector<ShardIdentity> ids;
  for (const Shard& shard : checkpoint.shards) ids.push_back(identify(shard));
  return ids;
}

}  // namespace lane
