// The phrases of a step, a row each. docs/logos.md gives each one's mathematics.
#include "lane/ops.h"

#include <algorithm>
#include <array>

namespace lane {
namespace {

using enum OpKind;
using K = OptionKey;

struct OptionRow {
  OptionKey key;
  std::string_view name;
  bool integer;
};

// In the order of OptionKey.
constexpr std::array kOptions = {
    OptionRow{K::Count, "count", true},
    OptionRow{K::Heads, "heads", true},
    OptionRow{K::Groups, "groups", true},
    OptionRow{K::Kept, "kept", true},
    OptionRow{K::Width, "width", true},
    OptionRow{K::ValueWidth, "value width", true},
    OptionRow{K::From, "from", true},
    OptionRow{K::Through, "through", true},
    OptionRow{K::Turned, "turned", true},
    OptionRow{K::Base, "base", false},
    OptionRow{K::Paired, "paired", true},
    OptionRow{K::Magnitude, "magnitude", false},
    OptionRow{K::Linear, "linear", false},
    OptionRow{K::Yarn, "yarn", false},
    OptionRow{K::Original, "original", true},
    OptionRow{K::Fast, "fast", false},
    OptionRow{K::Slow, "slow", false},
    OptionRow{K::Epsilon, "epsilon", false},
    OptionRow{K::By, "by", true},
    OptionRow{K::Normalised, "normalised", true},
    OptionRow{K::Factor, "factor", false},
    OptionRow{K::Length, "length", true},
    OptionRow{K::Scale, "scale", false},
    OptionRow{K::Window, "window", true},
    OptionRow{K::Limit, "limit", false},
    OptionRow{K::Slope, "slope", false},
    OptionRow{K::Tiled, "tiled", true},
};
static_assert(kOptions.size() == size_t(K::Tiled) + 1);

// kind, phrase, call, operands from and to, required options, optional ones. In the order of OpKind.
const std::vector<OpRow>& rows() {
  static const std::vector<OpRow> table = {
      {RowLookup, "row lookup", "rowLookup", 2, 2, {}, {}},
      {ScaledCopy, "scaled copy", "scaledCopy", 1, 1, {K::Factor}, {}},
      {Sum, "elementwise sum", "elementwiseSum", 2, 2, {}, {}},
      {Product, "elementwise product", "elementwiseProduct", 2, 2, {}, {}},
      {RmsNorm, "rms norm", "rmsNorm", 1, 3, {K::Epsilon}, {K::Width}},
      {LayerNorm, "layer norm", "layerNorm", 1, 3, {K::Epsilon}, {K::Width}},
      {LengthNorm, "length norm", "lengthNorm", 1, 1, {K::Width, K::Epsilon}, {}},
      {MatrixProduct, "matrix product", "matrixProduct", 2, 2, {}, {}},
      {HeadProduct, "head product", "headProduct", 2, 2, {K::Heads}, {}},
      {HeadSlice, "head slice", "headSlice", 1, 1, {K::Heads, K::Width, K::From, K::Through}, {}},
      {Join, "join", "join", 2, 2, {}, {}},
      {HeadJoin, "head join", "headJoin", 2, 2, {K::Heads}, {K::Width}},
      {RowSlice, "", "", 1, 1, {}, {}},
      {Rows, "", "", 1, 1 << 20, {}, {}},
      {Rotation,
       "rotation",
       "rotation",
       2,
       3,
       {K::Width, K::Turned, K::Base, K::Paired},
       {K::Magnitude, K::Linear, K::Yarn, K::Original, K::Fast, K::Slow}},
      {PositionScale, "position scale", "positionScale", 2, 2, {K::Factor, K::Length}, {}},
      {Attention,
       "attention",
       "attention",
       4,
       5,
       {K::Heads, K::Groups, K::Width, K::Scale},
       {K::ValueWidth, K::Window, K::Limit}},
      {SiluGate, "silu gate", "siluGate", 2, 2, {}, {}},
      {GeluGate, "gelu gate", "geluGate", 2, 2, {}, {}},
      {SigmoidGate, "sigmoid gate", "sigmoidGate", 2, 2, {}, {}},
      {ClampedGate, "clamped gate", "clampedGate", 2, 2, {K::Limit, K::Slope}, {}},
      {Silu, "silu", "silu", 1, 1, {}, {}},
      {Gelu, "gelu", "gelu", 1, 1, {}, {}},
      {Sigmoid, "sigmoid", "sigmoid", 1, 1, {}, {}},
      {Softplus, "softplus", "softplus", 1, 1, {}, {}},
      {SquareRelu, "square relu", "squareRelu", 1, 1, {}, {}},
      {Softcap, "softcap", "softcap", 1, 1, {K::Limit}, {}},
      {Clamp, "clamp", "clamp", 1, 1, {K::Limit}, {}},
      {Greatest, "greatest", "greatest", 1, 1, {}, {}},
      {TopChoice, "top choice", "topChoice", 1, 2, {K::Count}, {K::Groups, K::Kept, K::By}},
      {ChosenShare, "chosen share", "chosenShare", 2, 2, {K::By, K::Normalised, K::Factor}, {}},
      {ExpertProduct, "expert product", "expertProduct", 3, 3, {}, {}},
      {ExpertBias, "expert bias", "expertBias", 3, 3, {}, {}},
      {ExpertSum, "expert sum", "expertSum", 2, 2, {}, {}},
      {ShortConvolution, "short convolution", "shortConvolution", 3, 3, {}, {}},
      {Shift, "shift", "shift", 2, 2, {}, {}},
      {Decay, "decay", "decay", 3, 3, {}, {}},
      {DeltaRule, "delta rule", "deltaRule", 5, 5, {K::Heads, K::Groups, K::Width, K::Tiled}, {}},
      {DeltaReading, "delta reading", "deltaReading", 6, 6, {K::Heads, K::Groups, K::Width, K::Tiled}, {}},
      {Write, "", "", 2, 2, {}, {}},
  };
  return table;
}

}  // namespace

std::string_view option_name(OptionKey key) { return kOptions[size_t(key)].name; }
bool option_is_integer(OptionKey key) { return kOptions[size_t(key)].integer; }

std::span<const OpRow> op_rows() { return rows(); }
const OpRow& op_row(OpKind kind) { return rows()[size_t(kind)]; }

const OpRow* find_phrase(std::string_view phrase) {
  for (const OpRow& row : rows())
    if (!row.phrase.empty() && row.phrase == phrase) return &row;
  return nullptr;
}

const OpRow* find_call(std::string_view call) {
  for (const OpRow& row : rows())
    if (!row.call.empty() && row.call == call) return &row;
  return nullptr;
}

std::vector<OptionKey> all_options(const OpRow& row) {
  std::vector<OptionKey> keys = row.required;
  keys.insert(keys.end(), row.optional.begin(), row.optional.end());
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::string_view op_name(OpKind kind) {
  switch (kind) {
    case RowSlice:
      return "row slice";
    case Rows:
      return "rows";
    case Write:
      return "write";
    default:
      return op_row(kind).phrase;
  }
}

}  // namespace lane
