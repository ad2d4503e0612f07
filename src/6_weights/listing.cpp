#include <fmt/format.h>

#include "lane/weights.h"

namespace lane {
namespace {

std::string_view layout_name(DeviceLayout layout) {
  switch (layout) {
    case DeviceLayout::AsStored:
      return "as stored";
    case DeviceLayout::Repacked:
      return "repacked";
    case DeviceLayout::Floats:
      return "floats";
    case DeviceLayout::RotaryTable:
      return "rotary table";
  }
  return "";
}

std::string source_of(const Placement& p) {
  if (p.in_sidecar) return fmt::format("sidecar at {}", p.offset);
  return fmt::format("shard {} at {}", p.shard, p.offset);
}

}  // namespace

std::string to_text(const Weights& weights) {
  uint64_t device_bytes = 0, stored_bytes = 0;
  std::string text;
  for (const Placement& p : weights.placements) {
    text += fmt::format("{}: {}, {} {}, {} bytes of {}, {} bytes on the device\n", p.name, to_text(p.shape),
                        p.format->name, layout_name(p.layout), p.bytes, source_of(p), p.device_bytes);
    device_bytes += p.device_bytes;
    if (!p.in_sidecar) stored_bytes += p.bytes;
  }
  for (const FoldedTensor& f : weights.folded)
    text +=
        fmt::format("folded into the sidecar: {}, {} bytes of shard {} at {}\n", f.name, f.bytes, f.shard, f.offset);
  return text +
         fmt::format("total: {} arrays, {} bytes of the checkpoint, {} bytes of the sidecar, {} bytes on the device\n",
                     weights.placements.size(), stored_bytes, weights.payload.size(), device_bytes);
}

}  // namespace lane
