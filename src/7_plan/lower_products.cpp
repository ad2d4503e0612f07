// Ops that read a matrix in the checkpoint's blocks.
#include <fmt/format.h>

#include <algorithm>

#include "7_plan/int8_tiles.h"
#include "7_plan/lower.h"
#include "7_plan/streamed.h"

namespace lane {
namespace {

constexpr int64_t kProductThreads = 256;                                       // as ops/product_rows.cuh says
constexpr int64_t kLookupThreads = 128;                                        // as ops/row_lookup.cuh says
constexpr int64_t kGroup = 32;                                                 // weights that a thread decodes at once
constexpr int64_t kQuantizeThreads = 256, kInt8x2Bytes = 80, kInt8Bytes = 48;  // as ops/quantize.cuh says

const Format& format_of(const Lowering& to, const StepOp& op) {
  const Ref& w = op.operands[0];
  if (w.kind != Ref::Kind::Weight || w.index < 0) to.refuse(op, "matrix", "its first operand is no constant");
  const Placement& placement = to.weights().placements[size_t(w.index)];
  if (!placement.is_matrix()) to.refuse(op, std::string(placement.format->name), "its first operand is no matrix");
  return *placement.format;
}

void with_format(Launch& launch, const Format& format) {
  launch.template_arguments = {std::string(format.name)};
  launch.includes = {std::string(format.kernel)};
}

}  // namespace

/// Blocks of a product of `rows` rows: a warp a row until the chip is full, then more rows a warp. On the host chip a
/// block a worker.
int64_t product_blocks(int64_t rows, int64_t others, const Chip& chip) {
  const int64_t warps = kProductThreads / kWarpThreads, blocks = ceil_div(rows, warps);
  const int64_t full = chip.capability == 0 ? chip.multiprocessors : int64_t(chip.multiprocessors) * 8;
  return std::clamp(ceil_div(full, others), int64_t(1), blocks);
}

std::string Lowering::product_suffix(const Format& format) const {
  if (options_.activations == Activations::F32 || format.block_elements == 1) return "";
  return options_.activations == Activations::Int8x2 ? "_int8x2" : "_int8";
}

Arg Lowering::activations(const StepOp& op, const Ref& x, int64_t columns, const Format& format) {
  const std::string suffix = product_suffix(format);
  if (suffix.empty()) return in(x);
  if (x.kind != Ref::Kind::Array) refuse(op, "activations", "they are not computed");
  for (const Quantized& known : quantized_)
    if (known.source == x && known.columns == columns) return whole(known.buffer, Access::Read);
  const bool two_words = options_.activations == Activations::Int8x2;
  const int64_t groups = x.shape.elements() / kGroup;
  const int buffer = scratch(step_.arrays[size_t(x.index)].name + "." + suffix.substr(1),
                             groups * (two_words ? kInt8x2Bytes : kInt8Bytes));
  StepOp none;
  none.ops = op.ops;
  launch(none, "quantize", dim(ceil_div(groups, kQuantizeThreads / kWarpThreads)), dim(kQuantizeThreads),
         {whole(buffer, Access::Write), in(x), x.shape.elements() / columns, columns})
      .template_arguments = {two_words ? "2" : "1"};
  quantized_.push_back({x, columns, buffer});
  return whole(buffer, Access::Read);
}

void lower_row_lookup(Lowering& to, const StepOp& op) {
  const Format& format = format_of(to, op);
  const Ref& ids = op.operands[1];
  const int64_t rows = op.result.shape.rows, columns = op.result.shape.columns;
  if (ids.kind == Ref::Kind::Io && Io(ids.index) == Io::Positions && to.rows_per_sequence(op.result) > 1)
    to.refuse(op, "rows of positions", "positions of a chunk are not listed");
  if (is_streamed(to.weights(), op)) {
    const RepackedFormat& repacked = *find_repacked(format);
    Launch& launch = to.launch(
        op, "repacked_row_lookup", dim(ceil_div(ceil_div(columns, kGroup), kLookupThreads), rows), dim(kLookupThreads),
        {to.out(op.result), to.in(op.operands[0]), to.in(ids), rows, columns, op.operands[0].shape.rows});
    launch.template_arguments = {std::string(repacked.name)};
    launch.includes = {std::string(repacked.file)};
    return;
  }
  with_format(to.launch(op, "row_lookup", dim(ceil_div(ceil_div(columns, kGroup), kLookupThreads), rows),
                        dim(kLookupThreads), {to.out(op.result), to.in(op.operands[0]), to.in(ids), rows, columns}),
              format);
}

void lower_matrix_product(Lowering& to, const StepOp& op) {
  if (op.parts.any()) return lower_product(to, op);
  if (is_streamed(to.weights(), op)) return lower_streamed_product(to, op);
  const Format& format = format_of(to, op);
  const Ref &w = op.operands[0], &x = op.operands[1];
  if (shares_floats(to, {&op}, x, false)) return lower_float_product(to, op);
  if (on_int8_tiles(to, op, x.shape.rows)) return lower_int8_product(to, op);
  const int64_t rows = w.shape.rows, tokens = x.shape.rows;
  to.counted(op, rows * tokens);
  const Arg activations = to.activations(op, x, w.shape.columns, format);
  with_format(
      to.launch(op, "matrix_product" + to.product_suffix(format), dim(product_blocks(rows, 1, to.chip())),
                dim(kProductThreads), {to.out(op.result), to.in(w), activations, rows, w.shape.columns, tokens}),
      format);
}

void lower_head_product(Lowering& to, const StepOp& op) {
  if (on_int8_tiles(to, op, op.operands[1].shape.rows)) return lower_int8_head_product(to, op);
  const Format& format = format_of(to, op);
  const Ref &w = op.operands[0], &x = op.operands[1];
  const int64_t heads = w.shape.experts, rows = w.shape.rows;
  const Arg activations = to.activations(op, x, w.shape.columns, format);
  with_format(to.launch(op, "head_product" + to.product_suffix(format),
                        dim(product_blocks(rows, heads, to.chip()), heads), dim(kProductThreads),
                        {to.out(op.result), to.in(w), activations, heads, rows, w.shape.columns, x.shape.rows}),
              format);
}

void lower_expert_product(Lowering& to, const StepOp& op) {
  if (op.parts.any()) return lower_chosen_product(to, op);
  const Format& format = format_of(to, op);
  const Ref &w = op.operands[0], &x = op.operands[1], &chosen = op.operands[2];
  const int64_t count = to.counted(op, chosen.shape.elements()), rows = w.shape.rows;
  const int64_t x_rows = x.shape.elements() / w.shape.columns;  // one row a token, or one a choice
  const Arg activations = to.activations(op, x, w.shape.columns, format);
  with_format(
      to.launch(op, "expert_product" + to.product_suffix(format), dim(product_blocks(rows, count, to.chip()), count),
                dim(kProductThreads),
                {to.out(op.result), to.in(w), activations, to.in(chosen), count, rows, w.shape.columns, x_rows}),
      format);
}

}  // namespace lane
