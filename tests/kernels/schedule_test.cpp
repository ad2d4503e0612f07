// Schedules of the golden cases, run on the device, against what llama.cpp computes; and the forms against each
// other, bit for bit. Float activations and a float cache: nothing is rounded that the oracle does not round.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "kernels/batch_as_alone.h"
#include "kernels/compiled_case.h"
#include "kernels/schedule_executor.h"

namespace lane::test {
namespace {

constexpr int64_t kContext = 64;
constexpr double kTolerance = 1e-3, kTie = 1e-3;

Options options_of(Activations activations, const std::vector<std::string>& hold, bool stream,
                   const std::vector<std::string>& fuse) {
  Options options;
  options.activations = activations;
  options.hold = hold;
  options.fuse = fuse;
  options.stream = stream;
  options.ctx = kContext;
  options.kv = KvType::F32;
  return options;
}
/// Streams matrices only where asked to, on every chip alike.
struct Compiled : CompiledCase {
  Compiled(const std::string& name, const std::vector<Form>& forms, Activations activations = Activations::F32,
           const std::vector<std::string>& hold = {}, bool stream = false, const Chip& chip = device_chip(),
           const std::vector<std::string>& fuse = {})
      : CompiledCase(name, forms, options_of(activations, hold, stream, fuse), chip) {}
};

/// The logits of one position against the oracle's.
void expect_position(const GoldenCase& golden, int position, const std::vector<float>& logits, int next) {
  const TopLogits& top = golden.top8[size_t(position)];
  for (size_t i = 0; i < top.ids.size(); i++)
    ASSERT_NEAR(logits[size_t(top.ids[i])], top.logits[i], kTolerance) << "position " << position;
  const auto full = golden.full_logits.find(position);
  const std::vector<double> all = full == golden.full_logits.end() ? std::vector<double>{} : full->second;
  for (size_t i = 0; i < all.size(); i++)
    ASSERT_NEAR(logits[i], all[i], kTolerance) << "position " << position << ", id " << i;
  const double chosen = logits[size_t(next)];
  ASSERT_NEAR(chosen, top.logits[0], kTie) << "position " << position << " chose " << next;
  for (const float logit : logits) ASSERT_LE(logit, chosen);
}

/// The Kullback-Leibler divergence from the oracle's eight highest to ours, both normalised over those ids.
double divergence(const TopLogits& top, const std::vector<float>& logits) {
  double theirs = 0, ours = 0, sum = 0;
  for (size_t i = 0; i < top.ids.size(); i++) {
    theirs += std::exp(top.logits[i] - top.logits[0]);
    ours += std::exp(double(logits[size_t(top.ids[i])]) - top.logits[0]);
  }
  for (size_t i = 0; i < top.ids.size(); i++) {
    const double p = std::exp(top.logits[i] - top.logits[0]) / theirs;
    const double q = std::exp(double(logits[size_t(top.ids[i])]) - top.logits[0]) / ours;
    sum += p * std::log(p / q);
  }
  return sum;
}

/// The mean divergence of a decode over the case's tokens.
double mean_divergence(const Compiled& model) {
  ScheduleExecutor executor(model.checkpoint, model.weights, model.schedules[0].state_stride, 1);
  const std::vector<int> ids = model.all_ids();
  double sum = 0;
  for (int position = 0; position + 1 < int(ids.size()); position++) {
    const auto outcome = executor.run(model.schedules[0], {ids[size_t(position)]}, {position}, {0});
    sum += divergence(model.golden.top8[size_t(position)], outcome.logits);
  }
  return sum / double(ids.size() - 1);
}

const std::vector<Compiled::Form> kDecode = {{FormKind::Decode, 1}};
const std::vector<Compiled::Form> kWithChunks = {
    {FormKind::Decode, 1}, {FormKind::Prefill, 4}, {FormKind::Prefill, 16}};
const std::vector<Compiled::Form> kWithShortChunks = {
    {FormKind::Decode, 1}, {FormKind::Prefill, 4}, {FormKind::Prefill, 8}};
const std::vector<Compiled::Form> kWithBatch = {{FormKind::Decode, 1}, {FormKind::Batch, 3}};

class GoldenSchedule : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSchedule, DecodesAsTheOracle) {
  const Compiled model(GetParam(), kDecode);
  const Schedule& decode = model.schedules[0];
  ScheduleExecutor executor(model.checkpoint, model.weights, decode.state_stride, 1);
  const std::vector<int> ids = model.all_ids();
  for (int position = 0; position + 1 < int(ids.size()); position++) {
    const auto outcome = executor.run(decode, {ids[size_t(position)]}, {position}, {0});
    ASSERT_NO_FATAL_FAILURE(expect_position(model.golden, position, outcome.logits, outcome.next[0]));
    ASSERT_EQ(executor.next_tokens(), outcome.next);
    ASSERT_EQ(executor.next_positions(), std::vector<int>{position + 1});
  }
}

/// So many sequences that a launch over them has several blocks: a token each, from the first slot to the last. By the
/// portable kernels, of any number of tokens.
TEST(LargeBatch, DecodesAsEachSequenceAlone) {
  constexpr int kSequences = 600;
  const Compiled model("llama-q4_k", {{FormKind::Decode, 1}, {FormKind::Batch, kSequences}}, Activations::Int8x2, {},
                       false, *find_chip("host"));
  const Schedule &decode = model.schedules[0], &batch = model.schedules[1];
  ScheduleExecutor together(model.checkpoint, model.weights, decode.state_stride, kSequences);
  std::vector<int> tokens, positions(kSequences, 0), slots;
  for (int s = 0; s < kSequences; s++) tokens.push_back(3 + s * 37 % 250), slots.push_back(kSequences - 1 - s);
  const auto all = together.run(batch, tokens, positions, slots);
  const size_t row = size_t(batch.vocabulary);
  for (const int s : {0, 255, 256, 511, 512, kSequences - 1}) {
    SCOPED_TRACE(s);
    ScheduleExecutor alone(model.checkpoint, model.weights, decode.state_stride, 1);
    const auto mine = alone.run(decode, {tokens[size_t(s)]}, {0}, {0});
    EXPECT_EQ(std::memcmp(mine.logits.data(), &all.logits[size_t(s) * row], row * sizeof(float)), 0);
    EXPECT_EQ(mine.next[0], all.next[size_t(s)]);
    EXPECT_EQ(alone.state(0), together.state(slots[size_t(s)]));
  }
  EXPECT_EQ(together.next_positions(), std::vector<int>(kSequences, 1));
  EXPECT_EQ(together.next_tokens(), all.next);
}

/// The bounds of docs/numerics.md.
TEST_P(GoldenSchedule, StaysWithinTheDivergenceOfItsActivations) {
  const double float_divergence = mean_divergence(Compiled(GetParam(), kDecode));
  EXPECT_LE(float_divergence, 1e-8);
  if (GetParam().ends_with("-f32") || GetParam().ends_with("-f16") || GetParam().ends_with("-bf16")) return;
  const double two_words = mean_divergence(Compiled(GetParam(), kDecode, Activations::Int8x2));
  const double one_word = mean_divergence(Compiled(GetParam(), kDecode, Activations::Int8, {"all"}));
  EXPECT_LE(two_words, 1e-6);
  EXPECT_LE(one_word, 2e-2);
}

/// The prompt in chunks of the third form's rows, the second's and 1 leaves the state and the logits that as many
/// decode steps leave.
void expect_chunks_as_decoded(const Compiled& model) {
  const Schedule& decode = model.schedules[0];
  ScheduleExecutor stepwise(model.checkpoint, model.weights, decode.state_stride, 1);
  ScheduleExecutor chunked(model.checkpoint, model.weights, decode.state_stride, 2);
  const std::vector<int>& ids = model.golden.prompt_ids;
  ASSERT_EQ(ids.size(), 21u);
  ScheduleExecutor::Outcome last, chunk;
  for (int position = 0; position < 21; position++)
    last = stepwise.run(decode, {ids[size_t(position)]}, {position}, {0});
  int done = 0;
  for (const size_t form : {2, 1, 0}) {
    const Schedule& schedule = model.schedules[form];
    for (const int rows = int(schedule.rows_per_sequence); done + rows <= 21; done += rows) {
      chunk = chunked.run(schedule, {ids.begin() + done, ids.begin() + done + rows}, {done}, {1});
      EXPECT_EQ(chunked.next_positions(), std::vector<int>{done + rows});
    }
  }
  EXPECT_EQ(chunk.next, last.next);
  EXPECT_EQ(std::memcmp(chunk.logits.data(), last.logits.data(), last.logits.size() * sizeof(float)), 0);
  EXPECT_EQ(chunked.state(1), stepwise.state(0));
  EXPECT_EQ(chunked.state(0), std::vector<uint8_t>(size_t(decode.state_stride)));
}

TEST_P(GoldenSchedule, PrefillsAsItDecodes) { expect_chunks_as_decoded(Compiled(GetParam(), kWithChunks)); }

TEST_P(GoldenSchedule, BatchesAsItDecodesAlone) { expect_batch_as_alone(Compiled(GetParam(), kWithBatch)); }

/// A form with launches fused and kept apart: the same bits in the logits and in the state.
void expect_fused_equals_held(const CompiledCase& fused, const CompiledCase& held) {
  const Schedule &with = fused.schedules[0], &without = held.schedules[0];
  ScheduleExecutor one(fused.checkpoint, fused.weights, with.state_stride, 3);
  ScheduleExecutor other(held.checkpoint, held.weights, without.state_stride, 3);
  const std::vector<int> ids = fused.all_ids(), slots = {1, 2, 0};
  const auto sequences = size_t(with.sequences), rows = size_t(with.rows_per_sequence);
  for (int step = 0; step < 2; step++) {
    const int position = step * int(rows);
    std::vector<int> tokens;
    for (size_t t = 0; t < sequences * rows; t++) tokens.push_back(ids[size_t(position) + t]);
    const std::vector<int> positions(sequences, position), used(slots.begin(), slots.begin() + long(sequences));
    const auto a = one.run(with, tokens, positions, used), b = other.run(without, tokens, positions, used);
    ASSERT_EQ(std::memcmp(a.logits.data(), b.logits.data(), a.logits.size() * sizeof(float)), 0) << "step " << step;
    for (const int slot : used) ASSERT_EQ(one.state(slot), other.state(slot)) << "step " << step;
  }
}

const Compiled::Form kFormsTried[] = {{FormKind::Decode, 1}, {FormKind::Prefill, 16}, {FormKind::Batch, 3}};

/// What fires together against all of it kept apart, and against one rule kept apart after the other: rules whose
/// faults make up for each other would pass the first alone.
TEST_P(GoldenSchedule, ComputesFusedWhatItComputesHeld) {
  for (const Activations activations : {Activations::F32, Activations::Int8x2})
    for (const Compiled::Form& form : kFormsTried) {
      const Compiled fused(GetParam(), {form}, activations), held(GetParam(), {form}, activations, {"all"});
      EXPECT_LT(fused.schedules[0].launches.size(), held.schedules[0].launches.size());
      expect_fused_equals_held(fused, held);
    }
}
TEST_P(GoldenSchedule, ComputesTheSameWithOneRuleHeld) {
  for (const Compiled::Form& form : kFormsTried) {
    const Compiled fused(GetParam(), {form}, Activations::Int8x2);
    for (const Fired& fired : fused.schedules[0].fired) {
      SCOPED_TRACE(fired.rule);
      expect_fused_equals_held(fused, Compiled(GetParam(), {form}, Activations::Int8x2, {fired.rule}));
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, GoldenSchedule, testing::ValuesIn(case_names()), test_name);

/// Matrices repacked and streamed, where the case has such.
class StreamedSchedule : public testing::TestWithParam<std::string> {
 protected:
  static Compiled streamed(const std::vector<Compiled::Form>& forms, const std::vector<std::string>& hold = {},
                           const std::vector<std::string>& fuse = {}) {
    return Compiled(GetParam(), forms, Activations::Int8x2, hold, true, device_chip(), fuse);
  }
};

/// The cases whose layers have nothing to chain: experts, fused q/k/v and gate/up.
const std::set<std::string> kUnchained = {"gptoss-mxfp4", "mixtral-q4_k_m", "phi3-q4_k_m", "qwen3moe-q4_k_m",
                                          "qwen3next-q4_k_m"};
/// Those whose layers have norms behind products.
const std::set<std::string> kPostNormed = {"gemma3-q4_k_m"};

bool launches(const Schedule& schedule, std::string_view prefix) {
  return std::any_of(schedule.launches.begin(), schedule.launches.end(),
                     [&](const Launch& l) { return l.kernel->name.starts_with(prefix); });
}

/// Fused or held: a norm or a gate inside a streamed product rounds elsewhere than apart, so both have the bound of
/// their activations and not each other's bits.
TEST_P(StreamedSchedule, StaysWithinTheDivergenceOfItsActivations) {
  const Compiled fused = streamed(kDecode), held = streamed(kDecode, {"all"});
  ASSERT_TRUE(launches(fused.schedules[0], "streamed_") && launches(held.schedules[0], "streamed_"));
  EXPECT_LT(fused.schedules[0].launches.size(), held.schedules[0].launches.size());
  EXPECT_LE(mean_divergence(fused), 1e-6);
  EXPECT_LE(mean_divergence(held), 1e-6);
}

bool has_float_weights(const std::string& name) { return name == "llama-f16" || name == "llama-bf16"; }

TEST_P(StreamedSchedule, PrefillsAsItDecodes) {
  expect_chunks_as_decoded(streamed(has_float_weights(GetParam()) ? kWithShortChunks : kWithChunks));
}
TEST_P(StreamedSchedule, BatchesAsItDecodesAlone) { expect_batch_as_alone(streamed(kWithBatch)); }

/// Two schedules of one decode step: the same bits in the logits and the state, step after step.
void expect_same_decode(const Compiled& a, const Compiled& b) {
  ScheduleExecutor one(a.checkpoint, a.weights, a.schedules[0].state_stride, 1);
  ScheduleExecutor other(b.checkpoint, b.weights, b.schedules[0].state_stride, 1);
  const std::vector<int> ids = a.all_ids();
  for (int position = 0; position < 8; position++) {
    const std::vector<int> token{ids[size_t(position)]};
    const auto left = one.run(a.schedules[0], token, {position}, {0});
    const auto right = other.run(b.schedules[0], token, {position}, {0});
    ASSERT_EQ(std::memcmp(left.logits.data(), right.logits.data(), left.logits.size() * sizeof(float)), 0) << position;
    const std::vector<uint8_t> ours = one.state(0), theirs = other.state(0);
    const size_t shared = std::min(ours.size(), theirs.size());  // links come last
    ASSERT_EQ(std::memcmp(ours.data(), theirs.data(), shared), 0) << position;
  }
}

/// Chained launches, where two of a step can be: the bits of the launches apart, step after step.
void expect_chained(const Compiled& chained, const Compiled& apart, std::string_view kernel, bool has_none) {
  EXPECT_EQ(launches(chained.schedules[0], kernel), !has_none);
  if (has_none) return;
  EXPECT_LT(chained.schedules[0].launches.size(), apart.schedules[0].launches.size());
  expect_same_decode(chained, apart);
}
TEST_P(StreamedSchedule, ChainsWithTheBitsOfLaunchesApart) {
  // deepseek2 has one layer without experts, and one such launch would have nobody to take turns with.
  expect_chained(streamed(kDecode), streamed(kDecode, {"chain"}),
                 kPostNormed.contains(GetParam()) ? "chained_post_normed_gated_product" : "chained_gated_product",
                 kUnchained.contains(GetParam()) || GetParam() == "deepseek2-q8_0");
}
TEST_P(StreamedSchedule, ChainsMatricesWithTheBitsOfLaunchesApart) {
  expect_chained(streamed(kDecode, {}, {"chain matrices"}), streamed(kDecode), "chained_products",
                 kUnchained.contains(GetParam()) || kPostNormed.contains(GetParam()));
}

class PostNorms : public StreamedSchedule {};
/// Norms behind products, made by the blocks that read them: the bits of the norms apart.
TEST_P(PostNorms, AreThoseOfLaunchesApart) {
  const Compiled fused = streamed(kDecode, {"chain"}), apart = streamed(kDecode, {"post norm"});
  ASSERT_TRUE(launches(fused.schedules[0], "post_normed_products") &&
              launches(fused.schedules[0], "post_normed_gated_product") &&
              launches(fused.schedules[0], "post_normed_choice"));
  EXPECT_FALSE(launches(fused.schedules[0], "rms_norm") || launches(apart.schedules[0], "post_normed_"));
  expect_same_decode(fused, apart);
}
INSTANTIATE_TEST_SUITE_P(All, PostNorms, testing::ValuesIn(kPostNormed), test_name);

/// One token streams; several share kernels of their own, one family for quantized vectors, one for floats.
TEST_P(StreamedSchedule, ReadsTheWeightsOnceForSeveralTokens) {
  const Compiled model = streamed(kWithBatch);
  EXPECT_FALSE(launches(model.schedules[0], "tiled_") || launches(model.schedules[0], "batched_"));
  const bool floats = has_float_weights(GetParam());
  EXPECT_EQ(launches(model.schedules[1], "tiled_"), !floats);
  EXPECT_EQ(launches(model.schedules[1], "batched_"), floats);
  EXPECT_FALSE(launches(model.schedules[1], "streamed_"));
}

/// A chunk of float weights from 16 rows on is the tensor cores': not the bits of decode steps, but within their bound.
class FloatWeights : public StreamedSchedule {};

/// A model's chunk, and decode steps of `alone`, the same one or one of the same checkpoint.
void expect_chunk_near_decoded(const Compiled& model, const Compiled& alone) {
  const Schedule &decode = alone.schedules[0], &prefill = model.schedules[1];
  const auto rows = size_t(prefill.rows_per_sequence);
  std::vector<int> ids = model.all_ids();
  while (ids.size() < rows) ids.push_back(ids[ids.size() - 20]);
  ids.resize(rows);
  ScheduleExecutor stepwise(alone.checkpoint, alone.weights, decode.state_stride, 1);
  ScheduleExecutor chunked(model.checkpoint, model.weights, prefill.state_stride, 1);
  ScheduleExecutor::Outcome last;
  for (int position = 0; position < int(rows); position++)
    last = stepwise.run(decode, {ids[size_t(position)]}, {position}, {0});
  const ScheduleExecutor::Outcome chunk = chunked.run(prefill, ids, {0}, {0});
  ASSERT_EQ(chunk.logits.size(), last.logits.size());
  for (size_t i = 0; i < last.logits.size(); i++) ASSERT_NEAR(chunk.logits[i], last.logits[i], kTolerance) << i;
}
void expect_chunk_near_decoded(const Compiled& model) { expect_chunk_near_decoded(model, model); }

TEST_P(FloatWeights, PrefillInChunksWhatTheyDecode) {
  for (const int rows : {16, 32, int(kContext)}) {
    SCOPED_TRACE(rows);
    const Compiled model = streamed({{FormKind::Decode, 1}, {FormKind::Prefill, rows}});
    const std::string kernels = rows == int(kContext) && device_chip().capability == 0 ? "wide" : "mma";
    EXPECT_TRUE(launches(model.schedules[1], kernels + "_product"));
    EXPECT_TRUE(launches(model.schedules[1], kernels + "_gated_product"));
    expect_chunk_near_decoded(model);
  }
}
/// On a chip that does not repack, rows are read as the file has them; with exact activations tensor cores have no
/// part.
TEST_P(FloatWeights, PrefillInChunksAsTheyAreStored) {
  const std::vector<Compiled::Form> forms = {{FormKind::Decode, 1}, {FormKind::Prefill, 16}};
  const Chip& chip = *find_chip("sm_80");
  const Compiled model(GetParam(), forms, Activations::Int8x2, {}, false, chip);
  EXPECT_TRUE(launches(model.schedules[1], "mma_product"));
  expect_chunk_near_decoded(model);
  const Compiled exact(GetParam(), forms, Activations::F32, {}, false, chip);
  EXPECT_FALSE(launches(exact.schedules[1], "mma_"));
  const Compiled older(GetParam(), forms, Activations::Int8x2, {}, false, *find_chip("sm_75"));
  EXPECT_FALSE(launches(older.schedules[1], "mma_"));
}
INSTANTIATE_TEST_SUITE_P(All, FloatWeights, testing::Values("llama-bf16", "llama-f16"), test_name);

/// Quantized weights as stored go to integer tensor cores where the chip has them, with the bits of decode steps; where
/// it has none, or activations are exact, to the multi-row products.
class StoredWeights : public testing::TestWithParam<std::string> {
 protected:
  static Compiled planned(std::string_view chip, Activations activations, const std::vector<Compiled::Form>& forms) {
    return Compiled(GetParam(), forms, activations, {}, false, *find_chip(chip));
  }
};
TEST_P(StoredWeights, PrefillOnIntegerTensorCoresAsTheyDecode) {
  for (const char* chip : {"sm_75", "sm_80"}) {
    SCOPED_TRACE(chip);
    const Compiled model = planned(chip, Activations::Int8x2, kWithChunks);
    EXPECT_FALSE(launches(model.schedules[1], "mma_int8"));
    EXPECT_TRUE(launches(model.schedules[2], "mma_int8_product"));
    EXPECT_FALSE(launches(model.schedules[2], "matrix_product_int8"));
    expect_chunks_as_decoded(model);
  }
}
TEST_P(StoredWeights, StayOffTensorCoresThatAreNotThere) {
  const std::vector<Compiled::Form> chunk = {{FormKind::Prefill, 16}};
  for (const auto& [chip, activations] : {std::pair{"host", Activations::Int8x2}, {"sm_80", Activations::F32}}) {
    const Compiled model = planned(chip, activations, chunk);
    EXPECT_FALSE(launches(model.schedules[0], "mma_int8")) << chip;
  }
}
TEST_P(StoredWeights, QuantizeTheirActivationsApartWithTheSameBits) {
  const Options together = options_of(Activations::Int8x2, {}, false, {});
  Options apart = together;
  apart.fuse_quant = false;
  for (const Compiled::Form& form : kFormsTried)
    expect_fused_equals_held(CompiledCase(GetParam(), {form}, together, device_chip()),
                             CompiledCase(GetParam(), {form}, apart, device_chip()));
}

/// Experts that many tokens chose: the bits of the chip that has no tensor cores.
TEST(StoredExperts, PrefillOnIntegerTensorCoresWithThePortableBits) {
  Options options = options_of(Activations::Int8x2, {}, false, {});
  options.ctx = 128;
  const auto chunk = [&](std::string_view chip, int rows) {
    const CompiledCase model("mixtral-q4_k_m", {{FormKind::Prefill, rows}}, options, *find_chip(chip));
    EXPECT_EQ(launches(model.schedules[0], "grouped_mma_int8_product"), chip == "sm_80" && rows == 128);
    EXPECT_EQ(launches(model.schedules[0], "grouped_mma_int8_gated_product"), chip == "sm_80" && rows == 128);
    std::vector<int> ids;
    for (int i = 0; i < rows; i++) ids.push_back(3 + i * 37 % 250);
    ScheduleExecutor executor(model.checkpoint, model.weights, model.schedules[0].state_stride, 1);
    const ScheduleExecutor::Outcome outcome = executor.run(model.schedules[0], ids, {0}, {0});
    return std::pair{outcome.logits, executor.state(0)};
  };
  for (const int rows : {64, 128}) {
    const auto tiles = chunk("sm_80", rows), portable = chunk("host", rows);
    EXPECT_TRUE(tiles.first == portable.first) << rows;
    EXPECT_TRUE(tiles.second == portable.second) << rows;
  }
}
INSTANTIATE_TEST_SUITE_P(All, StoredWeights,
                         testing::Values("deepseek2-q8_0", "gemma3-q4_k_m", "gptoss-mxfp4", "lfm2-q4_k_m",
                                         "llama-iq4_nl", "llama-q2_k", "llama-q5_0", "llama-q6_k", "llama_odd-q5_0",
                                         "mixtral-q4_k_m", "qwen2-q4_k_m", "qwen3moe-q4_k_m", "qwen3next-q4_k_m"),
                         test_name);

/// So is a long chunk of quantized weights, from decode steps of float activations: from those of its own integers it
/// may be twice as far. A GPU has more multiprocessors than these matrices have blocks, and takes smaller tiles: there
/// chunk_test runs the kernels.
class LongChunk : public StreamedSchedule {};
TEST_P(LongChunk, PrefillsWhatItDecodes) {
  const Compiled model = streamed({{FormKind::Decode, 1}, {FormKind::Prefill, int(kContext)}});
  if (device_chip().capability == 0) {
    for (const char* kernel : {"chunk_product", "chunk_products", "chunk_gated_product"})
      EXPECT_TRUE(launches(model.schedules[1], kernel)) << kernel;
    EXPECT_FALSE(launches(model.schedules[1], "tiled_gated_product"));
  }
  const Compiled floats(GetParam(), {{FormKind::Decode, 1}}, Activations::F32, {}, true, device_chip());
  expect_chunk_near_decoded(model, floats);
}
/// And one of 32 rows, in blocks of few tokens.
TEST(LongChunkOfFewTokens, PrefillsWhatItDecodes) {
  const Compiled model("llama-q4_k", {{FormKind::Decode, 1}, {FormKind::Prefill, 32}}, Activations::Int8x2, {}, true,
                       device_chip());
  EXPECT_TRUE(device_chip().capability != 0 || launches(model.schedules[1], "chunk_product"));
  expect_chunk_near_decoded(model);
}
INSTANTIATE_TEST_SUITE_P(All, LongChunk, testing::Values("llama-q4_k", "llama-q5_0", "llama-q6_k", "llama-q8_0"),
                         test_name);

INSTANTIATE_TEST_SUITE_P(All, StreamedSchedule,
                         testing::Values("deepseek2-q8_0", "gemma3-q4_k_m", "gptoss-mxfp4", "lfm2-q4_k_m", "llama-bf16",
                                         "llama-f16", "llama-iq4_nl", "llama-iq4_xs", "llama-q3_k", "llama-q4_0",
                                         "llama-q4_1", "llama-q4_k", "llama-q5_1", "llama-q5_k", "llama-q4_k_m",
                                         "llama-q5_0", "llama-q6_k", "llama-q8_0", "mixtral-q4_k_m", "phi3-q4_k_m",
                                         "qwen2-q4_k_m", "qwen35-q8_0", "qwen3moe-q4_k_m", "qwen3next-q4_k_m"),
                         test_name);

}  // namespace
}  // namespace lane::test
