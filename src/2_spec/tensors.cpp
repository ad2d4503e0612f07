#include "tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lane/error.h"

namespace lane {
namespace {

std::string text(Size size) { return size.known() ? fmt::format("{}", size.value()) : "?"; }

std::string dims_text(const Tensors::Dims& dims) {
  if (!dims.experts.is(1)) return fmt::format("{} x {} x {}", text(dims.experts), text(dims.rows), text(dims.columns));
  return dims.rows.is(1) ? text(dims.columns) : fmt::format("{} x {}", text(dims.rows), text(dims.columns));
}

std::string dims_text(const TensorInfo& info) {
  std::string text;
  for (int i = std::max(info.dims, 1) - 1; i >= 0; --i) text += fmt::format("{}{}", info.ne[i], i > 0 ? " x " : "");
  return text;
}

// N of "blk.N.…", else -1.
int64_t block_of(std::string_view name) {
  if (!name.starts_with("blk.")) return -1;
  int32_t block = -1;  // also of a number that is none
  std::from_chars(name.data() + 4, name.data() + name.size(), block);
  return block;
}

}  // namespace

Size product(const Checkpoint& checkpoint, Refusals& refusals, std::initializer_list<Size> factors) {
  if (!std::ranges::all_of(factors, &Size::known)) return Size::unknown();
  int64_t result = 1;
  std::string found;
  bool fits = true;
  for (Size factor : factors) {
    fits = !__builtin_mul_overflow(result, factor.value(), &result) && fits;
    found += fmt::format("{}{}", found.empty() ? "" : " x ", factor.value());
  }
  if (fits) return result;
  refusals.add(CheckpointError(printable(checkpoint.shards.front().path, 4096), checkpoint.shards.front().data_start,
                               fmt::format("metadata that sizes an array {}", found), "a product below 2^63"));
  return Size::unknown();
}

CheckpointError Tensors::missing(const std::string& name) const {
  return {printable(checkpoint_.shards.front().path, 4096), checkpoint_.shards.front().data_start,
          fmt::format("no tensor '{}'", name), "it, as the architecture needs"};
}

Weight Tensors::take(const std::string& name, Dims dims, bool matrix) {
  const Weight weight{name, dims.experts.value(), dims.rows.value(), dims.columns.value(), matrix};
  taken_.insert(name);
  const TensorInfo* info = checkpoint_.tensor(name);
  if (!info) {
    refusals_.add(missing(name));
    return weight;
  }
  if (!known(dims.experts, dims.rows, dims.columns)) unshaped_.insert(name);
  const auto fits = [](Size size, uint64_t found) { return !size.known() || uint64_t(size.value()) == found; };
  if (fits(dims.columns, info->ne[0]) && fits(dims.rows, info->ne[1]) && fits(dims.experts, info->ne[2]) &&
      info->ne[3] == 1)
    return weight;
  misshapen_.insert(name);
  refusals_.add(ShapeError(name, dims_text(dims) + " by the metadata",
                           dims_text(*info) + " in " + printable(checkpoint_.shards[size_t(info->shard)].path, 4096),
                           ExitCode::Checkpoint));
  return weight;
}

Weight Tensors::matrix(const std::string& name, Dims dims) { return take(name, dims, true); }
Weight Tensors::vector(const std::string& name, Dims dims) { return take(name, dims, false); }

Weight Tensors::matrix(Presence presence, const std::string& name, Dims dims) {
  if (presence == Presence::Absent || (presence == Presence::Optional && !has(name))) return {};
  return matrix(name, dims);
}

Weight Tensors::vector(Presence presence, const std::string& name, Dims dims) {
  if (presence == Presence::Absent || (presence == Presence::Optional && !has(name))) return {};
  return vector(name, dims);
}

Linear Tensors::linear(const std::string& base, Dims dims, Presence bias) {
  return {matrix(base + ".weight", dims), vector(bias, base + ".bias", {1, dims.experts, dims.rows})};
}

Size Tensors::rows_of(const std::string& name) const {
  const TensorInfo* info = checkpoint_.tensor(name);
  return info ? Size(int64_t(info->rows())) : Size::unknown();
}

Size Tensors::columns_of(const std::string& name) const {
  const TensorInfo* info = checkpoint_.tensor(name);
  return info ? Size(int64_t(info->columns())) : Size::unknown();
}

int64_t Tensors::blocks() const {
  int64_t most = 0;
  for (const TensorInfo& info : checkpoint_.tensors) most = std::max(most, block_of(info.name) + 1);
  return most;
}

int64_t Tensors::trailing_blocks(int64_t blocks, std::string_view part) const {
  std::set<int64_t> found;
  for (const TensorInfo& info : checkpoint_.tensors) {
    const int64_t block = block_of(info.name);
    if (info.name.starts_with(fmt::format("blk.{}.{}", block, part))) found.insert(block);
  }
  int64_t count = 0;
  while (found.contains(blocks - 1 - count)) ++count;
  return count;
}

std::optional<LeftOut::Part> Tensors::left_out_part(const TensorInfo& info, int64_t layers, int64_t extra) const {
  if (taken_.contains(info.name)) return std::nullopt;
  if (info.name.starts_with("v.") || info.name.starts_with("mm.")) return LeftOut::Part::Vision;
  const int64_t block = block_of(info.name);
  return block >= layers && block < layers + extra ? std::optional(LeftOut::Part::Nextn) : std::nullopt;
}

std::vector<LeftOut> Tensors::left_out(int64_t layers, int64_t extra) const {
  std::vector<LeftOut> result;
  for (const TensorInfo& info : checkpoint_.tensors) {
    if (const auto part = left_out_part(info, layers, extra)) result.push_back({std::string(info.name), *part});
  }
  return result;
}

void Tensors::refuse_the_rest(int64_t layers, int64_t extra) const {
  for (const TensorInfo& info : checkpoint_.tensors) {
    if (taken_.contains(info.name) || left_out_part(info, layers, extra)) continue;
    refusals_.add(CheckpointError(printable(checkpoint_.shards[size_t(info.shard)].path, 4096), info.info_offset,
                                  fmt::format("tensor '{}', which the architecture does not use", printable(info.name)),
                                  "only tensors that the model's step reads"));
  }
}

}  // namespace lane
