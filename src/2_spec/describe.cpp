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
    source.keys.refuse_meaning("attention.causal", "attention that sees later tokens");
}

constexpr Range kBlocks{.high = 512};

// Columns of the embedding table, where the last norm's are as many; of models whose norms have no tensors, where the
// first layer's attention says so.
Size shown_width(const Source& source) {
  const Size table = source.tensors.columns_of("token_embd.weight");
  const Size other = source.row.norm_gain == Presence::Absent
                         ? source.tensors.rows_of("blk.0.attn_output.weight")
                         : source.tensors.columns_of(std::string(source.row.final_norm) + ".weight");
  return known(table, other) && other.is(table.value()) ? table : Size::unknown();
}

// Numbers of the whole model. Where they are refused, as tensors have them: without these every layer would be refused,
// and for nothing of its own.
void read_sizes(Source& source) {
  source.blocks = source.keys.required_integer("block_count", kBlocks);
  if (!source.blocks.known())
    source.blocks = Size::unknown(std::clamp(source.tensors.blocks(), kBlocks.low, kBlocks.high));
  source.width = source.keys.required_integer("embedding_length");
  if (!source.width.known()) source.width = shown_width(source);
  const Size context = source.keys.required_integer("context_length");
  source.model_ctx = context.known() ? context.value() : Range{}.high;
}

// Trailing blocks that predict further tokens: those whose tensors tell, and those that the file has no tensor of.
int64_t extra_blocks(const Source& source) {
  constexpr std::string_view kKey = "nextn_predict_layers";
  const int64_t most = source.blocks.value() - 1;
  const int64_t shown = std::min(source.tensors.trailing_blocks(source.blocks.value(), "nextn."), most);
  const auto said = source.keys.integer(kKey, {.low = 0, .high = most});
  if (said && !said->known()) return shown;
  const int64_t count = said ? said->value() : 0;
  const bool takes_layers = count > shown && source.tensors.blocks() > source.blocks.value() - count;
  if (count >= shown && !takes_layers) return count;
  source.keys.refuse(kKey, fmt::format("{}", count), fmt::format("{}, as many blocks end in nextn tensors", shown));
  return shown;
}

// block_count is of all blocks, those included that predict further tokens. Blocks of which the file has no tensor are
// missed at once, and not tensor by tensor.
void count_blocks(Source& source) {
  const int64_t named = source.tensors.blocks();
  const bool more = named > source.blocks.value() && named <= kBlocks.high;
  if (more && source.tensors.trailing_blocks(named, "nextn.") > 0) {
    source.keys.refuse_size("block_count", fmt::format("{}", source.blocks.value()),
                            fmt::format("{}, blocks with nextn tensors included", named));
    source.blocks = Size::unknown(named);
  }
  const int64_t extra = extra_blocks(source);
  source.layers = source.blocks.value() - extra;
  if (source.layers <= named) return;
  source.keys.refuse_size("block_count", fmt::format("{}", source.blocks.value()),
                          fmt::format("at most {}, which the file has tensors of", named + extra));
  source.layers = named;
  source.blocks = Size::unknown(named + extra);
}

Source read_source(const Architecture& row, Keys& keys, Tensors& tensors, Refusals& refusals, const Options& options) {
  Source source{.row = row, .keys = keys, .tensors = tensors, .refusals = refusals};
  read_sizes(source);
  count_blocks(source);
  source.ctx = chosen_context(options, source.model_ctx);
  source.epsilon = keys.required_positive(row.norm == NormKind::Rms ? "attention.layer_norm_rms_epsilon"
                                                                    : "attention.layer_norm_epsilon");
  return source;
}

bool is_parallel(const Source& source, const Block& block) {
  if (source.row.residual != Residual::ByNorm) return source.row.residual == Residual::Parallel;
  const bool parallel = !source.tensors.has(block.tensor(std::string(source.row.ffn_norm) + ".weight"));
  if (source.keys.boolean("use_parallel_residual").value_or(parallel) && !parallel)
    source.keys.refuse_meaning("use_parallel_residual", "a parallel residual with a norm for each branch");
  return parallel;
}

Layer layer(const Source& source, int64_t index) {
  const Block block{index};
  Layer result{.mixer = mixer(source, block), .feed_forward = feed_forward(source, block)};
  result.mixer_norm = layer_norm(source, block, source.row.mixer_norm);
  result.mixer_post_norm = layer_norm(source, block, source.row.mixer_post_norm);
  result.parallel = is_parallel(source, block);
  if (!result.parallel) result.ffn_norm = layer_norm(source, block, source.row.ffn_norm);
  result.ffn_post_norm = layer_norm(source, block, source.row.ffn_post_norm);
  return result;
}

// Ids that the vocabulary names: the embedding table may have more rows, and not fewer.
Size vocabulary(const Source& source, Size rows) {
  const Checkpoint& checkpoint = source.tensors.checkpoint();
  const Shard& shard = checkpoint.shards.front();
  const MetaEntry* entry = checkpoint.find("tokenizer.ggml.tokens");
  const auto* list = entry ? std::get_if<MetaArray>(&entry->value) : nullptr;
  const Size tokens = list ? Size(int64_t(list->count)) : rows;
  if (rows.known() && (tokens.value() < 1 || tokens.value() > rows.value()))
    source.refusals.add(CheckpointError(printable(shard.path, 4096), entry ? entry->offset : shard.data_start,
                                        fmt::format("'tokenizer.ggml.tokens' with {} tokens", tokens.value()),
                                        fmt::format("1 to the {} rows of 'token_embd.weight'", rows.value())));
  const auto said = source.keys.integer("vocab_size");
  if (said && known(*said, rows) && !said->is(tokens.value()) && !said->is(rows.value()))
    source.keys.refuse("vocab_size", fmt::format("{}", said->value()),
                       fmt::format("the {} rows of 'token_embd.weight'", rows.value()));
  return tokens;
}

// What the key says: 1 where it says 0, `otherwise` where the file has none and the row knows what that means.
double said_scale(const Source& source, std::string_view key, double otherwise) {
  const auto said = source.keys.not_negative(key);
  if (said == 0.0) return 1;
  if (!said && otherwise == 0) source.keys.refuse_missing(key, "a float");
  return said.value_or(otherwise != 0 ? otherwise : 1);
}

double scale(const Source& source, Scale kind, std::string_view key, double otherwise) {
  switch (kind) {
    case Scale::None:
      return 1;
    case Scale::RootOfWidth:
      return std::sqrt(double(source.width.value()));
    case Scale::Key:
      return said_scale(source, key, otherwise);
    case Scale::InverseKey:
      return 1 / source.keys.required_positive(key);
    case Scale::Fixed: {
      const double said = source.keys.not_negative(key).value_or(otherwise);
      if (said != otherwise && said != 0) source.keys.refuse_unread(key, fmt::format("{}", said));
      return otherwise;
    }
    case Scale::OverDepth:
      return otherwise / std::sqrt(double(source.layers));
    case Scale::OverWidth:
      return otherwise / double(source.width.value());
  }
  return 1;
}

void describe_ends(const Source& source, ModelSpec& spec) {
  const Architecture& row = source.row;
  Tensors& tensors = source.tensors;
  const Size rows = tensors.rows_of("token_embd.weight");
  spec.rows = rows.value();
  spec.embedding = tensors.matrix("token_embd.weight", {.rows = rows, .columns = source.width});
  spec.tokens = vocabulary(source, rows).value();
  spec.final_norm = norm(source, std::string(row.final_norm), source.width);
  spec.head.matrix = tensors.matrix(row.head, "output.weight", {.rows = rows, .columns = source.width});
  if (!spec.head) spec.head.matrix = spec.embedding;
  spec.head.bias = tensors.vector(row.head_bias, "output.bias", {.columns = rows});
  spec.embedding_scale = scale(source, row.embedding_scale, "embedding_scale", row.embedding_scale_default);
  spec.residual_scale = scale(source, row.residual_scale, "residual_scale", row.residual_scale_default);
  spec.logit_scale = scale(source, row.logit_scale, "logit_scale", row.logit_scale_default);
  if (row.logit_cap_key || row.logit_cap > 0)
    spec.logit_cap = source.keys.not_negative("final_logit_softcapping").value_or(row.logit_cap);
}

ModelSpec describe(const Source& source) {
  ModelSpec spec{
      .architecture = &source.row, .ctx = source.ctx, .model_ctx = source.model_ctx, .width = source.width.value()};
  check_causal(source);
  describe_ends(source, spec);
  for (int64_t index = 0; index < source.layers; ++index) spec.layers.push_back(layer(source, index));
  return spec;
}

// Each key and each tensor that no part asked for.
void refuse_the_rest(const Source& source) {
  source.keys.refuse_the_rest();
  source.tensors.refuse_the_rest(source.layers, source.blocks.value() - source.layers);
}

}  // namespace

ModelSpec describe_model(const Checkpoint& checkpoint, const Options& options) {
  Refusals refusals(Refusals::Mode::Throw);
  const Architecture& row = row_of(checkpoint);
  Keys keys(checkpoint, row.name, refusals);
  Tensors tensors(checkpoint, refusals);
  const Source source = read_source(row, keys, tensors, refusals, options);
  ModelSpec spec = describe(source);
  refuse_the_rest(source);
  spec.left_out = tensors.left_out(source.layers, source.blocks.value() - source.layers);
  return spec;
}

Survey survey_model(const Checkpoint& checkpoint, const Options& options) {
  Refusals refusals(Refusals::Mode::Keep);
  Survey survey;
  const Architecture* row = refusals.attempt([&] { return &row_of(checkpoint); });
  survey.known = row != nullptr;
  if (row) {
    Keys keys(checkpoint, row->name, refusals);
    Tensors tensors(checkpoint, refusals);
    const Source source = read_source(*row, keys, tensors, refusals, options);
    describe(source);
    refuse_the_rest(source);
    survey.nextn_blocks = source.blocks.value() - source.layers;
    survey.left_out = tensors.left_out(source.layers, survey.nextn_blocks);
    survey.misshapen = tensors.misshapen();
    survey.unshaped = tensors.unshaped();
    for (const TensorInfo& info : checkpoint.tensors)
      if (tensors.taken(info.name)) survey.read.emplace(info.name);
  }
  survey.refusals = refusals.kept();
  return survey;
}

}  // namespace lane
