#include "tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lane/error.h"

namespace lane {
namespace {

std::string dims_text(int64_t experts, int64_t rows, int64_t columns) {
  if (experts != 1) return fmt::format("{} x {} x {}", experts, rows, columns);
  return rows != 1 ? fmt::format("{} x {}", rows, columns) : fmt::format("{}", columns);
}

std::string dims_text(const TensorInfo& info) {
  std::string text;
  for (int i = std::max(info.dims, 1) - 1; i >= 0; --i) text += fmt::format("{}{}", info.ne[i], i > 0 ? " x " : "");
  return text;
}

// N of "blk.N.…", else -1.
int64_t block_of(std::string_view name) {
  if (!name.starts_with("blk.")) return -1;
  int64_t block = -1;
  std::from_chars(name.data() + 4, name.data() + name.size(), block);
  return block;
}

}  // namespace

int64_t product(const Checkpoint& checkpoint, Refusals& refusals, std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (int64_t factor : factors) {
    if (!__builtin_mul_overflow(result, factor, &result)) continue;
    refusals.add(CheckpointError(printable(checkpoint.shards.front().path, 4096), checkpoint.shards.front().data_start,
                                 "metadata whose product is past 2^63", "sizes of arrays"));
    refusals.doubt();
    return 1;
  }
  return result;
}

CheckpointError Tensors::missing(const std::string& name) const {
  return {printable(checkpoint_.shards.front().path, 4096), checkpoint_.shards.front().data_start,
          fmt::format("no tensor '{}'", name), "it, as the architecture needs"};
}

Weight Tensors::take(const std::string& name, Dims dims, bool matrix) {
  const Weight weight{name, dims.experts, dims.rows, dims.columns, matrix};
  taken_.insert(name);
  const TensorInfo* info = checkpoint_.tensor(name);
  if (!info) {
    refusals_.add(missing(name));
    return weight;
  }
  const bool same = info->ne[0] == uint64_t(dims.columns) && info->ne[1] == uint64_t(dims.rows) &&
                    info->ne[2] == uint64_t(dims.experts) && info->ne[3] == 1;
  if (same || refusals_.doubted()) return weight;
  misshapen_.insert(name);
  refusals_.add(ShapeError(name, dims_text(dims.experts, dims.rows, dims.columns) + " by the metadata",
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

int64_t Tensors::rows_of(const std::string& name) const {
  const TensorInfo* info = checkpoint_.tensor(name);
  return info ? int64_t(info->rows()) : 0;
}

int64_t Tensors::blocks() const {
  int64_t most = 0;
  for (const TensorInfo& info : checkpoint_.tensors) most = std::max(most, block_of(info.name) + 1);
  return most;
}

bool Tensors::is_left_out(const TensorInfo& info, int64_t layers, int64_t extra) const {
  const bool vision = info.name.starts_with("v.") || info.name.starts_with("mm.");
  const int64_t block = block_of(info.name);
  return !taken_.contains(info.name) && (vision || (block >= layers && block < layers + extra));
}

std::vector<std::string> Tensors::left_out(int64_t layers, int64_t extra) const {
  std::vector<std::string> names;
  for (const TensorInfo& info : checkpoint_.tensors) {
    if (is_left_out(info, layers, extra)) names.emplace_back(info.name);
  }
  return names;
}

void Tensors::refuse_the_rest(int64_t layers, int64_t extra) const {
  for (const TensorInfo& info : checkpoint_.tensors) {
    if (taken_.contains(info.name) || is_left_out(info, layers, extra)) continue;
    refusals_.add(CheckpointError(printable(checkpoint_.shards[size_t(info.shard)].path, 4096), info.info_offset,
                                  fmt::format("tensor '{}', which the architecture does not use", printable(info.name)),
                                  "only tensors that the model's step reads"));
  }
}

}  // namespace lane
