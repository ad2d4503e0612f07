#include "runtime/sidecar.h"

#include <filesystem>

#include "parts.h"

namespace lane {

namespace rt = LANE_NAMESPACE;

namespace {

/// Absolute, the folder's symbolic links followed. The file's own name stays: a split checkpoint's shards are found by
/// theirs.
std::string lasting_path(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path);
  return (std::filesystem::weakly_canonical(whole.parent_path(), ignored) / whole.filename()).string();
}

}  // namespace

uint64_t payload_digest(const Weights& weights) { return rt::digest(weights.payload.data(), weights.payload.size()); }

std::vector<std::byte> write_sidecar(const Weights& weights, const std::string& checkpoint_path) {
  const std::string path = lasting_path(checkpoint_path);
  rt::SidecarHeader header{{}, weights.payload.size(), payload_digest(weights), path.size()};
  std::memcpy(header.magic, rt::kSidecarMagic, sizeof header.magic);
  std::vector<std::byte> bytes(sizeof header + weights.payload.size() + path.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(weights.payload.begin(), weights.payload.end(), bytes.begin() + sizeof header);
  if (!path.empty()) std::memcpy(bytes.data() + sizeof header + weights.payload.size(), path.data(), path.size());
  return bytes;
}

}  // namespace lane
