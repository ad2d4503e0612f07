// Rotary embeddings and their scalings. Formulas: docs/logos.md, "rotation".
#include <fmt/format.h>

#include <cmath>

#include "describe.h"
#include "lane/error.h"

namespace lane {
namespace {

bool is_rotated(const Source& source, const Block& block, bool windowed) {
  const int64_t period = source.row.unrotated_period;
  if (period > 0 && (block.index + 1) % period == 0) return false;
  switch (source.row.rotary_layers) {
    case RotaryLayers::All:
      return true;
    case RotaryLayers::Windowed:
      return windowed || window_size(source).is(0);
    case RotaryLayers::Finetuned:
      return source.keys.boolean("rope.scaling.finetuned").value_or(true);
  }
  return true;
}

// Factors that divide each pair's frequency. Long ones are for a context, not for a prompt: the choice is made here,
// once.
Weight factors(const Source& source, Size turned) {
  if (!source.row.frequency_factors) return {};
  const Tensors::Dims dims{.columns = turned / 2};
  if (source.tensors.has("rope_freqs.weight")) return source.tensors.vector("rope_freqs.weight", dims);
  if (!source.tensors.has("rope_factors_long.weight") && !source.tensors.has("rope_factors_short.weight")) return {};
  // Both are taken, so that the one not chosen is neither unused nor unchecked.
  const Weight long_factors = source.tensors.vector("rope_factors_long.weight", dims);
  const Weight short_factors = source.tensors.vector("rope_factors_short.weight", dims);
  return source.ctx > original_context(source) ? long_factors : short_factors;
}

// What the key says where the row reads it; where it does not, `otherwise`, which is all that the key may say.
double beta(const Source& source, std::string_view key, double otherwise) {
  const double said = source.keys.positive(key).value_or(otherwise);
  if (!source.row.yarn_beta_keys && said != otherwise) source.keys.refuse_unread(key, fmt::format("{}", said));
  return said;
}

Rotary::Yarn yarn(const Source& source, double factor) {
  return {.factor = factor,
          .original = double(original_context(source)),
          .fast = beta(source, "rope.scaling.yarn_beta_fast", 32),
          .slow = beta(source, "rope.scaling.yarn_beta_slow", 1)};
}

// What multiplies cosine and sine.
double yarn_magnitude(const Source& source, double factor) {
  const double log_factor = factor > 1 ? std::log(factor) : 0;
  const double multiplier = yarn_log_multiplier(source);
  if (multiplier != 0 && source.row.yarn_log == YarnLog::Scores) return 1;
  return (1 + 0.1 * log_factor) / (1 + 0.1 * multiplier * log_factor);
}

double said_factor(const Source& source) {
  const double old_key = source.keys.not_negative("rope.scale_linear").value_or(1);  // of files without types
  return source.keys.not_negative("rope.scaling.factor").value_or(old_key);
}

void scale(const Source& source, Rotary& rotary) {
  constexpr std::string_view kType = "rope.scaling.type";
  const auto said_type = source.keys.string(kType);
  const std::string_view type = said_type.value_or("linear");
  const double said = said_factor(source);
  const double factor = said == 0 ? 1 : said;
  const bool known_type = type == "none" || type == "linear" || type == "yarn" || type == "longrope";
  if (!known_type)
    source.refusals.add(NotYetError(fmt::format("'{}' = '{}'; accepted are none, linear, yarn and longrope",
                                                source.keys.full(kType), printable(type))));
  // What only yarn asks for says nothing without it.
  for (std::string_view key : {"original_context_length", "yarn_beta_fast", "yarn_beta_slow"})
    source.keys.ignore(fmt::format("rope.scaling.{}", key));
  if (source.row.yarn_log != YarnLog::Unread) source.keys.ignore("rope.scaling.yarn_log_multiplier");
  // Where the type is refused, so that what yarn asks for is looked at.
  if (type == "yarn" || !known_type || source.keys.refused(kType, said_type)) {
    if (rotary.base <= 1 && type == "yarn")
      source.keys.refuse("rope.freq_base", fmt::format("{}", rotary.base), "a base over 1 for yarn");
    rotary.yarn = yarn(source, factor);
    rotary.magnitude *= yarn_magnitude(source, factor);
  } else if (type != "none") {
    rotary.linear = factor;
  }
}

Size turned_values(const Source& source, Size width) {
  const Size turned = source.keys.integer("rope.dimension_count", {.low = 0}).value_or(width);
  if (!known(turned, width) || (turned.value() % 2 == 0 && turned.value() <= width.value())) return turned;
  return source.keys.refuse_size("rope.dimension_count", fmt::format("{}", turned.value()),
                                 fmt::format("an even number, at most the {} values of a head", width.value()));
}

// Rotary sections of images: text stands at one position in all of them, so they only have to add up.
void check_sections(const Source& source, Size turned) {
  if (source.row.sections == Presence::Absent) return;
  constexpr std::string_view kKey = "rope.dimension_sections";
  const auto sections = source.keys.by_layer(kKey, 4, {.low = 0});
  if (!sections) {
    source.keys.refuse_missing(kKey, "four numbers that add up to half the values that are turned");
    return;
  }
  Size sum = 0;
  for (Size section : *sections) sum = sum + section;
  if (known(sum, turned) && !sum.is(turned.value() / 2))
    source.keys.refuse(kKey, fmt::format("a sum of {}", sum.value()),
                       fmt::format("four numbers that add up to {}", turned.value() / 2));
}

// A layer with a window has a base of its own, and not the scaling that stretches the others.
void adapt_to_window(const Source& source, Rotary& rotary) {
  if (source.row.window_base > 0) rotary.base = source.row.window_base;
  if (source.row.window_base_key) rotary.base = source.keys.positive("rope.freq_base_swa").value_or(rotary.base);
  if (source.row.window_scaling == WindowScaling::Same) return;
  rotary.linear = 1;
  rotary.yarn.reset();
  const bool multiplied = source.row.window_scaling == WindowScaling::Unstretched;
  rotary.magnitude = multiplied ? attention_factor(source) : 1;
}

}  // namespace

int64_t original_context(const Source& source) {
  return source.keys.integer("rope.scaling.original_context_length").value_or(source.model_ctx).value();
}

double attention_factor(const Source& source) { return source.keys.positive("rope.scaling.attn_factor").value_or(1); }

Size window_size(const Source& source) {
  const bool other_model = source.row.window_blocks != 0 && source.row.window_blocks != source.layers;
  if (source.row.ignores_window || other_model) source.keys.ignore("attention.sliding_window");
  if (other_model) source.keys.ignore("attention.sliding_window_pattern");
  if (source.row.window == Presence::Absent || other_model) return 0;
  // Where a model may be without windows, 0 says that this one is; elsewhere it is no width.
  const bool some = source.row.window == Presence::Required || source.row.window_default > 0;
  const auto key = source.keys.integer("attention.sliding_window", {.low = some ? 1 : 0});
  if (!key && source.row.window == Presence::Required)
    return source.keys.refuse_missing("attention.sliding_window", "an integer");
  return key.value_or(source.row.window_default);
}

double yarn_log_multiplier(const Source& source) {
  if (source.row.yarn_log == YarnLog::Unread) return 0;
  return source.keys.not_negative("rope.scaling.yarn_log_multiplier").value_or(0);
}

std::optional<Rotary> rotary(const Source& source, const Block& block, Size width, bool windowed) {
  const double base = source.keys.positive("rope.freq_base").value_or(10000);
  const Size turned = turned_values(source, width);
  Rotary result{.width = width.value(), .turned = turned.value(), .base = base, .pairing = source.row.pairing};
  check_sections(source, turned);
  result.factors = factors(source, turned);
  result.magnitude = attention_factor(source);
  scale(source, result);
  if (source.row.window_base_key) source.keys.ignore("rope.freq_base_swa");  // without a window it says nothing
  if (windowed) adapt_to_window(source, result);
  if (!is_rotated(source, block, windowed) || result.turned == 0) return std::nullopt;
  return result;
}

}  // namespace lane
