// Lifting: every refusal by line and name, the shapes of every op, and that a damaged graph fails verify.
#include "lane/graph.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "lane/error.h"

namespace lane {
namespace {

StepGraph lift_main(const std::string& body) { return lift(parse_logos("## Main\n" + body)); }

const std::string kDecls =  // lines 2 to 9
    "Let w be a new Quantized with rows 8 and columns 4.\n"
    "Let v be a new Constant with columns 4.\n"
    "Let mutable k be a new Carried with rows 16 and columns 4.\n"
    "Let tok be a new Input.\n"
    "Let toks be a new Input with columns 3.\n"
    "Let pos be a new Input.\n"
    "Let x be item (tok + 1) of w.\n"
    "Let xs be item (toks + 1) of w.\n";

/// The message of lifting the declarations above and `body`, whose first line is line 10.
std::string refusal(const std::string& body) {
  try {
    lift_main(kDecls + body);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::Usage);
    return e.what();
  }
  return "accepted";
}

TEST(Lift, ReadsTheOneLayerStep) {
  const StepGraph g = lift_main(
      kDecls +
      "Let h be the rms norm of x and v with epsilon 0.000001.\n"
      "Let q be the rotation of h and pos with width 4 and turned 4 and base 10000.0 and paired 0.\n"
      "Set item (pos + 1) of k to q.\n"
      "Let a be the attention of q and k and k and pos with heads 1 and groups 1 and width 4 and scale 0.5.\n"
      "Let logits be the matrix product of w and a.\nLet next be the greatest of logits.\nShow logits.\nShow next.\n");
  verify(g);
  EXPECT_EQ(to_text(g),
            "quantized w: 8 x 4\nconstant v: 4\ncarried k: 16 x 4\ninput tok: 1\ninput toks: 3\ninput pos: 1\n"
            "x: 4 = row lookup w, tok [tok + 1]\n"
            "xs: 3 x 4 = row lookup w, toks [toks + 1]\n"
            "h: 4 = rms norm x, v; epsilon 0.000001\n"
            "q: 4 = rotation h, pos; width 4; turned 4; base 10000.0; paired 0\n"
            "k <- write k, q [pos + 1]\n"
            "a: 4 = attention q, k, k, pos; heads 1; groups 1; width 4; scale 0.5\n"
            "logits: 8 = matrix product w, a\n"
            "next: 1 integers = greatest logits\n"
            "output logits\noutput next\n");
}

TEST(Lift, CutsOfManyRows) {
  const StepGraph g = lift_main(kDecls +
                                "Set items (pos + 1) through (pos + 3) of k to xs.\n"
                                "Let a be item 1 of xs.\nLet b be items 2 through 3 of xs.\nLet r be [a, b].\n"
                                "Let y be the matrix product of w and item 3 of r.\n"
                                "Let p be items (pos + 1) through (pos + 3) of w.\nShow y.\n");
  verify(g);
  EXPECT_EQ(g.value(g.find("r")).shape, (Shape{1, 3, 4}));
  EXPECT_EQ(g.value(g.find("p")).shape, (Shape{1, 3, 4}));
  EXPECT_EQ(g.value(g.find("y")).shape, (Shape{1, 1, 8}));
  const Value& item = g.value(g.find("y_item1"));
  EXPECT_EQ(g.ops[size_t(item.producer)].kind, OpKind::RowSlice);
}

TEST(Lift, PhraseLookupIsTheItem) {
  const StepGraph g = lift_main(kDecls + "Let y be the row lookup of w and tok.\nShow y.\n");
  const Op &a = g.ops[size_t(g.value(g.find("x")).producer)], &b = g.ops[size_t(g.value(g.find("y")).producer)];
  EXPECT_EQ(a.operands, b.operands);
  EXPECT_EQ(a.from, b.from);
  EXPECT_EQ(a.through, b.through);
}

TEST(Lift, RefusesNames) {
  EXPECT_EQ(refusal("Let x be the silu of xs.\n"), "Graph: line 10: 'x' is bound twice, first in line 8");
  EXPECT_EQ(refusal("Let y be the silu of z.\n"), "Graph: line 10: 'z' is never bound");
  EXPECT_EQ(refusal("Let y be the silu of z.\nLet z be the silu of x.\n"),
            "Graph: line 10: 'z' is used before line 11 binds it");
  EXPECT_EQ(refusal("Show z.\n"), "Graph: line 10: output 'z' is never bound");
  EXPECT_EQ(refusal("Show x.\nShow x.\n"), "Graph: line 11: output 'x' is shown twice");
  EXPECT_EQ(refusal("Show v.\n"), "Graph: line 10: output 'v' is not computed");
  EXPECT_EQ(refusal(""), "Graph: line 9: the step shows no output");
  EXPECT_EQ(refusal("Let y be x.\n"), "Graph: line 10: 'Let y be x' is no op: a value has one name");
}

TEST(Lift, RefusesDeclarations) {
  EXPECT_EQ(refusal("Let c be a new Tensor.\n"),
            "Graph: line 10: unknown kind 'Tensor'; accepted are Constant, Quantized, Carried and Input");
  EXPECT_EQ(refusal("Let c be a new Carried with rows 2.\n"),
            "Graph: line 10: 'c' is Carried; a Carried array is declared mutable, and nothing else is");
  EXPECT_EQ(refusal("Let mutable c be a new Constant.\n"),
            "Graph: line 10: 'c' is Constant; a Carried array is declared mutable, and nothing else is");
  EXPECT_EQ(refusal("Let mutable y be the silu of x.\n"), "Graph: line 10: 'y' is mutable; only a Carried array is");
  EXPECT_EQ(refusal("Let c be a new Input with rows 2.\n"), "Graph: line 10: Input has no field 'rows'");
  EXPECT_EQ(refusal("Let c be a new Constant with width 2.\n"), "Graph: line 10: Constant has no field 'width'");
  EXPECT_EQ(refusal("Let c be a new Constant with rows 2 and rows 2.\n"),
            "Graph: line 10: field 'rows' is given twice");
  EXPECT_EQ(refusal("Let c be a new Constant with rows 0.\n"),
            "Graph: line 10: rows 0 is out of range; accepted is an integer from 1 to 2147483647");
  EXPECT_EQ(refusal("Let c be a new Constant with rows 2.0.\n"),
            "Graph: line 10: rows 2 is out of range; accepted is an integer from 1 to 2147483647");
  EXPECT_EQ(refusal("Let c be a new Quantized with experts 2000000000 and rows 2000000000 and columns 2000000000.\n"),
            "Graph: line 10: 'c' is too large");
}

TEST(Lift, RefusesPhrasesAndOptions) {
  EXPECT_EQ(refusal("Let y be the sum of x and x.\n"), "Graph: line 10: unknown phrase 'sum'");
  EXPECT_EQ(refusal("Let y be the softcap of x.\n"), "Graph: line 10: the softcap: misses its option 'limit'");
  EXPECT_EQ(refusal("Let y be the silu of x with limit 2.0.\n"), "Graph: line 10: the silu has no option 'limit'");
  EXPECT_EQ(refusal("Let y be the softcap of x with limit 2.0 and limit 3.0.\n"),
            "Graph: line 10: the softcap: option 'limit' is given twice or out of order");
  EXPECT_EQ(refusal("Let y be the softcap of x with limit 0.\n"),
            "Graph: line 10: the softcap: limit 0 is out of range; accepted is more than 0");
  EXPECT_EQ(refusal("Let y be the head slice of x with heads 1.0 and width 4 and from 1 and through 2.\n"),
            "Graph: line 10: option 'heads' is an integer");
  EXPECT_EQ(refusal("Let y be the silu of x and x.\n"), "Graph: line 10: the silu: takes 1 operands, found 2");
  EXPECT_EQ(refusal("Let y be the rms norm of x and v and v and v with epsilon 0.1.\n"),
            "Graph: line 10: the rms norm: takes 1 to 3 operands, found 4");
}

TEST(Lift, RefusesState) {
  EXPECT_EQ(refusal("Set item (pos + 1) of x to x.\n"), "Graph: line 10: Set of 'x', which is not Carried");
  EXPECT_EQ(refusal("Set k to x.\n"),
            "Graph: line 10: 'k' can be set to a shift or a delta rule of itself, or by rows");
  EXPECT_EQ(refusal("Set k to the silu of x.\n"),
            "Graph: line 10: the silu changes no state; only the shift and the delta rule can be Set");
  EXPECT_EQ(refusal("Let y be the shift of k and x.\n"),
            "Graph: line 10: the shift changes carried state: 'Set k to the shift of …'");
  EXPECT_EQ(refusal("Let mutable l be a new Carried with columns 4.\nSet l to the shift of k and x.\n"),
            "Graph: line 11: the shift of 'k' is set to 'l'; it changes its first operand");
  EXPECT_EQ(refusal("Set item (pos + 1) of k to the silu of x.\n"),
            "Graph: line 10: a cache write takes a name: bind the value first");
  EXPECT_EQ(refusal("Set item pos of k to x.\n"), "Graph: line 10: the write: items 0 through 0 are no rows");
  EXPECT_EQ(refusal("Set item (pos + 2) of k to x.\n"),
            "Graph: line 10: the write: positions start at zero: the row of one is 'item (pos + 1) of …'");
  EXPECT_EQ(refusal("Set item (toks + 1) of k to x.\n"),
            "Graph: line 10: the write: 'toks' should be an Input of one integer");
  EXPECT_EQ(refusal("Set items (pos + 1) through (tok + 3) of k to xs.\n"),
            "Graph: line 10: the write: the two ends of its range count from different names");
  EXPECT_EQ(refusal("Set item 17 of k to x.\n"), "Shape: 'k': declared 16 x 4, bound 17 rows by the write of line 10");
  EXPECT_EQ(refusal("Set items (pos + 1) through (pos + 2) of k to xs.\n"),
            "Shape: 'xs': declared 3 x 4, bound 2 rows by the write of line 10");
}

TEST(Lift, RefusesRoles) {
  EXPECT_EQ(refusal("Let y be the silu of v.\n"), "Graph: line 10: the silu: 'v' should be an array the step computes");
  EXPECT_EQ(refusal("Let y be the matrix product of x and x.\n"),
            "Graph: line 10: the matrix product: 'x' should be a Quantized or Constant matrix");
  EXPECT_EQ(refusal("Let y be the rms norm of x and w with epsilon 0.1.\n"),
            "Graph: line 10: the rms norm: 'w' should be a Constant");
  EXPECT_EQ(refusal("Let y be the position scale of x and toks with factor 0.1 and length 8.\n"),
            "Graph: line 10: the position scale: 'toks' should be an Input of one integer");
  EXPECT_EQ(refusal("Let y be the short convolution of v and x and w.\n"),
            "Graph: line 10: the short convolution: 'v' should be a Carried array");
  EXPECT_EQ(refusal("Let e be the greatest of x.\nLet y be the silu of e.\n"),
            "Graph: line 11: the silu: 'e' should be an array the step computes");
  EXPECT_EQ(refusal("Let y be item (x + 1) of w.\n"), "Graph: line 10: the row lookup: 'x' should be an Input");
  EXPECT_EQ(refusal("Let y be item tok of w.\n"),
            "Graph: line 10: the row lookup: ids start at zero: a row is 'item (id + 1) of …'");
  EXPECT_EQ(refusal("Let y be item (tok + 1) of x.\n"),
            "Graph: line 10: the row slice: rows of a computed array are counted by integers");
  EXPECT_EQ(refusal("Let y be item 2 of x.\n"),
            "Graph: line 10: the row slice: items 2 through 2 of 'x', which has 1 rows");
  EXPECT_EQ(
      refusal("Let e be the greatest of x.\nLet f be the scaled copy of item 1 of xs with factor 2.0.\n"
              "Let g be the head slice of x with heads 1 and width 4 and from 1 and through 1.\nLet y be [e, g].\n"),
      "Graph: line 13: the rows: mixes integers and reals");
}

TEST(Lift, RefusesAHundredThousandPlacesAtOnce) {
  std::string text = "Let y be the silu of item 1 of x";
  for (int i = 1; i < 100000; ++i) text += " and item 1 of x";
  EXPECT_EQ(refusal(text + ".\n"), "Graph: line 10: the silu: takes 1 operands, found 100000");
}

/// A phrase over the declarations and what its refusal says after "line 10" or of its shapes.
struct BadShape {
  const char* text;
  const char* message;
};

TEST(Lift, RefusesShapes) {
  const BadShape cases[] = {
      {"the matrix product of w and y8", "Shape: 'y8': declared 8, bound 4 columns by the matrix product of line 11"},
      {"the elementwise sum of x and y8", "Shape: 'y8': declared 8, bound 4 columns by the elementwise sum of line 11"},
      {"the elementwise sum of x and xs",
       "Shape: 'xs': declared 3 x 4, bound 1 rows or one by the elementwise sum of line 11"},
      {"the silu gate of x and xs", "Shape: 'xs': declared 3 x 4, bound 4 by the silu gate of line 11"},
      {"the rms norm of y8 and v with epsilon 0.1",
       "Shape: 'v': declared 4, bound 8 or 8 values by the rms norm of line 11"},
      {"the rms norm of x with epsilon 0.1 and width 3",
       "Shape: 'x': declared 4, bound a multiple of 3 columns by the rms norm of line 11"},
      {"the head slice of x with heads 2 and width 2 and from 2 and through 1",
       "Graph: line 11: the head slice: from 2 through 1 of width 2; accepted is 1 <= from <= through <= width"},
      {"the head slice of x with heads 2 and width 3 and from 1 and through 1",
       "Shape: 'x': declared 4, bound 6 columns by the head slice of line 11"},
      {"the join of x and xs", "Shape: 'xs': declared 3 x 4, bound 1 rows by the join of line 11"},
      {"the head join of x and x with heads 3",
       "Shape: 'x': declared 4, bound a multiple of 3 columns by the head join of line 11"},
      {"the head join of x and x with heads 2 and width 3",
       "Shape: 'x': declared 4, bound 3 or 6 columns by the head join of line 11"},
      {"[x, y8]", "Shape: 'y8': declared 8, bound 4 columns by the rows of line 11"},
      {"the rotation of x and pos with width 4 and turned 3 and base 10000.0 and paired 0",
       "Graph: line 11: the rotation: turned 3 of width 4; accepted is an even number up to the width"},
      {"the rotation of x and pos with width 4 and turned 6 and base 10000.0 and paired 0",
       "Graph: line 11: the rotation: turned 6 of width 4; accepted is an even number up to the width"},
      {"the rotation of x and pos with width 4 and turned 4 and base 10000.0 and paired 2",
       "Graph: line 11: the rotation: paired 2 is out of range; accepted is 0 or 1"},
      {"the rotation of x and pos and v with width 4 and turned 4 and base 10000.0 and paired 0",
       "Shape: 'v': declared 4, bound 2 values by the rotation of line 11"},
      {"the rotation of x and pos with width 4 and turned 4 and base 10000.0 and paired 0 and yarn 4.0",
       "Graph: line 11: the rotation: yarn needs the option 'original'"},
      {"the rotation of x and pos with width 4 and turned 4 and base 10000.0 and paired 0 and fast 4.0",
       "Graph: line 11: the rotation: option 'fast' goes with 'yarn'"},
      {"the attention of x and k and k and pos with heads 3 and groups 2 and width 4 and scale 0.5",
       "Graph: line 11: the attention: 3 heads in 2 groups; accepted is a divisor of the heads"},
      {"the attention of x and k and k and pos with heads 2 and groups 1 and width 4 and scale 0.5",
       "Shape: 'x': declared 4, bound 8 columns by the attention of line 11"},
      {"the attention of x and k and k and pos with heads 1 and groups 1 and width 4 and value width 2 and scale 0.5",
       "Shape: 'k': declared 16 x 4, bound 2 columns by the attention of line 11"},
      {"the attention of x and k and k and pos and v with heads 1 and groups 1 and width 4 and scale 0.5",
       "Shape: 'v': declared 4, bound 1 values by the attention of line 11"},
      {"the short convolution of k and x and w",
       "Shape: 'w': declared 8 x 4, bound 4 x 17 by the short convolution of line 11"},
      {"the top choice of x with count 5", "Graph: line 11: the top choice: count 5 of 4 experts"},
      {"the top choice of x with count 3 and groups 4 and kept 2",
       "Graph: line 11: the top choice: count 3 of 2 experts"},
      {"the top choice of x with count 1 and groups 2",
       "Graph: line 11: the top choice: options 'groups' and 'kept' go together"},
      {"the top choice of x with count 1 and groups 3 and kept 1",
       "Graph: line 11: the top choice: 1 of 3 groups of 4 experts; accepted is a divisor of the experts and at most "
       "all groups"},
      {"the expert sum of x and xs", "Shape: 'xs': declared 3 x 4, bound 1 rows by the expert sum of line 11"},
      {"the decay of y8 and v and v", "Shape: 'v': declared 4, bound 8 values by the decay of line 11"},
      {"the delta reading of k and x and x and x and x and x with heads 4 and groups 1 and width 4 and tiled 0",
       "Shape: 'x': declared 4, bound 16 columns by the delta reading of line 11"},
      {"the delta reading of k and x and x and x and x and x with heads 2 and groups 1 and width 4 and tiled 0",
       "Shape: 'k': declared 16 x 4, bound 8 rows by the delta reading of line 11"},
  };
  for (const BadShape& c : cases)
    EXPECT_EQ(refusal(std::string("Let y8 be the matrix product of w and x.\nLet z be ") + c.text + ".\n"), c.message)
        << c.text;
}

TEST(Lift, ExpertShapes) {
  const StepGraph g = lift_main(
      "Let r be a new Quantized with rows 6 and columns 4.\nLet we be a new Quantized with experts 6 and rows 5 and "
      "columns 4.\n"
      "Let wd be a new Quantized with experts 6 and rows 4 and columns 5.\nLet b be a new Constant with rows 6 and "
      "columns 5.\n"
      "Let embed be a new Quantized with rows 9 and columns 4.\nLet toks be a new Input with columns 2.\n"
      "Let x be item (toks + 1) of embed.\nLet s be the matrix product of r and x.\n"
      "Let e be the top choice of s with count 3.\nLet p be the chosen share of s and e with by 0 and normalised 1 and "
      "factor 1.0.\n"
      "Let g be the expert product of we and x and e.\nLet gb be the expert bias of b and g and e.\n"
      "Let d be the expert product of wd and gb and e.\nLet y be the expert sum of d and p.\nShow y.\n");
  verify(g);
  const auto shape = [&](const char* name) { return to_text(g.value(g.find(name)).shape); };
  EXPECT_EQ(shape("e"), "2 x 3");
  EXPECT_EQ(shape("p"), "2 x 3");
  EXPECT_EQ(shape("g"), "2 x 15");
  EXPECT_EQ(shape("d"), "2 x 12");
  EXPECT_EQ(shape("y"), "2 x 4");
}

std::string logos_page() {
  std::ifstream file(LANE_SOURCE_DIR "/docs/logos.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LogosPage, ItsExampleLifts) {
  const std::string page = logos_page(), fence = "```logos\n";
  const size_t begin = page.find(fence) + fence.size();
  const StepGraph graph = lift(parse_logos(std::string_view(page).substr(begin, page.find("```", begin) - begin)));
  verify(graph);
  EXPECT_EQ(graph.ops.size(), 21u);
  EXPECT_EQ(graph.outputs.size(), 2u);
}

TEST(LogosPage, HasARowForEveryPhrase) {
  const std::string page = logos_page();
  for (const OpRow& row : op_rows()) {
    if (row.phrase.empty()) continue;
    const size_t at = page.find("\n| " + std::string(row.phrase) + " | ");
    ASSERT_NE(at, page.npos) << row.phrase;
    const std::string line = page.substr(at + 1, page.find('\n', at + 1) - at);
    for (OptionKey key : all_options(row)) EXPECT_NE(line.find(option_name(key)), line.npos) << line;
  }
}

TEST(VerifyGraph, FindsDamage) {
  const StepGraph good = lift_main(kDecls +
                                   "Let h be the rms norm of x and v with epsilon 0.1.\nSet item (pos + 1) of k to h.\n"
                                   "Let y be the matrix product of w and h.\nShow y.\n");
  verify(good);
  const auto damaged = [&](const std::function<void(StepGraph&)>& damage) {
    StepGraph g = good;
    damage(g);
    EXPECT_THROW(verify(g), InternalError);
  };
  const auto at = [](StepGraph& g, const char* name) -> Value& { return g.values[size_t(g.find(name))]; };
  damaged([&](StepGraph& g) { at(g, "y").shape.columns = 9; });
  damaged([&](StepGraph& g) { at(g, "y").name = std::string("h"); });
  damaged([&](StepGraph& g) { at(g, "y").producer = -1; });
  damaged([&](StepGraph& g) { at(g, "y").producer = 99; });
  damaged([&](StepGraph& g) { at(g, "y").producer = 0; });
  damaged([&](StepGraph& g) { at(g, "v").shape.columns = 0; });
  damaged([&](StepGraph& g) { at(g, "v").integers = true; });
  damaged([](StepGraph& g) { g.ops.back().operands[1] = g.ops.back().result; });
  damaged([](StepGraph& g) { g.ops.back().operands[1] = 99; });
  damaged([](StepGraph& g) { g.ops.back().result = kNoValue; });
  damaged([](StepGraph& g) { g.ops[2].options.clear(); });
  damaged([](StepGraph& g) { g.ops[3].result = g.find("x"); });
  damaged([](StepGraph& g) { g.ops[3].from->base = 99; });
  damaged([](StepGraph& g) { std::swap(g.ops[0], g.ops[2]); });
  damaged([](StepGraph& g) { g.outputs.clear(); });
  damaged([](StepGraph& g) { g.outputs[0] = g.find("v"); });
}

}  // namespace
}  // namespace lane
