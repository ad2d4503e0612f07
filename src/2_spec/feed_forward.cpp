#include <fmt/format.h>

#include "describe.h"
#include "lane/error.h"

namespace lane {
namespace {

Dense dense(const Source& source, const Block& block, int64_t width, const std::string& suffix, Presence bias) {
  Dense result{.activation = source.row.activation, .gated = source.row.gated, .width = width};
  result.fused = source.row.gated && source.row.fused_gate_up && suffix.empty();
  const Tensors::Dims in{.rows = width, .columns = source.width};
  Tensors& tensors = source.tensors;
  if (result.gated && !result.fused) result.gate = tensors.linear(block.tensor("ffn_gate" + suffix), in, bias);
  result.up =
      tensors.linear(block.tensor("ffn_up" + suffix),
                     {.rows = result.fused ? source.product({2, width}) : width, .columns = source.width}, bias);
  result.down = tensors.linear(block.tensor("ffn_down" + suffix), {.rows = source.width, .columns = width}, bias);
  return result;
}

int64_t dense_width(const Source& source, const Block& block) {
  const auto widths = source.keys.by_layer("feed_forward_length", source.blocks);
  if (!widths)
    source.keys.refuse("feed_forward_length", fmt::format("no key '{}'", source.keys.full("feed_forward_length")),
                       "an integer");
  return (*widths)[size_t(block.index)];
}

}  // namespace

FeedForward feed_forward(const Source& source, const Block& block) {
  const int64_t experts = source.keys.integer("expert_count", {.low = 0, .high = 1024}).value_or(0);
  if (experts > 0) throw NotYetError(fmt::format("routed experts in architecture '{}'", source.row.name));
  return dense(source, block, dense_width(source, block), "", source.row.ffn_bias);
}

}  // namespace lane
