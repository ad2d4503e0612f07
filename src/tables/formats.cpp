#include "lane/formats.h"

#include <algorithm>

#include "decode.h"

namespace lane {
namespace {

template <decode::BlockDecode kBlock, int kElements, int kBytes>
void decode_blocks(const std::byte* blocks, size_t n, double* out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(blocks);
  for (size_t i = 0; i < n / kElements; i++) kBlock(bytes + i * kBytes, out + i * kElements);
}

template <decode::BlockDecode kBlock, int kElements, int kBytes>
constexpr Format computed(FormatId id, std::string_view name, std::string_view kernel) {
  return {int32_t(id), name, kElements, kBytes, kernel, &decode_blocks<kBlock, kElements, kBytes>};
}

constexpr Format named(int32_t id, std::string_view name, int elements, int bytes) {
  return {id, name, elements, bytes, "", nullptr};
}

// Ids 4, 5, 31 to 33 and 36 to 38 were given out and taken back: they have no row.
constexpr Format kFormats[] = {
    computed<decode::f32, 1, 4>(FormatId::F32, "F32", "quant/f32.cuh"),
    computed<decode::f16, 1, 2>(FormatId::F16, "F16", "quant/f16.cuh"),
    computed<decode::q4_0, 32, 18>(FormatId::Q4_0, "Q4_0", "quant/q4_0.cuh"),
    computed<decode::q4_1, 32, 20>(FormatId::Q4_1, "Q4_1", "quant/q4_1.cuh"),
    computed<decode::q5_0, 32, 22>(FormatId::Q5_0, "Q5_0", "quant/q5_0.cuh"),
    computed<decode::q5_1, 32, 24>(FormatId::Q5_1, "Q5_1", "quant/q5_1.cuh"),
    computed<decode::q8_0, 32, 34>(FormatId::Q8_0, "Q8_0", "quant/q8_0.cuh"),
    named(9, "Q8_1", 32, 36),
    computed<decode::q2_k, 256, 84>(FormatId::Q2_K, "Q2_K", "quant/q2_k.cuh"),
    computed<decode::q3_k, 256, 110>(FormatId::Q3_K, "Q3_K", "quant/q3_k.cuh"),
    computed<decode::q4_k, 256, 144>(FormatId::Q4_K, "Q4_K", "quant/q4_k.cuh"),
    computed<decode::q5_k, 256, 176>(FormatId::Q5_K, "Q5_K", "quant/q5_k.cuh"),
    computed<decode::q6_k, 256, 210>(FormatId::Q6_K, "Q6_K", "quant/q6_k.cuh"),
    named(15, "Q8_K", 256, 292),
    named(16, "IQ2_XXS", 256, 66),
    named(17, "IQ2_XS", 256, 74),
    named(18, "IQ3_XXS", 256, 98),
    named(19, "IQ1_S", 256, 50),
    computed<decode::iq4_nl, 32, 18>(FormatId::IQ4_NL, "IQ4_NL", "quant/iq4_nl.cuh"),
    named(21, "IQ3_S", 256, 110),
    named(22, "IQ2_S", 256, 82),
    computed<decode::iq4_xs, 256, 136>(FormatId::IQ4_XS, "IQ4_XS", "quant/iq4_xs.cuh"),
    named(24, "I8", 1, 1),
    named(25, "I16", 1, 2),
    named(26, "I32", 1, 4),
    named(27, "I64", 1, 8),
    named(28, "F64", 1, 8),
    named(29, "IQ1_M", 256, 56),
    computed<decode::bf16, 1, 2>(FormatId::BF16, "BF16", "quant/bf16.cuh"),
    named(34, "TQ1_0", 256, 54),
    named(35, "TQ2_0", 256, 66),
    computed<decode::mxfp4, 32, 17>(FormatId::MXFP4, "MXFP4", "quant/mxfp4.cuh"),
    named(40, "NVFP4", 64, 36),
    named(41, "Q1_0", 128, 18),
    named(42, "Q2_0", 64, 18),
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(int32_t id) {
  const auto* row = std::ranges::lower_bound(kFormats, id, {}, &Format::id);
  return row != std::end(kFormats) && row->id == id ? row : nullptr;
}

const Format* find_format(std::string_view name) {
  const auto* row = std::ranges::find(kFormats, name, &Format::name);
  return row != std::end(kFormats) ? row : nullptr;
}

std::string supported_formats() {
  std::string names;
  for (const Format& row : kFormats)
    if (row.supported()) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

}  // namespace lane
