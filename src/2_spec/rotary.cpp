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
      return windowed || window_size(source) == 0;
    case RotaryLayers::Finetuned:
      return source.keys.boolean("rope.scaling.finetuned").value_or(true);
  }
  return true;
}

double original_context(const Source& source) {
  return double(source.keys.integer("rope.scaling.original_context_length").value_or(source.model_ctx));
}

// Factors that divide each pair's frequency. Long ones are for a context, not for a prompt: the choice is made here,
// once.
Weight factors(const Source& source, int64_t turned) {
  if (!source.row.frequency_factors) return {};
  const Tensors::Dims dims{.columns = turned / 2};
  if (source.tensors.has("rope_freqs.weight")) return source.tensors.vector("rope_freqs.weight", dims);
  if (!source.tensors.has("rope_factors_long.weight") && !source.tensors.has("rope_factors_short.weight")) return {};
  // Both are taken, so that the one not chosen is neither unused nor unchecked.
  const Weight long_factors = source.tensors.vector("rope_factors_long.weight", dims);
  const Weight short_factors = source.tensors.vector("rope_factors_short.weight", dims);
  return double(source.ctx) > original_context(source) ? long_factors : short_factors;
}

Rotary::Yarn yarn(const Source& source, double factor) {
  Rotary::Yarn result{.factor = factor, .original = original_context(source)};
  result.fast = source.keys.positive("rope.scaling.yarn_beta_fast").value_or(32);
  result.slow = source.keys.positive("rope.scaling.yarn_beta_slow").value_or(1);
  return result;
}

// What multiplies cosine and sine.
double yarn_magnitude(const Source& source, double factor) {
  const double log_factor = factor > 1 ? std::log(factor) : 0;
  const double multiplier = yarn_log_multiplier(source);
  if (multiplier != 0 && source.row.yarn_log == YarnLog::Scores) return 1;
  return (1 + 0.1 * log_factor) / (1 + 0.1 * multiplier * log_factor);
}

void scale(const Source& source, Rotary& rotary) {
  const auto type = source.keys.string("rope.scaling.type").value_or("linear");
  const double old_key =
      source.keys.positive("rope.scale_linear").value_or(1);  // what files said before there were types
  const double factor = source.keys.positive("rope.scaling.factor").value_or(old_key);
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope")
    source.refusals.add(NotYetError(fmt::format("'{}' = '{}'; accepted are none, linear, yarn and longrope",
                                                source.keys.full("rope.scaling.type"), printable(type))));
  // What only yarn asks for says nothing without it.
  for (std::string_view key : {"original_context_length", "yarn_beta_fast", "yarn_beta_slow"})
    source.keys.ignore(fmt::format("rope.scaling.{}", key));
  if (source.row.yarn_log != YarnLog::Unread) source.keys.ignore("rope.scaling.yarn_log_multiplier");
  if (type == "yarn") {
    if (rotary.base <= 1)
      source.keys.refuse("rope.freq_base", fmt::format("{}", rotary.base), "a base over 1 for yarn");
    rotary.yarn = yarn(source, factor);
    rotary.magnitude *= yarn_magnitude(source, factor);
  } else if (type != "none") {
    rotary.linear = factor;
  }
}

int64_t turned_values(const Source& source, int64_t width) {
  const int64_t turned = source.keys.integer("rope.dimension_count", {.low = 0}).value_or(width);
  if (turned % 2 != 0 || turned > width)
    source.keys.refuse_size("rope.dimension_count", fmt::format("{}", turned),
                            fmt::format("an even number, at most the {} values of a head", width));
  return turned;
}

// Rotary sections of images: text stands at one position in all of them, so they only have to add up.
void check_sections(const Source& source, int64_t turned) {
  if (source.row.sections == Presence::Absent) return;
  const auto sections = source.keys.by_layer("rope.dimension_sections", 4, {.low = 0});
  int64_t sum = 0;
  for (int64_t section : sections.value_or(std::vector<int64_t>{})) sum += section;
  if (sum != turned / 2)
    source.keys.refuse_size("rope.dimension_sections", fmt::format("a sum of {}", sum),
                            fmt::format("four numbers that add up to {}", turned / 2));
}

}  // namespace

int64_t window_size(const Source& source) {
  const bool other_model = source.row.window_blocks != 0 && source.row.window_blocks != source.layers;
  if (source.row.ignores_window || other_model) source.keys.ignore("attention.sliding_window");
  if (other_model) source.keys.ignore("attention.sliding_window_pattern");
  if (source.row.window == Presence::Absent || other_model) return 0;
  const auto key = source.keys.integer("attention.sliding_window", {.low = 0});
  if (!key && source.row.window == Presence::Required) source.keys.required_integer("attention.sliding_window");
  return key.value_or(source.row.window_default);
}

double yarn_log_multiplier(const Source& source) {
  if (source.row.yarn_log == YarnLog::Unread) return 0;
  constexpr std::string_view kKey = "rope.scaling.yarn_log_multiplier";
  const double multiplier = source.keys.real(kKey).value_or(0);
  if (multiplier < 0) source.keys.refuse(kKey, fmt::format("{}", multiplier), "0 or more");
  return multiplier;
}

std::optional<Rotary> rotary(const Source& source, const Block& block, int64_t width, bool windowed) {
  const double base = source.keys.positive("rope.freq_base").value_or(10000);
  Rotary result{.width = width, .turned = turned_values(source, width), .base = base, .pairing = source.row.pairing};
  check_sections(source, result.turned);
  result.factors = factors(source, result.turned);
  result.magnitude = source.keys.positive("rope.scaling.attn_factor").value_or(1);
  scale(source, result);
  if (windowed && source.row.window_base > 0)
    result.base = source.keys.positive("rope.freq_base_swa").value_or(source.row.window_base);
  if (windowed && source.row.window_unscaled) {
    result.linear = result.magnitude = 1;
    result.yarn.reset();
  }
  if (!is_rotated(source, block, windowed) || result.turned == 0) return std::nullopt;
  return result;
}

}  // namespace lane
