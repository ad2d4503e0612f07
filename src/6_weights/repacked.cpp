#include "6_weights/repacked.h"

#include <algorithm>
#include <array>
#include <map>

#include "layout/slices.h"
#include "ops/streamed_geometry.h"

namespace lane {
namespace {

namespace kernels = LANE_NAMESPACE;

// In kernels/layout, a row each.
constexpr std::array kRepacked = {
    RepackedFormat{FormatId::F16, "RepackedF16", "layout/floats.cuh", 512},
    RepackedFormat{FormatId::Q4_0, "RepackedQ4_0", "layout/q4_0.cuh", 144},
    RepackedFormat{FormatId::Q4_1, "RepackedQ4_1", "layout/q4_1.cuh", 160},
    RepackedFormat{FormatId::Q5_0, "RepackedQ5_0", "layout/q5_0.cuh", 176},
    RepackedFormat{FormatId::Q5_1, "RepackedQ5_1", "layout/q5_1.cuh", 192},
    RepackedFormat{FormatId::Q8_0, "RepackedQ8_0", "layout/q8_0.cuh", 272, true},
    RepackedFormat{FormatId::IQ4_NL, "RepackedIQ4_NL", "layout/iq4_nl.cuh", 144},
    RepackedFormat{FormatId::Q3_K, "RepackedQ3_K", "layout/q3_k.cuh", 114},
    RepackedFormat{FormatId::Q4_K, "RepackedQ4_K", "layout/q4_k.cuh", 144, true},
    RepackedFormat{FormatId::Q5_K, "RepackedQ5_K", "layout/q5_k.cuh", 176},
    RepackedFormat{FormatId::Q6_K, "RepackedQ6_K", "layout/q6_k.cuh", 210},
    RepackedFormat{FormatId::IQ4_XS, "RepackedIQ4_XS", "layout/iq4_xs.cuh", 136},
    RepackedFormat{FormatId::BF16, "RepackedBF16", "layout/floats.cuh", 512},
};

/// For each matrix, whether every op that reads it can read it repacked.
std::map<std::string, bool, std::less<>> readers_of(const std::vector<const StepGraph*>& graphs) {
  std::map<std::string, bool, std::less<>> can;
  for (const StepGraph* graph : graphs)
    for (const Op& op : graph->ops)
      for (size_t i = 0; i < op.operands.size(); i++) {
        const Value& value = graph->value(op.operands[i]);
        if (value.kind != ValueKind::Quantized) continue;
        const bool reads = i == 0 && (op.kind == OpKind::MatrixProduct || op.kind == OpKind::RowLookup);
        can.emplace(value.name, true).first->second &= reads;
      }
  return can;
}

/// Whether the streamed product takes the matrix.
bool fits(const Placement& p, const RepackedFormat& repacked, int words, const Chip& chip) {
  const int columns = int(p.shape.columns);
  if (!kernels::streamed_fits(columns, false)) return false;
  const kernels::StreamedMatrix matrix{repacked.bytes_256, int(p.shape.rows)};
  return kernels::has_shared(
      kernels::streamed_geometry(columns, &matrix, 1, false, words, chip.multiprocessors, chip.shared_bytes),
      chip.shared_bytes);
}

}  // namespace

bool streams(const Options& options, const Chip& chip) {
  return options.stream.value_or(chip.bulk_copy) && options.fuse_quant && options.activations != Activations::F32;
}

void repack_matrices(Weights& weights, const std::vector<const StepGraph*>& graphs, const Options& options) {
  const Chip* chip = find_chip(options.chip);
  if (!chip || !streams(options, *chip)) return;
  const auto can = readers_of(graphs);
  for (Placement& p : weights.placements) {
    const RepackedFormat* repacked = p.is_matrix() ? find_repacked(*p.format) : nullptr;
    const auto reader = can.find(p.name);
    if (!repacked || p.shape.experts != 1 || reader == can.end() || !reader->second) continue;
    if (!fits(p, *repacked, activation_words(options, *p.format), *chip)) continue;
    const int columns = int(p.shape.columns);
    p.layout = DeviceLayout::Repacked;
    p.device_bytes = kernels::repacked_bytes(repacked->bytes_256, size_t(p.shape.rows), columns);
  }
}

int activation_words(const Options& options, const Format& format) {
  if (options.activations == Activations::F32 || format.block_elements == 1) return kernels::kFloatActivations;
  return options.activations == Activations::Int8x2 ? kernels::kTwoWords : kernels::kOneWord;
}

const RepackedFormat* find_repacked(const Format& format) {
  const auto at = std::find_if(kRepacked.begin(), kRepacked.end(),
                               [&](const RepackedFormat& r) { return int32_t(r.format) == format.id; });
  return at == kRepacked.end() ? nullptr : &*at;
}

}  // namespace lane
