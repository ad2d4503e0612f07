// The interpreter's ops against numbers worked out by hand, and its float instance against its double one.
#include "lane/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lane/error.h"

namespace lane {
namespace {

using Floats = std::vector<float>;

/// Runs statements over named constants; `x` (and any other array of the step) comes from looking up a row.
class Step {
 public:
  /// Adds the constant `name`, `rows` by values.size() / rows.
  Step& matrix(const std::string& name, int rows, const Floats& values) {
    return declare("Quantized", name, rows, values);
  }
  Step& vector(const std::string& name, const Floats& values) { return declare("Constant", name, 1, values); }
  Step& constant(const std::string& name, int rows, const Floats& values) {
    return declare("Constant", name, rows, values);
  }
  Step& experts(const std::string& name, int experts, int rows, const Floats& values) {
    constants_.set(name, values);
    return line("Let " + name + " be a new Quantized with experts " + std::to_string(experts) + " and rows " +
                std::to_string(rows) + " and columns " + std::to_string(int(values.size()) / experts / rows) + ".");
  }
  Step& carried(const std::string& name, int rows, int columns) {
    return line("Let mutable " + name + " be a new Carried with rows " + std::to_string(rows) + " and columns " +
                std::to_string(columns) + ".");
  }
  /// An array of the step: rows of a matrix of its own, looked up all at once.
  Step& array(const std::string& name, int rows, const Floats& values) {
    matrix("m_" + name, rows, values);
    const std::string ids = "ids_" + name;
    line("Let " + ids + " be a new Input with columns " + std::to_string(rows) + ".");
    for (int r = 0; r < rows; ++r) inputs_[ids].push_back(r);
    return line("Let " + name + " be item (" + ids + " + 1) of m_" + name + ".");
  }
  Step& position(int pos) {
    inputs_["pos"] = {pos};
    return line("Let pos be a new Input.");
  }
  Step& line(const std::string& text) {
    text_ += text + "\n";
    return *this;
  }
  Step& let(const std::string& name, const std::string& value) {
    return line("Let " + name + " be " + value + ".").line("Show " + name + ".");
  }

  template <class T = double>
  Interpreter<T> interpreter(std::optional<KvType> kv = {}, int threads = 2) const {
    StepGraph graph = lift(parse_logos("## Main\n" + text_));
    verify(graph);
    return Interpreter<T>(std::move(graph), constants_, kv, threads);
  }
  const StepInputs& inputs() const { return inputs_; }

  /// The value of `name` after one step.
  std::vector<double> operator[](const std::string& name) const {
    Interpreter<double> run = interpreter();
    run.run(inputs_);
    const auto value = run.value(name);
    return {value.begin(), value.end()};
  }
  std::vector<int32_t> ids(const std::string& name) const {
    Interpreter<double> run = interpreter();
    run.run(inputs_);
    return {run.integers(name).begin(), run.integers(name).end()};
  }

 private:
  Step& declare(const char* kind, const std::string& name, int rows, const Floats& values) {
    constants_.set(name, values);
    return line("Let " + name + " be a new " + kind + " with rows " + std::to_string(rows) + " and columns " +
                std::to_string(int(values.size()) / rows) + ".");
  }

  Constants constants_;
  StepInputs inputs_;
  std::string text_;
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double bound = 1e-12) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], bound) << "at " << i;
}

/// What `phrase` makes of x, one row.
std::vector<double> of_x(const Floats& x, const std::string& phrase) {
  return Step().array("x", 1, x).let("y", phrase)["y"];
}

TEST(Interpreter, MapsValues) {
  expect_near(of_x({1, -2}, "the scaled copy of x with factor 2.5"), {2.5, -5});
  expect_near(of_x({0, 2}, "the sigmoid of x"), {0.5, 0.8807970779778823});
  expect_near(of_x({0, 2, -2}, "the silu of x"), {0, 1.7615941559557646, -0.23840584404423537});
  // 0.5 * 2 * (1 + tanh(0.7978845608028654 * (2 + 0.044715 * 8)))
  expect_near(of_x({0, 2, -2}, "the gelu of x"), {0, 1.954597694087775, -0.045402305912225});
  expect_near(of_x({0, 1000, -1000}, "the softplus of x"), {std::log(2.0), 1000, 0});
  expect_near(of_x({3, -3}, "the square relu of x"), {9, 0});
  expect_near(of_x({30, 0}, "the softcap of x with limit 30.0"), {30 * 0.7615941559557649, 0});
  expect_near(of_x({5, -5, 1}, "the clamp of x with limit 2.0"), {2, -2, 1});
}

TEST(Interpreter, AddsAndMultiplies) {
  Step step;
  step.array("x", 2, {1, 2, 3, 4}).array("y", 2, {10, 20, 30, 40}).vector("b", {5, 6}).array("s", 2, {2, 3});
  step.let("sum", "the elementwise sum of x and y").let("biased", "the elementwise sum of x and b");
  step.let("product", "the elementwise product of x and y").let("scaled", "the elementwise product of x and s");
  expect_near(step["sum"], {11, 22, 33, 44});
  expect_near(step["biased"], {6, 8, 8, 10});
  expect_near(step["product"], {10, 40, 90, 160});
  expect_near(step["scaled"], {2, 4, 9, 12});
}

TEST(Interpreter, Gates) {
  const auto gate = [](const std::string& phrase) {
    return Step().array("g", 1, {2, -2, 8}).array("u", 1, {3, 3, -9}).let("y", phrase)["y"];
  };
  expect_near(gate("the silu gate of g and u"), {5.284782467867294, -0.7152175321327061, 7.997317198956269 * -9},
              1e-10);
  expect_near(gate("the gelu gate of g and u"), {3 * 1.954597694087775, 3 * -0.045402305912225, -72}, 1e-9);
  expect_near(gate("the sigmoid gate of g and u"), {2.642391233933647, 0.35760876606635305, -9 * 0.9996646498695336},
              1e-10);
  // min(g, 7) sigmoid(1.702 min(g, 7)) (clamp(u, 7) + 1)
  const auto swish = [](double g) { return g / (1 + std::exp(-1.702 * g)); };
  expect_near(gate("the clamped gate of g and u with limit 7.0 and slope 1.702"),
              {swish(2) * 4, swish(-2) * 4, swish(7) * -6}, 1e-12);
}

TEST(Interpreter, Norms) {
  Step step;
  step.array("x", 1, {3, 4, 0, 5}).vector("w", {1, 2, 3, 4}).vector("w2", {10, 1}).vector("b", {1, 1, 1, 1});
  step.let("rms", "the rms norm of x and w with epsilon 0.0");
  step.let("heads", "the rms norm of x and w2 with width 2 and epsilon 0.0");
  step.let("plain", "the rms norm of x with epsilon 12.5");
  step.let("layer", "the layer norm of x and w and b with epsilon 0.5");
  step.let("len", "the length norm of x with width 2 and epsilon 0.0");
  const double rms = std::sqrt(12.5), head = std::sqrt(12.5);
  expect_near(step["rms"], {3 / rms, 8 / rms, 0, 20 / rms});
  expect_near(step["heads"], {30 / head, 4 / head, 0, 5 / head});
  expect_near(step["plain"], {0.6, 0.8, 0, 1});
  expect_near(step["layer"], {1, 1 + 2 / std::sqrt(4.0), 1 - 9 / std::sqrt(4.0), 1 + 8 / std::sqrt(4.0)});
  expect_near(step["len"], {0.6, 0.8, 0, 1});
}

TEST(Interpreter, Products) {
  Step step;
  step.matrix("w", 3, {1, 2, 3, 4, 5, 6}).array("x", 2, {1, 1, 2, -1}).array("h", 1, {1, 2, 3, 4});
  step.experts("we", 2, 1, {1, 10, 100, 1000});
  step.let("y", "the matrix product of w and x").let("z", "the head product of we and h with heads 2");
  expect_near(step["y"], {3, 7, 11, 0, 2, 4});
  expect_near(step["z"], {21, 4300});
}

TEST(Interpreter, CutsAndJoins) {
  Step step;
  step.array("x", 2, {1, 2, 3, 4, 5, 6, 7, 8}).array("y", 2, {10, 20, 30, 40});
  step.let("s", "the head slice of x with heads 2 and width 2 and from 2 and through 2")
      .let("j", "the join of x and y");
  step.let("h", "the head join of x and y with heads 2").let("hs", "the head join of x and y with heads 2 and width 2");
  step.let("second", "item 2 of x").let("r", "[y, y]").let("p", "items 2 through 3 of r");
  expect_near(step["s"], {2, 4, 6, 8});
  expect_near(step["j"], {1, 2, 3, 4, 10, 20, 5, 6, 7, 8, 30, 40});
  expect_near(step["h"], {1, 2, 10, 3, 4, 20, 5, 6, 30, 7, 8, 40});
  expect_near(step["hs"], {1, 2, 10, 20, 3, 4, 10, 20, 5, 6, 30, 40, 7, 8, 30, 40});
  expect_near(step["second"], {5, 6, 7, 8});
  expect_near(step["r"], {10, 20, 30, 40, 10, 20, 30, 40});
  expect_near(step["p"], {30, 40, 10, 20});
}

TEST(Interpreter, GreatestIsTheLowestOfEquals) {
  Step step;
  step.array("x", 2, {1, 7, 7, 0, -1, -3}).let("e", "the greatest of x").let("f", "item 2 of e");
  EXPECT_EQ(step.ids("e"), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(step.ids("f"), (std::vector<int32_t>{0}));
}

TEST(Interpreter, Rotates) {
  // base 100, 4 turned: frequencies 1 and 0.1. Row r stands at 2 + r.
  const Floats x = {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 7, 8};
  const auto rotated = [&](const std::string& options, bool factors = false) {
    Step step;
    step.array("x", 2, x).vector("f", {2, 4}).position(2);
    return step.let("y", std::string("the rotation of x and pos") + (factors ? " and f" : "") +
                             " with width 6 and turned 4 and base 100.0 and " + options)["y"];
  };
  const auto c = [](double a) { return std::cos(a); };
  const auto s = [](double a) { return std::sin(a); };
  expect_near(rotated("paired 0"),
              {c(2) - 3 * s(2), 2 * c(.2) - 4 * s(.2), s(2) + 3 * c(2), 2 * s(.2) + 4 * c(.2), 5, 6,  //
               c(3), 0, s(3), 0, 7, 8});
  expect_near(rotated("paired 1"),
              {c(2) - 2 * s(2), s(2) + 2 * c(2), 3 * c(.2) - 4 * s(.2), 3 * s(.2) + 4 * c(.2), 5, 6,  //
               c(3), s(3), 0, 0, 7, 8});
  expect_near(
      rotated("paired 1 and linear 2.0 and magnitude 3.0"),
      {3 * (c(1) - 2 * s(1)), 3 * (s(1) + 2 * c(1)), 3 * (3 * c(.1) - 4 * s(.1)), 3 * (3 * s(.1) + 4 * c(.1)), 5, 6,  //
       3 * c(1.5), 3 * s(1.5), 0, 0, 7, 8});
  expect_near(rotated("paired 1", true), {c(1) - 2 * s(1), s(1) + 2 * c(1), 3 * c(.05) - 4 * s(.05),
                                          3 * s(.05) + 4 * c(.05), 5, 6, c(1.5), s(1.5), 0, 0, 7, 8});
}

TEST(Interpreter, ScalesByPosition) {
  Step step;
  step.array("x", 3, {1, 1, 1}).position(7).let("y", "the position scale of x and pos with factor 0.5 and length 8");
  expect_near(step["y"], {1, 1 + 0.5 * std::log(2.0), 1 + 0.5 * std::log(2.0)});
}

/// Two heads of width 1 in one group over keys 0, ln 2, ln 4 and values 1, 10, 100; the query stands at position 2.
std::vector<double> attend(const std::string& options, bool sinks = false) {
  Step step;
  step.carried("k", 4, 1)
      .carried("v", 4, 1)
      .array("q", 1, {1, 0})
      .vector("sink", {0, float(std::log(2.0))})
      .position(2);
  step.let("y", std::string("the attention of q and k and v and pos") + (sinks ? " and sink" : "") +
                    " with heads 2 and groups 1 and width 1 and scale 1.0" + options);
  Reference run = step.interpreter();
  const std::vector<double> keys = {0, std::log(2.0), std::log(4.0), 99}, values = {1, 10, 100, 1e9};
  std::copy(keys.begin(), keys.end(), run.state("k").begin());
  std::copy(values.begin(), values.end(), run.state("v").begin());
  run.run(step.inputs());
  const auto y = run.value("y");
  return {y.begin(), y.end()};
}

TEST(Interpreter, Attends) {
  expect_near(attend(""), {(1 + 2 * 10 + 4 * 100) / 7.0, 111 / 3.0}, 1e-9);
  expect_near(attend(" and window 2"), {(2 * 10 + 4 * 100) / 6.0, 110 / 2.0}, 1e-9);
  expect_near(attend("", true), {(1 + 2 * 10 + 4 * 100) / 8.0, 111 / 5.0}, 1e-5);
  const double a = std::exp(std::tanh(std::log(2.0))), b = std::exp(std::tanh(std::log(4.0)));
  expect_near(attend(" and limit 1.0"), {(1 + 10 * a + 100 * b) / (1 + a + b), 111 / 3.0}, 1e-9);
}

TEST(Interpreter, BlocksSeeNoLaterRow) {
  // Rows 1 and 2 of a block at position 1: keys are all zero, so each row reads the mean of the values it sees.
  Step step;
  step.carried("k", 4, 1)
      .carried("v", 4, 1)
      .array("q", 2, {1, 1})
      .array("x", 2, {8, 40})
      .array("z", 2, {0, 0})
      .position(1);
  step.line("Set items (pos + 1) through (pos + 2) of k to z.")
      .line("Set items (pos + 1) through (pos + 2) of v to x.");
  step.let("y", "the attention of q and k and v and pos with heads 1 and groups 1 and width 1 and scale 1.0");
  expect_near(step["y"], {4, 16});
  expect_near(step["v"], {0, 8, 40, 0});
}

TEST(Interpreter, GroupsShareKeys) {
  Step step;
  step.carried("k", 1, 2)
      .carried("v", 1, 4)
      .array("q", 1, {0, 0, 0, 0})
      .array("kk", 1, {1, 2})
      .array("vv", 1, {1, 2, 3, 4})
      .position(0);
  step.line("Set item (pos + 1) of k to kk.").line("Set item (pos + 1) of v to vv.");
  step.let(
      "y",
      "the attention of q and k and v and pos with heads 4 and groups 2 and width 1 and value width 2 and scale 1.0");
  expect_near(step["y"], {1, 2, 1, 2, 3, 4, 3, 4});
}

TEST(Interpreter, RoundsTheCache) {
  Step step;
  step.carried("k", 1, 2)
      .array("x", 1, {0.1f, 70000})
      .position(0)
      .line("Set item (pos + 1) of k to x.")
      .line("Show x.");
  Reference half = step.interpreter(KvType::F16);
  half.run(step.inputs());
  EXPECT_EQ(half.state("k")[0], 0.0999755859375);
  EXPECT_EQ(half.state("k")[1], std::numeric_limits<double>::infinity());
  Reference blocks = step.interpreter(KvType::Q8_0);
  EXPECT_THROW(blocks.run(step.inputs()), NoKernelError);  // rows of two values
}

TEST(Interpreter, RoundsTheCacheToBlocksOfBytes) {
  std::vector<float> x(64);
  x[0] = 63.5f, x[1] = 0.26f, x[2] = -0.24f, x[3] = -63.5f;  // a scale of a half
  x[32 + 7] = -254;                                          // of two
  x[32 + 8] = 3.1f;
  Step step;
  step.carried("k", 1, 64).array("x", 1, x).position(0).line("Set item (pos + 1) of k to x.").line("Show x.");
  Reference blocks = step.interpreter(KvType::Q8_0);
  blocks.run(step.inputs());
  std::vector<double> expected(64);
  expected[0] = 63.5, expected[1] = 0.5, expected[3] = -63.5, expected[39] = -254, expected[40] = 4;
  EXPECT_EQ(std::vector<double>(blocks.state("k").begin(), blocks.state("k").end()), expected);
}

TEST(Interpreter, ChoosesExperts) {
  Step step;
  step.array("r", 2, {1, 5, 3, 5, 0, 0, 0, 9}).vector("b", {0, 0, 10, 0});
  step.let("e", "the top choice of r with count 2").let("eb", "the top choice of r and b with count 2");
  // Groups {1, 5} and {3, 5}: the second has the greater sum of two, so experts 3 and 2. Then {0, 0} and {0, 9}.
  step.let("eg", "the top choice of r with count 2 and groups 2 and kept 1");
  EXPECT_EQ(step.ids("e"), (std::vector<int32_t>{1, 3, 3, 0}));
  EXPECT_EQ(step.ids("eb"), (std::vector<int32_t>{2, 1, 2, 3}));
  EXPECT_EQ(step.ids("eg"), (std::vector<int32_t>{3, 2, 3, 2}));
}

TEST(Interpreter, ChoosesExpertsByProbability) {
  Step step;  // softmax 1/8, 3/8, 4/8; sigmoid 1/2, 3/4, 4/5
  step.array("r", 1, {0, float(std::log(3.0)), float(std::log(4.0))})
      .vector("b", {0, 0.1f, 0})
      .vector("c", {0, 0.2f, 0});
  step.let("scores", "the top choice of r and c with count 1")
      .let("same", "the top choice of r and c with count 1 and by 2");
  step.let("softmax", "the top choice of r and c with count 1 and by 0");
  step.let("less", "the top choice of r and b with count 1 and by 0");
  step.let("sigmoid", "the top choice of r and b with count 1 and by 1");
  EXPECT_EQ(step.ids("scores"), std::vector<int32_t>{2});
  EXPECT_EQ(step.ids("same"), std::vector<int32_t>{2});
  EXPECT_EQ(step.ids("softmax"), std::vector<int32_t>{1});
  EXPECT_EQ(step.ids("less"), std::vector<int32_t>{2});
  EXPECT_EQ(step.ids("sigmoid"), std::vector<int32_t>{1});
}

TEST(Interpreter, SharesAmongTheChosen) {
  const auto share = [](const std::string& options) {
    Step step;
    step.array("r", 1, {0, float(std::log(3.0)), float(std::log(4.0))}).let("e", "the top choice of r with count 2");
    return step.let("y", "the chosen share of r and e with " + options)["y"];
  };
  expect_near(share("by 0 and normalised 0 and factor 1.0"), {4 / 8.0, 3 / 8.0}, 1e-6);
  expect_near(share("by 0 and normalised 1 and factor 2.0"), {8 / 7.0, 6 / 7.0}, 1e-6);
  expect_near(share("by 1 and normalised 0 and factor 1.0"), {4 / 5.0, 3 / 4.0}, 1e-6);
  expect_near(share("by 2 and normalised 0 and factor 1.0"), {4 / 7.0, 3 / 7.0}, 1e-6);
}

TEST(Interpreter, SharesOfAlmostNothingAreNotBlownUp) {
  Step step;
  step.array("r", 1, {-20, -40}).let("e", "the top choice of r with count 1");
  step.let("y", "the chosen share of r and e with by 1 and normalised 1 and factor 1.0");
  expect_near(step["y"], {1 / (1 + std::exp(20.0)) * 16384});
}

TEST(Interpreter, RunsExperts) {
  Step step;
  step.array("r", 1, {0, 2, 1}).array("x", 1, {1, 2}).experts("up", 3, 1, {1, 1, 10, 10, 100, 100});
  step.experts("down", 3, 2, {1, 2, 3, 4, 5, 6}).constant("b", 3, {7, 8, 9});
  step.let("e", "the top choice of r with count 2").let("u", "the expert product of up and x and e");
  step.let("ub", "the expert bias of b and u and e").let("d", "the expert product of down and u and e");
  step.array("s", 1, {2, 0.5}).let("y", "the expert sum of d and s");
  expect_near(step["u"], {30, 300});
  expect_near(step["ub"], {38, 309});
  expect_near(step["d"], {90, 120, 1500, 1800});
  expect_near(step["y"], {180 + 750, 240 + 900});
}

TEST(Interpreter, ConvolvesOverTheRing) {
  Step step;
  step.carried("ring", 2, 1).array("x", 3, {1, 2, 3}).constant("w", 1, {100, 10, 1});
  step.let("y", "the short convolution of ring and x and w").line("Set ring to the shift of ring and x.");
  Reference run = step.interpreter();
  run.state("ring")[0] = 7;
  run.state("ring")[1] = 8;
  run.run(step.inputs());
  expect_near({run.value("y").begin(), run.value("y").end()}, {781, 812, 123});
  expect_near({run.state("ring").begin(), run.state("ring").end()}, {2, 3});
  run.reset();
  expect_near({run.state("ring").begin(), run.state("ring").end()}, {0, 0});
}

TEST(Interpreter, ShiftsByFewerRowsThanTheRing) {
  Step step;
  step.carried("ring", 3, 1).array("x", 1, {5}).line("Set ring to the shift of ring and x.").line("Show x.");
  Reference run = step.interpreter();
  run.run(step.inputs());
  run.run(step.inputs());
  expect_near({run.state("ring").begin(), run.state("ring").end()}, {0, 5, 5});
}

TEST(Interpreter, Decays) {
  Step step;
  step.array("x", 1, {0, 1}).vector("dt", {0, -1}).vector("rate", {-1, -2}).let("y", "the decay of x and dt and rate");
  expect_near(step["y"], {0.5, 0.25});
}

TEST(Interpreter, DeltaRule) {
  // One head, width 2, two rows. M starts at 0.
  // Row 1: d 1, b 1, k (1, 0), v (2, 4): M = [[2, 0], [4, 0]]; q (1, 1) reads (2, 4).
  // Row 2: d 0.5, b 0.5, k (1, 1), v (3, 0): M = [[1, 0], [2, 0]], delta = 0.5 (3 - 1, 0 - 2) = (1, -1),
  //        M = [[2, 1], [1, -1]]; q (1, 2) reads (4, -1).
  Step step;
  step.carried("m", 2, 2).array("q", 2, {1, 1, 1, 2}).array("k", 2, {1, 0, 1, 1}).array("v", 2, {2, 4, 3, 0});
  step.array("d", 2, {1, 0.5}).array("b", 2, {1, 0.5});
  step.let("y",
           "the delta reading of m and q and k and v and d and b with heads 1 and groups 1 and width 2 and tiled 0");
  step.line("Set m to the delta rule of m and k and v and d and b with heads 1 and groups 1 and width 2 and tiled 0.");
  expect_near(step["y"], {2, 4, 4, -1});
  expect_near(step["m"], {2, 1, 1, -1});
}

TEST(Interpreter, DeltaHeadsTakeTheirKeyHead) {
  // Four heads of width 1 over two key heads; b v k = v k.
  for (const auto& [tiled, expected] :
       {std::pair<int, std::vector<double>>{0, {10, 20, 300, 400}}, {1, {10, 200, 30, 400}}}) {
    Step step;
    step.carried("m", 4, 1)
        .array("k", 1, {10, 100})
        .array("v", 1, {1, 2, 3, 4})
        .array("o", 1, {1, 1, 1, 1})
        .line("Show o.");
    step.line("Set m to the delta rule of m and k and v and o and o with heads 4 and groups 2 and width 1 and tiled " +
              std::to_string(tiled) + ".");
    expect_near(step["m"], expected);
  }
}

TEST(Interpreter, RefusesInputs) {
  Step step;
  step.matrix("w", 2, {1, 2}).carried("k", 2, 1).position(0).line("Let tok be a new Input.");
  step.let("x", "item (tok + 1) of w").line("Set item (pos + 1) of k to x.");
  Reference run = step.interpreter();
  const auto refusal = [&](StepInputs inputs) {
    try {
      run.run(inputs);
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal({{"pos", {0}}, {"tok", {1}}}), "accepted");
  EXPECT_EQ(refusal({{"pos", {0}}}), "Usage: input 'tok' is missing");
  EXPECT_EQ(refusal({{"pos", {0}}, {"tok", {1, 2}}}), "Usage: input 'tok' has 2 integers; accepted is 1");
  EXPECT_EQ(refusal({{"pos", {0}}, {"tok", {2}}}), "Usage: row 2 of 'w', which has 2");
  EXPECT_EQ(refusal({{"pos", {0}}, {"tok", {-1}}}), "Usage: row -1 of 'w', which has 2");
  EXPECT_EQ(refusal({{"pos", {2}}, {"tok", {0}}}),
            "Usage: positions 2 to 2 in the write of 'k', whose cache has 2 rows");
  EXPECT_THROW(run.value("nothing"), UsageError);
  EXPECT_THROW(run.state("x"), UsageError);
}

TEST(Interpreter, RefusesConstants) {
  const StepGraph graph =
      lift(parse_logos("## Main\nLet w be a new Quantized with rows 2 and columns 2.\nLet tok be a new Input.\n"
                       "Let x be item (tok + 1) of w.\nShow x.\n"));
  EXPECT_THROW(Reference(graph, Constants()), UnboundError);
  Constants short_of_one;
  short_of_one.set("w", Floats{1, 2, 3});
  EXPECT_THROW(Reference(graph, short_of_one), ShapeError);
}

/// A small step over every family of ops, with random constants.
Step random_step(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.5f);
  const auto values = [&](int n) {
    Floats out(static_cast<size_t>(n));
    for (float& v : out) v = normal(random);
    return out;
  };
  Step s;
  s.array("x", 3, values(3 * 32))
      .vector("w", values(32))
      .matrix("wq", 32, values(32 * 32))
      .matrix("wk", 16, values(16 * 32));
  s.carried("k", 8, 16)
      .carried("v", 8, 16)
      .carried("ring", 3, 32)
      .carried("m", 32, 8)
      .position(2)
      .constant("taps", 32, values(32 * 4));
  s.vector("dt", values(4)).vector("rate", {-0.5, -1, -0.1f, -2}).matrix("wa", 4, values(4 * 32));
  s.matrix("wr", 6, values(6 * 32)).experts("we", 6, 32, values(6 * 32 * 32));
  s.let("h", "the rms norm of x and w with epsilon 0.00001").let("q", "the matrix product of wq and h");
  s.let("kk", "the matrix product of wk and h")
      .let("qr", "the rotation of q and pos with width 8 and turned 6 and base 10000.0 and paired 0");
  s.line("Set items (pos + 1) through (pos + 3) of k to kk.").line("Set items (pos + 1) through (pos + 3) of v to kk.");
  s.let("o",
        "the attention of qr and k and v and pos with heads 4 and groups 2 and width 8 and scale 0.35 and window 3 and "
        "limit 20.0");
  s.let("y", "the elementwise sum of x and o").let("z", "the layer norm of y and w and w with epsilon 0.00001");
  s.let("g", "the gelu gate of z and q")
      .let("c", "the short convolution of ring and g and taps")
      .line("Set ring to the shift of ring and g.");
  s.let("e", "the matrix product of wr and c").let("ids", "the top choice of e with count 2");
  s.let("p", "the chosen share of e and ids with by 0 and normalised 1 and factor 1.5");
  s.let("u", "the expert product of we and c and ids")
      .let("t", "the expert sum of u and p")
      .let("al", "the matrix product of wa and t");
  s.let("dec", "the decay of al and dt and rate")
      .let("beta", "the sigmoid of al")
      .let("kn", "the length norm of kk with width 8 and epsilon 0.00001");
  s.let(
      "r",
      "the delta reading of m and kn and kn and t and dec and beta with heads 4 and groups 2 and width 8 and tiled 1");
  s.line(
      "Set m to the delta rule of m and kn and t and dec and beta with heads 4 and groups 2 and width 8 and tiled 1.");
  return s;
}

TEST(Interpreter, FloatFollowsDouble) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Step step = random_step(seed);
    Reference exact = step.interpreter<double>();
    FastReference fast = step.interpreter<float>();
    for (int round = 0; round < 2; ++round) {
      exact.run(step.inputs());
      fast.run(step.inputs());
      EXPECT_TRUE(std::equal(exact.integers("ids").begin(), exact.integers("ids").end(), fast.integers("ids").begin()));
      for (const char* name : {"q", "o", "c", "t", "r", "m", "ring", "k"}) {
        const auto a = exact.value(name);
        const auto b = fast.value(name);
        for (size_t i = 0; i < a.size(); ++i)
          EXPECT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(a[i]))) << name << " at " << i;
      }
    }
  }
}

TEST(Interpreter, FloatRowsAreTheExactOnesRoundedOnce) {
  const StepGraph graph =
      lift(parse_logos("## Main\nLet w be a new Quantized with rows 4 and columns 512.\n"
                       "Let toks be a new Input with columns 4.\nLet x be item (toks + 1) of w.\nShow x.\n"));
  std::mt19937 random(7);
  for (const Format& format : formats()) {
    if (!format.supported()) continue;
    std::vector<std::byte> bytes(4 * format.row_bytes(512));
    for (std::byte& b : bytes) b = std::byte(random() & 0xff);
    Constants constants;
    constants.set("w", ConstantData{&format, bytes});
    Reference exact(graph, constants);
    FastReference fast(graph, constants);
    exact.run({{"toks", {0, 1, 2, 3}}});
    fast.run({{"toks", {0, 1, 2, 3}}});
    for (size_t i = 0; i < 4 * 512; ++i) {
      const float a = float(exact.value("x")[i]), b = fast.value("x")[i];
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
          << format.name << " at " << i << ": " << a << " and " << b;
    }
  }
}

TEST(Interpreter, ThreadsChangeNoBit) {
  const Step step = random_step(9);
  const auto result = [&](int threads) {
    FastReference run = step.interpreter<float>({}, threads);
    run.run(step.inputs());
    return std::vector<float>(run.value("r").begin(), run.value("r").end());
  };
  EXPECT_EQ(result(1), result(3));
}

}  // namespace
}  // namespace lane
