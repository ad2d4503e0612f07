// The file beside the program: what was computed once at compile time. docs/sidecar.md describes its bytes.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/file.h"
#include "runtime/xxh3.h"

namespace LANE_NAMESPACE {

/// Little-endian; the payload follows, and then the default path of the checkpoint, which no digest covers.
struct SidecarHeader {
  char magic[8];
  uint64_t payload_bytes, payload_digest, path_bytes;
};
constexpr char kSidecarMagic[8] = {'l', 'a', 'n', 'e', 'c', 'a', 'r', '1'};

struct Sidecar {
  std::vector<uint8_t> payload;
  std::string checkpoint_path;
};

/// Refuses a file whose payload is not of `bytes` bytes with `payload_digest`: the one made with the program.
inline Status read_sidecar(const std::string& path, uint64_t bytes, uint64_t payload_digest, Sidecar* sidecar) {
  constexpr uint64_t kLongestPath = 1 << 16;
  File file;
  if (Status s = file.open(path); !s.ok()) return s;
  const Status foreign = checkpoint_error(path +
                                          ": found a file that was not made with this program; expected the "
                                          "sidecar that lanec wrote beside the .cu file");
  SidecarHeader header{};
  if (file.bytes() < sizeof header) return foreign;
  if (Status s = file.read(0, &header, sizeof header); !s.ok()) return s;
  if (std::memcmp(header.magic, kSidecarMagic, sizeof header.magic) != 0 || header.payload_bytes != bytes ||
      header.payload_digest != payload_digest || header.path_bytes > kLongestPath ||
      file.bytes() != sizeof header + bytes + header.path_bytes) {
    return foreign;
  }
  sidecar->payload.resize(bytes);
  sidecar->checkpoint_path.resize(header.path_bytes);
  if (Status s = file.read(sizeof header, sidecar->payload.data(), bytes); !s.ok()) return s;
  if (Status s = file.read(sizeof header + bytes, &sidecar->checkpoint_path[0], header.path_bytes); !s.ok()) return s;
  if (digest(sidecar->payload.data(), bytes) != payload_digest) {
    return checkpoint_error(path + ": its contents have changed since lanec wrote it");
  }
  return {};
}

}  // namespace LANE_NAMESPACE
