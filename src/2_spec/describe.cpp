#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "describe.h"
#include "lane/error.h"

namespace lane {
namespace {

const Architecture& row_of(const Checkpoint& checkpoint) {
  const auto name = checkpoint.string("general.architecture");
  if (!name)
    throw CheckpointError(printable(checkpoint.shards.front().path, 4096), checkpoint.shards.front().data_start,
                          "no key 'general.architecture'", "a string");
  if (const Architecture* row = find_architecture(*name)) return *row;
  std::string accepted;
  for (const Architecture& row : architectures())
    accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", row.name);
  const std::string_view missing = missing_mathematics(*name);
  throw NotYetError(fmt::format("architecture '{}'{}{}; accepted are {}", printable(*name),
                                missing.empty() ? "" : ", which needs ", missing, accepted));
}

int64_t chosen_context(const Options& options, int64_t model_ctx) {
  constexpr int64_t kDefault = 4096;
  if (options.ctx == 0) return std::min(model_ctx, kDefault);
  if (options.ctx < 1 || options.ctx > model_ctx)
    throw UsageError(fmt::format("a context of {}; accepted is 1 to the model's {}", options.ctx, model_ctx));
  return options.ctx;
}

void check_causal(const Source& source) {
  if (!source.keys.boolean("attention.causal").value_or(true))
    throw NotYetError("attention that sees later tokens (attention.causal)");
}

Source read_source(const Architecture& row, Keys& keys, Tensors& tensors, Refusals& refusals, const Options& options) {
  Source source{.row = row, .keys = keys, .tensors = tensors, .refusals = refusals};
  const auto required = [&](std::string_view key, Range range = {}) {
    return refusals.attempt([&] { return keys.required_integer(key, range); });
  };
  source.layers = source.blocks = required("block_count", {.high = 512});
  source.layers -= refusals.attempt([&] {
    return keys.integer("nextn_predict_layers", {.low = 0, .high = std::max<int64_t>(source.blocks - 1, 0)})
        .value_or(0);
  });
  source.width = required("embedding_length");
  source.model_ctx = required("context_length");
  source.ctx = chosen_context(options, source.model_ctx);
  source.epsilon = refusals.attempt([&] {
    return keys.required_positive(row.norm == NormKind::Rms ? "attention.layer_norm_rms_epsilon"
                                                            : "attention.layer_norm_epsilon");
  });
  return source;
}

bool is_parallel(const Source& source, const Block& block) {
  if (source.row.residual != Residual::ByNorm) return source.row.residual == Residual::Parallel;
  const bool parallel = !source.tensors.has(block.tensor(std::string(source.row.ffn_norm) + ".weight"));
  if (source.keys.boolean("use_parallel_residual").value_or(parallel) && !parallel)
    throw NotYetError("a parallel residual with a norm for each branch (use_parallel_residual)");
  return parallel;
}

Layer layer(const Source& source, int64_t index) {
  const Block block{index};
  Refusals& refusals = source.refusals;
  Layer result{.mixer = refusals.attempt([&] { return mixer(source, block); }),
               .feed_forward = refusals.attempt([&] { return feed_forward(source, block); })};
  result.mixer_norm = layer_norm(source, block, source.row.mixer_norm);
  result.mixer_post_norm = layer_norm(source, block, source.row.mixer_post_norm);
  result.parallel = refusals.attempt([&] { return is_parallel(source, block); });
  if (!result.parallel) result.ffn_norm = layer_norm(source, block, source.row.ffn_norm);
  result.ffn_post_norm = layer_norm(source, block, source.row.ffn_post_norm);
  return result;
}

// Ids that the vocabulary names: the embedding table may have more rows, and not fewer.
int64_t vocabulary(const Source& source, int64_t rows) {
  const Checkpoint& checkpoint = source.tensors.checkpoint();
  const MetaEntry* entry = checkpoint.find("tokenizer.ggml.tokens");
  const auto* list = entry ? std::get_if<MetaArray>(&entry->value) : nullptr;
  const int64_t tokens = list ? int64_t(list->count) : rows;
  if (tokens < 1 || tokens > rows)
    throw CheckpointError(printable(checkpoint.shards.front().path, 4096), entry->offset,
                          fmt::format("'tokenizer.ggml.tokens' with {} tokens", tokens),
                          fmt::format("1 to the {} rows of 'token_embd.weight'", rows));
  const auto said = source.keys.integer("vocab_size");
  if (said && *said != tokens && *said != rows)
    source.keys.refuse("vocab_size", fmt::format("{}", *said), fmt::format("the {} rows of 'token_embd.weight'", rows));
  return tokens;
}

double scale(const Source& source, Scale kind, std::string_view key, double otherwise) {
  // Where there is a default, a file's 0 stands for it.
  const auto value = [&] {
    if (otherwise == 0) return source.keys.required_positive(key);
    const double said = source.keys.real(key).value_or(0);
    return said == 0 ? otherwise : said;
  };
  switch (kind) {
    case Scale::None:
      return 1;
    case Scale::RootOfWidth:
      return std::sqrt(double(source.width));
    case Scale::Key:
      return value();
    case Scale::InverseKey:
      return 1 / value();
    case Scale::OverDepth:
      return otherwise / std::sqrt(double(source.layers));
    case Scale::OverWidth:
      return otherwise / double(source.width);
  }
  return 1;
}

void describe_ends(const Source& source, ModelSpec& spec) {
  const Architecture& row = source.row;
  Tensors& tensors = source.tensors;
  spec.rows = tensors.rows_of("token_embd.weight");
  spec.embedding = tensors.matrix("token_embd.weight", {.rows = spec.rows, .columns = source.width});
  spec.tokens = vocabulary(source, spec.rows);
  spec.final_norm = norm(source, std::string(row.final_norm), source.width);
  spec.head.matrix = tensors.matrix(row.head, "output.weight", {.rows = spec.rows, .columns = source.width});
  if (!spec.head) spec.head.matrix = spec.embedding;
  spec.head.bias = tensors.vector(row.head_bias, "output.bias", {.columns = spec.rows});
  spec.embedding_scale = scale(source, row.embedding_scale, "embedding_scale", row.embedding_scale_default);
  spec.residual_scale = scale(source, row.residual_scale, "residual_scale", row.residual_scale_default);
  spec.logit_scale = scale(source, row.logit_scale, "logit_scale", row.logit_scale_default);
  if (row.logit_cap_key || row.logit_cap > 0)
    spec.logit_cap = source.keys.positive("final_logit_softcapping").value_or(row.logit_cap);
}

ModelSpec describe(const Source& source) {
  ModelSpec spec{.architecture = &source.row, .ctx = source.ctx, .model_ctx = source.model_ctx, .width = source.width};
  source.refusals.attempt([&] { check_causal(source); });
  source.refusals.attempt([&] { describe_ends(source, spec); });
  for (int64_t index = 0; index < source.layers; ++index) spec.layers.push_back(layer(source, index));
  return spec;
}

// Each key and each tensor that no part asked for.
void refuse_the_rest(const Source& source) {
  source.keys.refuse_the_rest(source.refusals);
  source.tensors.refuse_the_rest(source.layers, source.blocks - source.layers);
}

}  // namespace

ModelSpec describe_model(const Checkpoint& checkpoint, const Options& options) {
  Refusals refusals(Refusals::Mode::Throw);
  const Architecture& row = row_of(checkpoint);
  Keys keys(checkpoint, row.name);
  Tensors tensors(checkpoint, refusals);
  const Source source = read_source(row, keys, tensors, refusals, options);
  ModelSpec spec = describe(source);
  refuse_the_rest(source);
  spec.left_out = tensors.left_out(source.layers, source.blocks - source.layers);
  return spec;
}

Survey survey_model(const Checkpoint& checkpoint, const Options& options) {
  Refusals refusals(Refusals::Mode::Keep);
  Survey survey;
  const Architecture* row = refusals.attempt([&] { return &row_of(checkpoint); });
  if (row) {
    Keys keys(checkpoint, row->name);
    Tensors tensors(checkpoint, refusals);
    const Source source = read_source(*row, keys, tensors, refusals, options);
    // Without the model's own numbers every layer would be refused, and for nothing of its own.
    if (!refusals.cut_short()) describe(source);
    // What a part that gave up would have read is not known to be unread.
    if (!refusals.cut_short()) refuse_the_rest(source);
    survey.left_out = tensors.left_out(source.layers, source.blocks - source.layers);
    for (const TensorInfo& info : checkpoint.tensors)
      if (tensors.taken(info.name)) survey.read.emplace(info.name);
  }
  survey.refusals = refusals.kept();
  survey.whole = !refusals.cut_short();
  return survey;
}

}  // namespace lane
