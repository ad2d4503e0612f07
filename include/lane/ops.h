// The ops of a step, a row each: the phrase that says it in LOGOS, its operands and options. docs/logos.md gives each
// one's mathematics; src/reference/ computes it plainly.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lane {

enum class OpKind {
  RowLookup,  // item (tok + 1) of W
  ScaledCopy,
  Sum,
  Product,
  RmsNorm,
  LayerNorm,
  LengthNorm,
  MatrixProduct,
  HeadProduct,
  HeadSlice,
  Join,
  HeadJoin,
  RowSlice /* item(s) of an array */,
  Rows /* [a, b] */,
  Rotation,
  PositionScale,
  Attention,
  SiluGate,
  GeluGate,
  SigmoidGate,
  ClampedGate,
  Silu,
  Gelu,
  Sigmoid,
  Softplus,
  SquareRelu,
  Softcap,
  Clamp,
  Greatest,
  TopChoice,
  ChosenShare,
  ExpertProduct,
  ExpertBias,
  ExpertSum,
  ShortConvolution,
  Shift,
  Decay,
  DeltaRule,
  DeltaReading,
  Write,  // Set item (pos + 1) of keys to x: rows of carried state
};

/// Options of all phrases, in their one order: an op's options are listed, printed and given to a call in the order of
/// this enum. The word in the text is option_name(); whether it is written as an integer is option_is_integer().
enum class OptionKey {
  Count,
  Heads,
  Groups,
  Kept,
  Width,
  ValueWidth,
  From,
  Through,
  Turned,
  Base,
  Paired,
  Magnitude,
  Linear,
  Yarn,
  Original,
  Fast,
  Slow,
  Epsilon,
  By,
  Normalised,
  Factor,
  Length,
  Scale,
  Window,
  Limit,
  Slope,
  Tiled,
};
std::string_view option_name(OptionKey key);
bool option_is_integer(OptionKey key);
/// The canonical spelling of an option that is no integer: the shortest that reads back the same.
std::string float_text(double value);

struct OpRow {
  OpKind kind;
  std::string_view phrase;         // "matrix product"; empty: said by syntax, not by a phrase
  std::string_view call;           // "matrixProduct"
  int min_operands, max_operands;  // the first operand of a write, shift or delta rule is the carried array it changes
  std::vector<OptionKey> required, optional;
};
std::span<const OpRow> op_rows();  // in the order of OpKind
const OpRow& op_row(OpKind kind);
const OpRow* find_phrase(std::string_view phrase);  // null where unknown
const OpRow* find_call(std::string_view call);      // null where unknown
/// Required and optional ones together, in the order of OptionKey: what a call lists after its operands.
std::vector<OptionKey> all_options(const OpRow& row);
std::string_view op_name(OpKind kind);  // "matrix product", "row lookup": for messages and listings

}  // namespace lane
