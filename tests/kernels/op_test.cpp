// Every op's kernel, planned and run on the device, against the float64 interpreter: odd shapes, several steps, and
// the rows of a chunk. A case is a few lines of LOGOS over `a`, `b`, …, rows looked up by token from matrices of noise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/schedule_executor.h"
#include "lane/logos.h"
#include "lane/plan.h"
#include "lane/program.h"
#include "lane/reference.h"
#include "support/files.h"
#include "support/gguf_builder.h"

namespace lane::test {
namespace {

constexpr int kVocabulary = 11;

struct OpCase {
  std::string name;
  std::string declarations;   // constants and carried state
  std::vector<int> columns;   // of the arrays a, b, …
  std::string body;           // POS is the position; "WRITE k y" writes y's rows to k; binds `out`
  std::string integers = {};  // an integer result that is compared too
  int steps = 3;              // decode steps; chunks of 4 are half as many
  double tolerance = 2e-6;    // of each value, relative to the greatest
};

void PrintTo(const OpCase& c, std::ostream* to) { *to << c.body; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// The case's text for blocks of `rows` tokens.
std::string text_of(const OpCase& c, int rows) {
  std::string text = "## Main\n" + c.declarations;
  for (size_t i = 0; i < c.columns.size(); i++)
    text += "Let m_" + std::string(1, char('a' + i)) + " be a new Quantized with rows " + std::to_string(kVocabulary) +
            " and columns " + std::to_string(c.columns[i]) + ".\n";
  text += "Let toks be a new Input with columns " + std::to_string(rows) + ".\nLet pos be a new Input.\n";
  for (size_t i = 0; i < c.columns.size(); i++) {
    const std::string name(1, char('a' + i));
    text += "Let " + name + " be item (toks + 1) of m_" + name + ".\n";
  }
  std::string body = replaced(c.body, "POS", "pos");
  for (size_t at = body.find("WRITE "); at != std::string::npos; at = body.find("WRITE ")) {
    const size_t end = body.find('\n', at), space = body.find(' ', at + 6);
    const std::string state = body.substr(at + 6, space - at - 6), value = body.substr(space + 1, end - space - 1);
    const std::string place =
        rows == 1 ? "item (pos + 1)" : "items (pos + 1) through (pos + " + std::to_string(rows) + ")";
    body.replace(at, end - at, "Set " + place + " of " + state + " to " + value + ".");
  }
  return text + body + "Show out.\n" + (c.integers.empty() ? "" : "Show " + c.integers + ".\n");
}

/// A checkpoint with a float tensor of noise for each constant; those named "rate" are negative, "factors" positive.
std::string noise_checkpoint(const StepGraph& graph) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> noise(-1.0f, 1.0f);
  GgufText file;
  for (const Value& v : graph.values) {
    if (v.kind != ValueKind::Constant && v.kind != ValueKind::Quantized) continue;
    std::vector<float> values(size_t(v.shape.elements()));
    for (float& x : values) {
      x = noise(random);
      if (v.name == "rate") x = -std::abs(x);
      if (v.name == "factors") x = 0.5f + std::abs(x);
    }
    TensorText tensor{.name = v.name + ".weight", .ne = {v.shape.columns, v.shape.rows, v.shape.experts}};
    tensor.data.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    file.tensor(tensor);
  }
  return file.text();
}

class OpKernel : public testing::TestWithParam<OpCase> {
 protected:
  void compare(int rows, int steps) const;
};

void expect_close(std::span<const double> exact, const std::vector<float>& values, double tolerance) {
  ASSERT_EQ(exact.size(), values.size());
  double most = 1e-3;
  for (const double x : exact) most = std::max(most, std::abs(x));
  for (size_t i = 0; i < values.size(); i++) ASSERT_NEAR(exact[i], values[i], tolerance * most) << "value " << i;
}

void OpKernel::compare(int rows, int steps) const {
  const OpCase& c = GetParam();
  const Cut cut{{rows == 1 ? FormKind::Decode : FormKind::Prefill, rows, 512}, text_of(c, rows)};
  const StepGraph graph = lift(parse_logos(cut.text));
  const TempFolder folder;
  write_file(folder / "noise.gguf", noise_checkpoint(graph));
  const Checkpoint checkpoint = read_checkpoint(folder / "noise.gguf");
  Options options;
  options.activations = Activations::F32;
  options.kv = KvType::F32;
  options.ctx = 512;
  options.chip = device_chip().name;
  const Weights weights = place_weights({&graph}, checkpoint, options);
  const Schedule schedule = plan(cut, graph, weights, options, device_chip());
  verify(schedule, weights);
  ScheduleExecutor executor(checkpoint, weights, schedule.state_stride, 2);
  Reference reference(graph, Constants(graph, checkpoint));
  for (int step = 0; step < steps; step++) {
    std::vector<int> tokens;
    for (int r = 0; r < rows; r++) tokens.push_back((3 * step + 5 * r) % kVocabulary);
    const int position = step * rows;
    reference.run({{"toks", {tokens.begin(), tokens.end()}}, {"pos", {position}}});
    const auto outcome = executor.run(schedule, tokens, {position}, {1});
    ASSERT_NO_FATAL_FAILURE(expect_close(reference.value("out"), outcome.logits, c.tolerance)) << "step " << step;
    if (c.integers.empty()) continue;
    const auto exact = reference.integers(c.integers);
    ASSERT_EQ(std::vector<int>(exact.begin(), exact.end()), outcome.next) << "step " << step;
  }
}

TEST_P(OpKernel, AgreesWithTheInterpreterAStepAtATime) { compare(1, GetParam().steps); }
TEST_P(OpKernel, AgreesWithTheInterpreterInChunks) {
  if (!GetParam().integers.empty()) GTEST_SKIP() << "a step chooses for its last row alone";
  compare(4, (GetParam().steps + 1) / 2);
  compare(37, 2);
  compare(64, 2);
}

std::string constant(const std::string& name, int columns, int rows = 1) {
  return "Let " + name + " be a new Constant with rows " + std::to_string(rows) + " and columns " +
         std::to_string(columns) + ".\n";
}
std::string carried(const std::string& name, int rows, int columns) {
  return "Let mutable " + name + " be a new Carried with rows " + std::to_string(rows) + " and columns " +
         std::to_string(columns) + ".\n";
}
std::string matrices(const std::string& name, int experts, int rows, int columns) {
  return "Let " + name + " be a new Quantized with experts " + std::to_string(experts) + " and rows " +
         std::to_string(rows) + " and columns " + std::to_string(columns) + ".\n";
}
std::string out(const std::string& value) { return "Let out be the " + value + ".\n"; }

const std::vector<OpCase> kDense = {
    {"ScaledCopy", "", {37}, out("scaled copy of a with factor 0.37")},
    {"Sum", "", {37, 37}, out("elementwise sum of a and b")},
    {"SumOfABias", constant("w", 37), {37}, out("elementwise sum of a and w")},
    {"Product", "", {37, 37}, out("elementwise product of a and b")},
    {"ProductWithAValueARow", "", {37, 1}, out("elementwise product of a and b")},
    {"RmsNorm", constant("w", 333), {333}, out("rms norm of a and w with epsilon 0.00001")},
    {"RmsNormWithoutWeight", "", {2100}, out("rms norm of a with epsilon 0.1")},
    {"RmsNormOfHeads", constant("w", 40), {200}, out("rms norm of a and w with epsilon 0.00001 and width 40")},
    {"RmsNormOfHeadsWithAWeightARow",
     constant("w", 200),
     {200},
     out("rms norm of a and w with epsilon 0.00001 and width 40")},
    {"LayerNorm",
     constant("w", 333) + constant("v", 333),
     {333},
     out("layer norm of a and w and v with epsilon 0.001")},
    {"LayerNormOfHeads", constant("w", 8), {40}, out("layer norm of a and w with epsilon 0.00001 and width 8")},
    {"LengthNorm", "", {96}, out("length norm of a with width 32 and epsilon 0.0001")},
    {"MatrixProduct", matrices("w", 1, 70, 33), {33}, out("matrix product of w and a")},
    {"HeadProduct", matrices("w", 3, 7, 20), {60}, out("head product of w and a with heads 3")},
    {"HeadSlice", "", {60}, out("head slice of a with heads 3 and width 20 and from 5 and through 12")},
    {"Join", "", {13, 40}, out("join of a and b")},
    {"HeadJoin", "", {12, 21}, out("head join of a and b with heads 3")},
    {"HeadJoinOfOneForAll", "", {12, 5}, out("head join of a and b with heads 3 and width 5")},
    {"SiluGate", "", {37, 37}, out("silu gate of a and b")},
    {"GeluGate", "", {37, 37}, out("gelu gate of a and b")},
    {"SigmoidGate", "", {37, 37}, out("sigmoid gate of a and b")},
    {"ClampedGate", "", {37, 37}, out("clamped gate of a and b with limit 0.5 and slope 1.702")},
    {"Silu", "", {37}, out("silu of a")},
    {"Gelu", "", {37}, out("gelu of a")},
    {"Sigmoid", "", {37}, out("sigmoid of a")},
    {"Softplus", "", {37}, out("softplus of a")},
    {"SquareRelu", "", {37}, out("square relu of a")},
    {"Softcap", "", {37}, out("softcap of a with limit 0.7")},
    {"Clamp", "", {37}, out("clamp of a with limit 0.4")},
    {"Greatest", "", {1500}, out("scaled copy of a with factor 2.0") + "Let best be the greatest of out.\n", "best"},
};

const std::string kRotated = "rotation of a and POS with width 24 and turned ";
const std::vector<OpCase> kSequence = {
    {"RotationOfHalves", "", {72}, out(kRotated + "24 and base 10000.0 and paired 0")},
    {"RotationOfNeighbours", "", {72}, out(kRotated + "24 and base 500.0 and paired 1")},
    {"RotationOfAPart", "", {72}, out(kRotated + "10 and base 10000.0 and paired 0 and magnitude 1.2 and linear 4.0")},
    {"RotationByYarn", "", {72}, out(kRotated + "24 and base 10000.0 and paired 0 and yarn 8.0 and original 64")},
    {"RotationByFactors",
     constant("factors", 12),
     {72},
     "Let out be the rotation of a and POS and factors with width 24 and turned 24 and base 10000.0 and paired 0.\n"},
    {"PositionScale", "", {9}, out("position scale of a and POS with factor 0.3 and length 2"), "", 9},
    {"Attention",
     carried("k", 512, 48) + carried("v", 512, 48),
     {96, 48, 48},
     "WRITE k b\nWRITE v c\n" +
         out("attention of a and k and v and POS with heads 4 and groups 2 and width 24 and scale 0.7"),
     "",
     5},
    {"AttentionOverManyTiles",
     carried("k", 512, 10) + carried("v", 512, 6),
     {20, 10, 6},
     "WRITE k b\nWRITE v c\n" + out("attention of a and k and v and POS with heads 4 and groups 2 and width 5 and "
                                    "value width 3 and scale 3.0"),
     "",
     240,
     1e-5},
    {"AttentionInAWindow",
     carried("k", 512, 10) + carried("v", 512, 10),
     {20, 10, 10},
     "WRITE k b\nWRITE v c\n" +
         out("attention of a and k and v and POS with heads 4 and groups 2 and width 5 and scale 3.0 and window 7"),
     "",
     20},
    {"AttentionCappedWithSinks",
     carried("k", 512, 5) + carried("v", 512, 10) + constant("s", 4),
     {20, 5, 10},
     "WRITE k b\nWRITE v c\nLet out be the attention of a and k and v and POS and s with heads 4 and groups 1 and "
     "width "
     "5 and value width 10 and scale 3.0 and limit 1.5.\n",
     "",
     6},
    {"ShortConvolution",
     carried("ring", 3, 21) + constant("taps", 4, 21),
     {21},
     out("short convolution of ring and a and taps") + "Set ring to the shift of ring and a.\n",
     "",
     7},
    {"Decay", constant("dt", 6) + constant("rate", 6), {6}, out("decay of a and dt and rate")},
};

std::string delta(int width, int tiled) {
  const std::string w = " with width " + std::to_string(width), options = " with heads 4 and groups 2 and width " +
                                                                          std::to_string(width) + " and tiled " +
                                                                          std::to_string(tiled);
  return "Let q be the length norm of a" + w + " and epsilon 0.000001.\nLet k be the length norm of b" + w +
         " and epsilon 0.000001.\nLet kept be the sigmoid of d.\nLet rate be the sigmoid of e.\n" +
         out("delta reading of m and q and k and c and kept and rate" + options) +
         "Set m to the delta rule of m and k and c and kept and rate" + options + ".\n";
}
OpCase delta_case(const std::string& name, int width, int tiled) {
  return {name, carried("m", 4 * width, width), {2 * width, 2 * width, 4 * width, 4, 4}, delta(width, tiled), "", 6};
}
std::string routed(const std::string& choice, const std::string& share) {
  return "Let e be the top choice of a with count 3" + choice + ".\nLet s be the chosen share of a and e with " +
         share +
         ".\nLet y be the expert product of w and b and e.\nLet z be the expert bias of c_bias and y and e.\n"
         "Let p be the expert product of v and z and e.\n" +
         out("expert sum of p and s");
}
const std::string kExperts = matrices("w", 8, 9, 14) + matrices("v", 8, 10, 9) + constant("c_bias", 9, 8);
const std::vector<OpCase> kRoutedAndRecurrent = {
    delta_case("DeltaGrouped", 12, 0),
    delta_case("DeltaTiled", 12, 1),
    delta_case("DeltaOfWholeStretchesGrouped", 64, 0),  // as ops/delta_chunk.cuh takes them in chunks of 64
    delta_case("DeltaOfWholeStretchesTiled", 96, 1),
    {"ExpertsBySoftmax", kExperts, {8, 14}, routed("", "by 0 and normalised 1 and factor 1.5")},
    {"ExpertsBySigmoid", kExperts, {8, 14}, routed("", "by 1 and normalised 0 and factor 1.0")},
    {"ExpertsBySoftmaxOfTheChosen", kExperts, {8, 14}, routed("", "by 2 and normalised 0 and factor 2.0")},
    {"ExpertsInGroups", kExperts, {8, 14}, routed(" and groups 4 and kept 2", "by 1 and normalised 1 and factor 1.0")},
    {"ExpertsInGroupsBySoftmax",
     kExperts,
     {8, 14},
     routed(" and groups 4 and kept 2 and by 0", "by 0 and normalised 0 and factor 16.0")},
    {"ExpertsWithABiasBySigmoid",
     kExperts + constant("bias", 8),
     {8, 14},
     replaced(routed(" and by 1", "by 1 and normalised 1 and factor 1.0"), "top choice of a",
              "top choice of a and bias")},
    {"ExpertsWithABias",
     kExperts + constant("bias", 8),
     {8, 14},
     replaced(routed("", "by 1 and normalised 1 and factor 1.0"), "top choice of a", "top choice of a and bias")},
};

/// What rules must see, and must not take for what they look for.
const std::vector<OpCase> kFused = {
    {"BiasAndResidual",
     matrices("w", 1, 33, 33) + constant("b_row", 33),
     {33},
     "Let p be the matrix product of w and a.\nLet s be the elementwise sum of p and b_row.\n" +
         out("elementwise sum of a and s")},
    {"AProductReadTwice",
     matrices("w", 1, 33, 33),
     {33},
     "Let p be the matrix product of w and a.\nLet s be the elementwise sum of p and a.\n" +
         out("elementwise product of s and p")},
    {"ANormReadTwice",
     matrices("w", 1, 33, 33) + constant("n_w", 33),
     {33},
     "Let n be the rms norm of a and n_w with epsilon 0.001.\nLet p be the matrix product of w and n.\n" +
         out("elementwise sum of p and n")},
    {"AGateOfOneProduct",
     matrices("w", 1, 21, 33),
     {33},
     "Let g be the matrix product of w and a.\n" + out("silu gate of g and g")},
    {"AGateOfNormedProducts",
     matrices("w", 1, 21, 33) + matrices("v", 1, 21, 33) + constant("n_w", 33),
     {33},
     "Let n be the rms norm of a and n_w with epsilon 0.001.\nLet g be the matrix product of w and n.\n"
     "Let u be the matrix product of v and n.\n" +
         out("gelu gate of g and u")},
    {"AProductThatReadsAnother",
     matrices("w", 1, 33, 33) + matrices("v", 1, 33, 33),
     {33},
     "Let p be the matrix product of w and a.\nLet q be the matrix product of v and p.\n"
     "Let r be the matrix product of v and a.\nLet s be the elementwise sum of p and q.\n" +
         out("elementwise sum of s and r")},
    {"PartsOfARow",
     matrices("w", 1, 21, 32),
     {60},
     "Let s be the head slice of a with heads 1 and width 60 and from 21 and through 52.\n"
     "Let t be the head slice of s with heads 1 and width 32 and from 5 and through 25.\n"
     "Let p be the matrix product of w and s.\n" +
         out("elementwise sum of p and t")},
};

std::string case_name(const testing::TestParamInfo<OpCase>& tested) { return tested.param.name; }
INSTANTIATE_TEST_SUITE_P(Dense, OpKernel, testing::ValuesIn(kDense), case_name);
INSTANTIATE_TEST_SUITE_P(Sequence, OpKernel, testing::ValuesIn(kSequence), case_name);
INSTANTIATE_TEST_SUITE_P(Fused, OpKernel, testing::ValuesIn(kFused), case_name);
INSTANTIATE_TEST_SUITE_P(RoutedAndRecurrent, OpKernel, testing::ValuesIn(kRoutedAndRecurrent), case_name);

}  // namespace
}  // namespace lane::test
