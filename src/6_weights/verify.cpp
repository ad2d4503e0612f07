#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "lane/error.h"
#include "lane/weights.h"
#include "layout/slices.h"

namespace lane {
namespace {

void require(bool holds, const Placement& placement, std::string_view what) {
  if (!holds) throw InternalError(fmt::format("weights: '{}' {}", placement.name, what));
}

/// The range lies within the sidecar's payload, or is exactly a tensor of its shard.
void verify_source(const Placement& p, const Weights& weights, const Checkpoint& checkpoint) {
  if (p.in_sidecar) {
    require(p.offset % 16 == 0, p, "is not 16-aligned in the sidecar");
    require(p.offset <= weights.payload.size() && p.bytes <= weights.payload.size() - p.offset, p,
            "lies outside the sidecar");
    return;
  }
  bool found = false;
  for (const TensorInfo& t : checkpoint.tensors)
    found |= t.shard == p.shard && t.offset == p.offset && t.bytes == p.bytes && t.format == p.format;
  require(found, p, "is no tensor of the checkpoint");
}

/// Whether the name may be printed into a program as it is.
bool plain(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
}

void verify_folded(const FoldedTensor& f, const Checkpoint& checkpoint) {
  const TensorInfo* t = checkpoint.tensor(f.name);
  if (t && t->shard == f.shard && t->offset == f.offset && t->bytes == f.bytes && plain(f.name)) return;
  throw InternalError(fmt::format("weights: folded '{}' is no tensor of the checkpoint", printable(f.name)));
}

void verify_sizes(const Placement& p) {
  const uint64_t elements = uint64_t(p.shape.elements());
  switch (p.layout) {
    case DeviceLayout::AsStored:
      require(!p.in_sidecar, p, "is a matrix in the sidecar");
      require(p.device_bytes == p.bytes, p, "takes other bytes on the device than in the checkpoint");
      require(p.bytes == p.format->row_bytes(uint64_t(p.shape.columns)) * uint64_t(p.shape.rows * p.shape.experts), p,
              "has not the bytes of its shape");
      break;
    case DeviceLayout::Repacked: {
      const RepackedFormat* repacked = find_repacked(*p.format);
      require(!p.in_sidecar && repacked && p.shape.experts == 1, p, "has no repacked layout");
      require(p.device_bytes ==
                  LANE_NAMESPACE::repacked_bytes(repacked->bytes_256, size_t(p.shape.rows), int(p.shape.columns)),
              p, "has not the device bytes of its shape");
      require(p.bytes == p.format->row_bytes(uint64_t(p.shape.columns)) * uint64_t(p.shape.rows), p,
              "has not the bytes of its shape");
      break;
    }
    case DeviceLayout::Floats:
      require(p.device_bytes == elements * sizeof(float), p, "has not the device bytes of its shape");
      require(p.format->block_elements == 1 && p.bytes == elements * uint64_t(p.format->block_bytes), p,
              "has not the bytes of its shape");
      break;
    case DeviceLayout::RotaryTable:
      require(p.in_sidecar, p, "is a rotary table outside the sidecar");
      require(p.device_bytes == elements * sizeof(float), p, "has not the device bytes of its shape");
      require(p.bytes == uint64_t(p.shape.columns / 2) * sizeof(double), p, "has not a frequency a pair");
      break;
  }
}

}  // namespace

void verify(const Weights& weights, const Checkpoint& checkpoint) {
  std::set<std::string_view> names;
  for (const Placement& p : weights.placements) {
    require(names.insert(p.name).second, p, "is placed twice");
    require(plain(p.name) && plain(p.tensor), p, "has a name that no program can hold");
    require(p.format != nullptr && p.shape.elements() > 0, p, "has no format or no elements");
    verify_sizes(p);
    verify_source(p, weights, checkpoint);
  }
  for (const FoldedTensor& f : weights.folded) verify_folded(f, checkpoint);
  for (const auto& [key, table] : weights.rotary_tables)
    if (table < 0 || size_t(table) >= weights.placements.size() ||
        weights.placements[size_t(table)].layout != DeviceLayout::RotaryTable)
      throw InternalError(fmt::format("weights: rotation {} reads no rotary table", key));
}

}  // namespace lane
