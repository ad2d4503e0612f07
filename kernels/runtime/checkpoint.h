// The checkpoint's files, found and known to be the ones that the program was compiled from.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/file.h"
#include "runtime/program.h"
#include "runtime/xxh3.h"

namespace LANE_NAMESPACE {

struct Shards {
  std::vector<File> files;
  std::vector<uint8_t> header;  // the first one's bytes before its data: vocabulary and merges lie in them
};

/// "model-00001-of-00003.gguf" and 1 give "model-00002-of-00003.gguf". Empty where `first` is not so named.
inline std::string shard_path(const std::string& first, int shard, int count) {
  char from[32], to[32];
  std::snprintf(from, sizeof from, "-%05d-of-%05d.gguf", 1, count);
  std::snprintf(to, sizeof to, "-%05d-of-%05d.gguf", shard + 1, count);
  const size_t tail = std::string(from).size();
  if (first.size() < tail || first.compare(first.size() - tail, tail, from) != 0) return "";
  return first.substr(0, first.size() - tail) + to;
}

/// Compares size and header with `info`; leaves the header's bytes in `header`.
inline Status check_shard(const File& file, const ShardInfo& info, std::vector<uint8_t>* header) {
  const uint64_t bytes = file.bytes();
  if (bytes != info.file_bytes) {
    return checkpoint_error(file.path() + ": found " + std::to_string(bytes) + " bytes; expected " +
                            std::to_string(info.file_bytes) + ", as when this program was compiled");
  }
  header->resize(info.data_start);
  if (Status s = file.read(0, header->data(), info.data_start); !s.ok()) return s;
  if (digest(header->data(), info.data_start) == info.header_digest) return {};
  return checkpoint_error(file.path() +
                          ": found another header than when this program was compiled; expected the "
                          "same checkpoint, or one that differs in its weights' values alone");
}

/// Compares the values that the sidecar was computed from.
inline Status check_folded(const ProgramInfo& program, const Shards& shards) {
  for (int i = 0; i < program.folded_count; ++i) {
    const FoldedInfo& info = program.folded[i];
    const File& file = shards.files[size_t(info.shard)];
    std::vector<uint8_t> bytes(info.bytes);
    if (Status s = file.read(info.offset, bytes.data(), info.bytes); !s.ok()) return s;
    if (digest(bytes.data(), info.bytes) == info.digest) continue;
    return checkpoint_error(file.path() + ": '" + info.tensor +
                            "': found other values than those this program was compiled with; expected the same, since "
                            "the sidecar holds what was computed from them: compile this checkpoint again");
  }
  return {};
}

/// Opens every file and checks it. Nothing is allocated on the device before this has passed.
inline Status open_shards(const ProgramInfo& program, const std::string& path, Shards* shards) {
  if (path.empty()) return usage_error("no checkpoint's path is known: the sidecar holds none; accepted is -m FILE");
  for (int i = 0; i < program.shard_count; ++i) {
    const std::string name = i == 0 ? path : shard_path(path, i, program.shard_count);
    if (name.empty()) {
      return checkpoint_error(path + ": expected the first of " + std::to_string(program.shard_count) +
                              " files, the name ending in -00001-of-NNNNN.gguf");
    }
    File file;
    if (Status s = file.open(name); !s.ok()) return s;
    std::vector<uint8_t> header;
    if (Status s = check_shard(file, program.shards[i], &header); !s.ok()) return s;
    if (i == 0) shards->header = std::move(header);
    shards->files.push_back(std::move(file));
  }
  return {};
}

}  // namespace LANE_NAMESPACE
