// Models drawn at random for every row of the architecture table: sizes that nobody trains, every option a row has.
// What their schedules compute is held against the interpreter, the launches kept apart, and each other. The draws
// follow from the row's name and a number, so they are the same everywhere. LANE_SWEEP=N tries N models a row; without
// it, two.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "kernels/kernel_registry.h"
#include "kernels/schedule_executor.h"
#include "lane/logos.h"
#include "lane/plan.h"
#include "lane/program.h"
#include "lane/reference.h"
#include "lane/spec.h"
#include "support/files.h"
#include "support/random_model.h"
#include "support/recipe.h"

namespace lane::test {
namespace {

constexpr int kSteps = 6;
constexpr double kTolerance = 1e-3;  // of float activations, relative to the highest logit

struct Form {
  FormKind kind;
  int64_t rows;
};

const std::set<std::string>& kernel_names() {
  static const std::vector<std::string> names = registered_kernel_names();
  static const std::set<std::string> set(names.begin(), names.end());
  return set;
}

int64_t steps_of(const RandomModel& model) { return std::min<int64_t>(kSteps, model.context); }
int token_at(int64_t position) { return int(7 + 13 * position) % 61; }

/// Whether these tests have the kernels of fused products of `format` with the row's gate.
bool has_kernels(const Format& format, const Architecture& row, const std::string& activations) {
  const std::set<std::string>& names = kernel_names();
  const std::string gate = row.activation == Activation::Gelu ? "GeluGate" : "SiluGate", f(format.name);
  const auto has = [&](const std::string& kernel, const std::string& by) {
    return names.contains(kernel + "<" + activations + ", " + f + ", " + f + ", " + by + ">");
  };
  if (!names.contains("product<" + activations + ", " + f + ">")) return false;
  if (row.experts.layers == ExpertLayers::None) return has("gated_product", gate);
  if (row.activation == Activation::Clamped) return has("chosen_gated_product", "ClampedGate");
  return has("gated_product", gate) && has("chosen_gated_product", gate);
}
std::vector<const Format*> formats_of(const Architecture& row) {
  std::vector<const Format*> all;
  for (const Format& format : formats()) {
    const bool floats = format.block_elements == 1;
    if (format.supported() && has_kernels(format, row, "Floats") && (floats || has_kernels(format, row, "Int8x2")))
      all.push_back(&format);
  }
  return all;
}

/// A drawn model's checkpoint and program, from which forms are planned with any options.
class Drawn {
 public:
  explicit Drawn(const RandomModel& model) : drawn(model) {
    write_checkpoint(model.recipe, folder_ / "model.gguf");
    checkpoint = read_checkpoint(folder_ / "model.gguf");
    options.ctx = model.context;
    options.kv = KvType::F32;
    options.activations = Activations::F32;
    options.stream = false;  // the kernels that stream are compiled for the golden cases' shapes alone
    options.chip = device_chip().name;
    program = author(describe_model(checkpoint, options));
  }
  StepGraph graph(const Form& form) const { return lift(parse_logos(cut(program, form.kind, form.rows).text)); }

  const RandomModel& drawn;
  Checkpoint checkpoint;
  ModelProgram program;
  Options options;

 private:
  TempFolder folder_;
};

/// Some forms of a drawn model on the device.
class Planned {
 public:
  Planned(const Drawn& model, const std::vector<Form>& forms, const Options& options) {
    std::vector<const StepGraph*> pointers;
    for (const Form& form : forms) graphs_.push_back(model.graph(form));
    for (const StepGraph& graph : graphs_) pointers.push_back(&graph);
    weights_ = place_weights(pointers, model.checkpoint, options);
    for (size_t i = 0; i < forms.size(); i++) {
      const Cut form = cut(model.program, forms[i].kind, forms[i].rows);
      schedules.push_back(plan(form, graphs_[i], weights_, options, device_chip()));
      verify(schedules.back(), weights_);
    }
    executor = std::make_unique<ScheduleExecutor>(model.checkpoint, weights_, schedules[0].state_stride, 3);
  }
  ScheduleExecutor::Outcome run(size_t form, int64_t from, const std::vector<int>& slots) {
    const Schedule& schedule = schedules[form];
    std::vector<int> tokens;
    for (int64_t s = 0; s < schedule.sequences; s++)
      for (int64_t r = 0; r < schedule.rows_per_sequence; r++) tokens.push_back(token_at(from + r));
    return executor->run(schedule, tokens, std::vector<int>(slots.size(), int(from)), slots);
  }

  std::vector<Schedule> schedules;
  std::unique_ptr<ScheduleExecutor> executor;

 private:
  std::vector<StepGraph> graphs_;
  Weights weights_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Decode steps against the interpreter's in double.
void expect_interpreted(const Drawn& model) {
  StepGraph graph = model.graph({FormKind::Decode, 1});
  const Constants constants(graph, model.checkpoint);
  Reference exact(std::move(graph), constants, {}, 1);
  Planned planned(model, {{FormKind::Decode, 1}}, model.options);
  for (int64_t pos = 0; pos < steps_of(model.drawn); pos++) {
    exact.run({{"tok", {token_at(pos)}}, {"pos", {int(pos)}}});
    const auto outcome = planned.run(0, pos, {1});
    const auto logits = exact.value("logits");
    double highest = 1;
    for (const double logit : logits) highest = std::max(highest, std::abs(logit));
    for (size_t id = 0; id < logits.size(); id++)
      ASSERT_NEAR(outcome.logits[id], logits[id], kTolerance * highest) << "position " << pos << ", id " << id;
  }
}

/// Fused launches against the same kept apart: two steps of a form.
void expect_fused_is_held(const Drawn& model, const Form& form, const Options& options) {
  Options hold = options;
  hold.hold = {"all"};
  Planned fused(model, {form}, options), held(model, {form}, hold);
  const std::vector<int> slots = {1, 2, 0};
  const Schedule& schedule = fused.schedules[0];
  const std::vector<int> used(slots.begin(), slots.begin() + schedule.sequences);
  for (int64_t from = 0; from + schedule.rows_per_sequence <= steps_of(model.drawn);
       from += schedule.rows_per_sequence) {
    const auto a = fused.run(0, from, used), b = held.run(0, from, used);
    ASSERT_TRUE(same_bits(a.logits, b.logits)) << "logits from position " << from;
    for (const int slot : used) ASSERT_EQ(fused.executor->state(slot), held.executor->state(slot)) << from;
  }
}

/// A chunk and a batch against decode steps.
void expect_forms_agree(const Drawn& model, const Options& options) {
  const int64_t rows = steps_of(model.drawn) >= 4 ? 4 : 2;
  Planned planned(model, {{FormKind::Decode, 1}, {FormKind::Prefill, rows}, {FormKind::Batch, 2}}, options);
  ScheduleExecutor::Outcome last;
  for (int64_t pos = 0; pos < rows; pos++) last = planned.run(0, pos, {0});
  const auto chunk = planned.run(1, 0, {1});
  ASSERT_TRUE(same_bits(chunk.logits, last.logits)) << "a chunk of " << rows;
  ASSERT_EQ(planned.executor->state(1), planned.executor->state(0)) << "a chunk of " << rows;
  if (rows + 1 > model.drawn.context) return;
  const auto batch = planned.run(2, rows, {1, 2});
  const auto alone = planned.run(0, rows, {0});
  const std::vector<float> first(batch.logits.begin(), batch.logits.begin() + long(alone.logits.size()));
  ASSERT_TRUE(same_bits(first, alone.logits)) << "in a batch";
  ASSERT_EQ(planned.executor->state(1), planned.executor->state(0)) << "in a batch";
}

class Sweep : public testing::TestWithParam<size_t> {};

TEST_P(Sweep, AnyModelOfTheRowComputes) {
  const char* count = std::getenv("LANE_SWEEP");
  const Architecture& row = architectures()[GetParam()];
  for (uint64_t seed = 1; seed <= (count ? std::strtoull(count, nullptr, 10) : 2); seed++) {
    const RandomModel drawn = random_model(row, seed, formats_of(row));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + drawn.summary);
    const Drawn model(drawn);
    ASSERT_NO_FATAL_FAILURE(expect_interpreted(model));
    for (const Activations activations : {Activations::F32, Activations::Int8x2}) {
      Options options = model.options;
      options.activations = activations;
      // So is attention on tensor cores, which chips with bulk copies choose for halves.
      options.kv = seed % 2 == 0 || device_chip().bf16_mma ? KvType::F32 : KvType::F16;
      ASSERT_NO_FATAL_FAILURE(expect_fused_is_held(model, {FormKind::Decode, 1}, options));
      ASSERT_NO_FATAL_FAILURE(expect_fused_is_held(model, {FormKind::Prefill, 2}, options));
      ASSERT_NO_FATAL_FAILURE(expect_fused_is_held(model, {FormKind::Batch, 3}, options));
      ASSERT_NO_FATAL_FAILURE(expect_forms_agree(model, options));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Sweep, testing::Range<size_t>(0, architectures().size()), [](const auto& tested) {
  std::string name(architectures()[tested.param].name);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace lane::test
