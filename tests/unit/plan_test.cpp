// Weights and schedules of a small model: their texts, and that damage does not pass.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lane/error.h"
#include "lane/head.h"
#include "lane/plan.h"
#include "lane/program.h"
#include "lane/spec.h"
#include "lane/weights.h"
#include "support/expect_error.h"
#include "support/golden_case.h"
#include "support/golden_text.h"

namespace lane::test {
namespace {

/// A golden case up to its schedule.
struct Planned {
  Options options;
  TempFolder folder;
  Checkpoint checkpoint;
  StepGraph graph;
  Weights weights;
  Schedule schedule;

  explicit Planned(const std::string& name, FormKind kind = FormKind::Decode, int64_t rows = 1,
                   const std::vector<std::string>& hold = {}, KvType kv = KvType::F16, std::string_view chip = "sm_90",
                   const std::vector<std::string>& fuse = {}, Activations activations = Activations::F32) {
    options.ctx = 64;
    options.fuse = fuse;
    options.activations = activations;
    options.hold = hold;
    options.kv = kv;
    options.chip = chip;
    checkpoint = read_checkpoint(write_case(load_case(name), folder.path()));
    const Cut form = cut(author(describe_model(checkpoint, options)), kind, rows);
    graph = lift(parse_logos(form.text));
    weights = place_weights({&graph}, checkpoint, options);
    schedule = plan(form, graph, weights, options, *find_chip(chip));
    verify(weights, checkpoint);
    verify(schedule, weights);
  }
};

TEST(Weights, TextIsUnchanged) {
  expect_golden("weights/gemma3-q4_k_m.txt", to_text(Planned("gemma3-q4_k_m").weights));
}

TEST(Plan, TextOfADecodeStepIsUnchanged) {
  const Planned p("gemma3-q4_k_m");
  expect_golden("plan/gemma3-q4_k_m.txt", to_text(p.schedule, p.weights));
}

TEST(Plan, TextOfABatchIsUnchanged) {
  const Planned p("llama-f32", FormKind::Batch, 2);
  expect_golden("plan/llama-f32-b2.txt", to_text(p.schedule, p.weights));
}

TEST(Plan, LaysOutStateAlikeInEveryForm) {
  const Planned decode("gemma3-q4_k_m"), chunk("gemma3-q4_k_m", FormKind::Prefill, 8),
      batch("gemma3-q4_k_m", FormKind::Batch, 3);
  for (const Planned* other : {&chunk, &batch}) {
    ASSERT_EQ(decode.schedule.state_stride, other->schedule.state_stride);
    ASSERT_EQ(decode.schedule.states.size(), other->schedule.states.size());
    for (size_t i = 0; i < decode.schedule.states.size(); i++) {
      EXPECT_EQ(decode.schedule.states[i].name, other->schedule.states[i].name);
      EXPECT_EQ(decode.schedule.states[i].offset, other->schedule.states[i].offset);
    }
  }
}

TEST(Plan, SaysABatchsOpsInOneLaunch) {
  EXPECT_EQ(Planned("qwen2-f32", FormKind::Batch, 5).schedule.launches.size(),
            Planned("qwen2-f32").schedule.launches.size());
}

int times_fired(const Planned& p, std::string_view rule) {
  for (const auto& [name, times, launches, bytes] : p.schedule.fired)
    if (name == rule) return times;
  return 0;
}

TEST(Plan, FiresTheRulesOfALlamaLayer) {
  const Planned p("llama-f32");  // two layers and a head
  EXPECT_EQ(times_fired(p, "residual"), 4);
  EXPECT_EQ(times_fired(p, "gate"), 2);
  EXPECT_EQ(times_fired(p, "matrices"), 2);
  EXPECT_EQ(times_fired(p, "norm"), 5);
  EXPECT_EQ(times_fired(p, "split attention"), 2);
  EXPECT_EQ(p.schedule.launches.size(), 1 + 2 * 5 + 3u);  // embedding; five a layer; head, two of the choice
}

/// One token a sequence, an f16 cache, a chip from sm_80 on; else the launches that every chip has.
TEST(Plan, SplitsAttentionWhereItCan) {
  const auto splits = [](const Planned& p) { return times_fired(p, "split attention"); };
  EXPECT_EQ(splits(Planned("llama-f32", FormKind::Batch, 3)), 2);
  EXPECT_EQ(splits(Planned("llama-f32", FormKind::Decode, 1, {}, KvType::F16, "sm_100")), 2);
  EXPECT_EQ(splits(Planned("llama-f32", FormKind::Decode, 1, {}, KvType::F16, "sm_80")), 2);
  const Planned chunk("llama-f32", FormKind::Prefill, 4), floats("llama-f32", FormKind::Decode, 1, {}, KvType::F32),
      older("llama-f32", FormKind::Decode, 1, {}, KvType::F16, "sm_75"),
      held("llama-f32", FormKind::Decode, 1, {"split attention"});
  for (const Planned* p : {&chunk, &floats, &older, &held}) {
    EXPECT_EQ(splits(*p), 0);
    EXPECT_EQ(times_fired(*p, "attention inputs"), 2);
  }
  EXPECT_EQ(times_fired(chunk, "chunk attention"), 2);
  EXPECT_EQ(times_fired(older, "chunk attention") + times_fired(held, "chunk attention"), 0);
  EXPECT_EQ(floats.schedule.states.size(), 4u);
  EXPECT_EQ(held.schedule.states.size(), 5u);  // one holds the counters, whatever a form launches
}

int launches(const Planned& p, std::string_view kernel) {
  return int(std::count_if(p.schedule.launches.begin(), p.schedule.launches.end(),
                           [&](const Launch& l) { return l.kernel->name == kernel; }));
}

/// Several tokens' choices are grouped once a layer, whether they are a chunk's or a batch's.
TEST(Plan, GroupsExpertsForSeveralTokens) {
  const Planned decode("qwen3moe-f32"), chunk("qwen3moe-f32", FormKind::Prefill, 8),
      batch("qwen3moe-f32", FormKind::Batch, 2), held("qwen3moe-f32", FormKind::Prefill, 8, {"expert groups"});
  for (const Planned* p : {&chunk, &batch}) {
    EXPECT_EQ(times_fired(*p, "expert groups"), 2 * 3);  // two layers of three matrices
    EXPECT_EQ(launches(*p, "group_choices"), 2);
    EXPECT_EQ(launches(*p, "grouped_gated_product"), 2);
    EXPECT_EQ(launches(*p, "grouped_product"), 2);
  }
  for (const Planned* p : {&decode, &held}) {
    EXPECT_EQ(times_fired(*p, "expert groups") + launches(*p, "group_choices"), 0);
    EXPECT_EQ(launches(*p, "chosen_gated_product"), 2);
  }
}

/// Whole stretches of one sequence; else row by row.
TEST(Plan, WalksThroughTheDeltaRuleInStretches) {
  const Planned chunk("qwen35-f32", FormKind::Prefill, 32);
  EXPECT_GT(launches(chunk, "delta_chunk"), 0);
  EXPECT_EQ(launches(chunk, "delta_chunk"), launches(chunk, "delta_factors"));
  EXPECT_EQ(launches(chunk, "delta_rule"), 0);
  const Planned decode("qwen35-f32"), small("qwen35-f32", FormKind::Prefill, 16),
      batch("qwen35-f32", FormKind::Batch, 32), held("qwen35-f32", FormKind::Prefill, 32, {"delta chunk"});
  for (const Planned* p : {&decode, &small, &batch, &held}) {
    EXPECT_EQ(launches(*p, "delta_chunk"), 0);
    EXPECT_EQ(launches(*p, "delta_rule"), launches(chunk, "delta_chunk"));
  }
}

TEST(Plan, HoldsARuleByName) {
  const Planned all("qwen2-f32"), bias_held("qwen2-f32", FormKind::Decode, 1, {"bias"}),
      held("qwen2-f32", FormKind::Decode, 1, {"all"});
  EXPECT_EQ(times_fired(all, "bias"), 6);
  EXPECT_EQ(times_fired(bias_held, "bias"), 0);
  EXPECT_GT(times_fired(bias_held, "gate"), 0);
  EXPECT_TRUE(held.schedule.fired.empty());
}

TEST(Plan, RefusesToHoldARuleThatDoesNotExist) {
  EXPECT_THROW(Planned("llama-f32", FormKind::Decode, 1, {"fuse"}), UsageError);
}

TEST(Plan, ListsTheRules) {
  const Planned p("llama-f32");
  const std::string text = rules_text({&p.schedule});
  EXPECT_NE(text.find("rule residual\n"), std::string::npos);
  const int64_t hidden = 256 * sizeof(float);  // a residual's product is neither written nor read
  EXPECT_NE(text.find(fmt::format("fired 4 times in decode: 4 launches, {} bytes\n", 4 * 2 * hidden)),
            std::string::npos);
  EXPECT_NE(text.find("fired nowhere"), std::string::npos);
}

TEST(Plan, GivesTheSameBytesTwice) {
  const Planned a("qwen3-f32"), b("qwen3-f32");
  EXPECT_EQ(to_text(a.schedule, a.weights), to_text(b.schedule, b.weights));
}

void expect_fault(const Planned& sound, const Schedule& damaged, const std::string& words) {
  try {
    verify(damaged, sound.weights);
    ADD_FAILURE() << "passes: " << words;
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

/// The first launch of the kernel.
Launch& launch_of(Schedule& schedule, std::string_view name) {
  for (Launch& launch : schedule.launches)
    if (launch.kernel->name == name) return launch;
  throw std::out_of_range(std::string(name));
}

TEST(Plan, DamageDoesNotPass) {
  const Planned sound("llama-f32");
  const auto damaged = [&](const std::string& words, const std::function<void(Schedule&)>& damage) {
    Schedule copy = sound.schedule;
    damage(copy);
    expect_fault(sound, copy, words);
  };
  damaged("which nothing wrote", [](Schedule& s) { s.launches.erase(s.launches.begin()); });
  damaged("arguments and is given", [](Schedule& s) { s.launches[0].args.pop_back(); });
  damaged("should not be an integer", [](Schedule& s) { s.launches[0].args[0] = int64_t{3}; });
  damaged("should not be a real", [](Schedule& s) { s.launches[0].args.back() = 3.0; });
  damaged("should not be an array", [](Schedule& s) { s.launches[0].args.back() = NullArg{}; });
  damaged("does not fit an int", [](Schedule& s) { s.launches[0].args.back() = int64_t{1} << 40; });
  damaged("unlike its pointer says",
          [](Schedule& s) { std::get<BufferArg>(launch_of(s, "attention_split").args[5]).access = Access::Write; });
  damaged("behind the end",
          [](Schedule& s) { std::get<BufferArg>(launch_of(s, "attention_split").args[0]).byte_offset = 1 << 20; });
  damaged("names no buffer",
          [](Schedule& s) { std::get<BufferArg>(launch_of(s, "attention_split").args[0]).buffer = 999; });
  damaged("names no state",
          [](Schedule& s) { std::get<StateArg>(launch_of(s, "attention_split").args[2]).state = 99; });
  damaged("without a place", [](Schedule& s) { s.launches[0].args[1] = WeightArg{-1}; });
  damaged("impossible grid", [](Schedule& s) { s.launches[3].grid.x = 0; });
  damaged("impossible grid", [](Schedule& s) { s.launches[3].grid.z = 0; });
  damaged("impossible block", [](Schedule& s) { s.launches[3].block.x = 33; });
  damaged("overlaps", [](Schedule& s) { s.states[1].offset = s.states[0].offset; });
  damaged("longer than the stride", [](Schedule& s) { s.state_stride = 256; });
  damaged("before it is chosen", [](Schedule& s) {
    s.launches.back().kernel = &kernel("advance");
    s.launches.back().args = {IoArg{Io::Tokens, Access::Write},
                              IoArg{Io::Positions, Access::ReadWrite},
                              IoArg{Io::Next, Access::Read},
                              int64_t{1},
                              int64_t{1},
                              IoArg{Io::Turns, Access::ReadWrite},
                              IoArg{Io::Shown, Access::Write}};
  });
  damaged("writes the logits", [](Schedule& s) { s.launches.clear(); });
}

/// A step of a llama-like model: q, k and v; attention; the output with gate and up; down.
TEST(Plan, ALlamaLikeLayerIsFourLaunches) {
  const auto layers = [](const std::vector<std::string>& hold, const std::vector<std::string>& fuse = {}) {
    const Planned p("llama-q4_k_m", FormKind::Decode, 1, hold, KvType::F16, "sm_90", fuse, Activations::Int8x2);
    EXPECT_NE(to_text(p.schedule, p.weights).find(fmt::format("\nlaunches: {} in", p.schedule.layer_launches[1])),
              std::string::npos);
    return p.schedule.layer_launches;
  };
  EXPECT_EQ(layers({}), (std::vector{4, 4}));
  EXPECT_EQ(layers({"chain"}), (std::vector{5, 5}));
  EXPECT_EQ(layers({}, {"chain matrices"}), (std::vector{4, 3}));  // nothing makes the first layer's input in a product
  EXPECT_EQ(layers({"gate"}), (std::vector{6, 6}));
}

/// Norms behind products are no launches, and the output chains over one; a first layer looks its row up and scales it.
TEST(Plan, AGemmaLikeLayerIsFourLaunches) {
  const auto layers = [](const std::vector<std::string>& hold) {
    return Planned("gemma3-q4_k_m", FormKind::Decode, 1, hold, KvType::F16, "sm_90", {}, Activations::Int8x2)
        .schedule.layer_launches;
  };
  EXPECT_EQ(layers({}), (std::vector{6, 4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(layers({"chain"}), (std::vector{7, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(layers({"post norm"}), (std::vector{8, 7, 7, 7, 7, 7, 7}));
}

TEST(Plan, RefusesRulesThatAreNot) {
  expect_error<UsageError>("--hold 'gates': no such rule; accepted are 'bias', ",
                           [] { Planned("llama-f32", FormKind::Decode, 1, {"gates"}); });
  const auto with = [](const std::string& rule) {
    Planned("llama-f32", FormKind::Decode, 1, {}, KvType::F16, "sm_90", {rule});
  };
  with("chain matrices");
  expect_error<UsageError>("--fuse 'gate': no such rule; accepted are 'chain matrices'", [&] { with("gate"); });
}

TEST(Plan, AChunksHeadIsOfAnyOfItsRows) {
  EXPECT_FALSE(head_of(Planned("llama-f32").schedule));
  EXPECT_FALSE(head_of(Planned("llama-f32", FormKind::Batch, 2).schedule));
  const Planned sound("llama-f32", FormKind::Prefill, 8);
  const Head head = *head_of(sound.schedule);
  EXPECT_EQ(sound.schedule.buffers[size_t(head.buffer)].bytes, 8 * head.row_bytes);
  EXPECT_LT(head.first, head.end);
  const auto damaged = [&](const std::string& words, const std::function<void(std::vector<Launch>&)>& damage) {
    Schedule copy = sound.schedule;
    damage(copy.launches);
    expect_error<InternalError>(words, [&] { head_of(copy); });
  };
  const size_t first = size_t(head.first);
  damaged("makes no logits", [&](auto& launches) { launches[first].args.push_back(IoArg{}); });
  damaged("not its own", [&](auto& launches) { launches[first].args.push_back(BufferArg{}); });
  damaged("carried state", [&](auto& launches) { launches[first].args.push_back(StateArg{}); });
}

TEST(Weights, DamageDoesNotPass) {
  const Planned sound("gemma3-q4_k_m");
  const auto damaged = [&](const std::string& words, const std::function<void(Weights&)>& damage) {
    Weights copy = sound.weights;
    damage(copy);
    try {
      verify(copy, sound.checkpoint);
      ADD_FAILURE() << "passes: " << words;
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  const auto table = size_t(sound.weights.rotary_tables.begin()->second);
  damaged("is no tensor", [](Weights& w) { w.placements[0].offset += 32; });
  damaged("placed twice", [](Weights& w) { w.placements[1].name = w.placements[0].name; });
  damaged("bytes of its shape", [](Weights& w) { w.placements[0].shape.rows++; });
  damaged("device bytes", [&](Weights& w) { w.placements[table].device_bytes += 4; });
  damaged("outside the sidecar", [&](Weights& w) { w.payload.resize(8); });
  damaged("not 16-aligned", [&](Weights& w) { w.placements[table].offset += 8; });
  damaged("frequency a pair", [&](Weights& w) { w.placements[table].bytes -= 8; });
  damaged("no program can hold", [](Weights& w) { w.placements[0].tensor = "a\"b"; });
  damaged("folded 'output'", [](Weights& w) { w.folded.push_back({"output", 0, 0, 4, 0}); });
  damaged("reads no rotary table", [&](Weights& w) { w.rotary_tables.begin()->second = 0; });
}

TEST(Weights, RefusesByName) {
  const Planned sound("llama-f32");
  StepGraph graph = sound.graph;
  graph.values[size_t(graph.find("attn_q_0"))].name = "attn_x_0";
  EXPECT_THROW(place_weights({&graph}, sound.checkpoint, sound.options), UnboundError);
  graph = sound.graph;
  graph.values[size_t(graph.find("attn_q_0"))].shape.rows /= 2;
  EXPECT_THROW(place_weights({&graph}, sound.checkpoint, sound.options), ShapeError);
}

TEST(Plan, RefusesACacheRowThatIsNotWholeBlocks) {
  const Planned sound("llama-f32");
  StepGraph graph = sound.graph;
  for (Value& v : graph.values)
    if (v.name == "keys_0") v.shape.columns = 24;
  Options options = sound.options;
  options.kv = KvType::Q8_0;
  Cut form;
  form.identity.ctx = 64;
  EXPECT_THROW(plan(form, graph, sound.weights, options, *find_chip("sm_90")), NoKernelError);
}

/// A chunk's graph with values of other sizes than a chunk or a batch of any kept model has.
void expect_no_kernel(const std::string& why, const std::function<void(Value&)>& change) {
  const Planned sound("llama-f32", FormKind::Prefill, 16);
  StepGraph graph = sound.graph;
  for (Value& v : graph.values)
    if (v.shape.rows == 16 && v.kind != ValueKind::Constant) change(v);
  Cut form;
  form.identity = {FormKind::Prefill, 16, 64, "", ""};
  expect_error<NoKernelError>(why, [&] { plan(form, graph, sound.weights, sound.options, *find_chip("sm_90")); });
}
TEST(Plan, RefusesMoreTokensThanAGridHas) {
  expect_no_kernel("65536 blocks in a grid's second dimension, which has 65535",
                   [](Value& v) { v.shape.rows = 65536; });
}
TEST(Plan, RefusesMoreValuesThanAKernelCounts) {
  expect_no_kernel("are more than a kernel counts", [](Value& v) {
    if (v.shape.columns > 1) v.shape.columns = int64_t(1) << 27;
  });
}

TEST(Chips, AreFoundByName) {
  for (const Chip& chip : chips()) EXPECT_EQ(find_chip(chip.name), &chip);
  EXPECT_EQ(find_chip("sm_1"), nullptr);
}

}  // namespace
}  // namespace lane::test
