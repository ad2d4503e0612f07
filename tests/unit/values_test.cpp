// Values that a sidecar is computed from, and weights that the interpreter reads: noted, and refused where they are no
// numbers.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "lane/logos.h"
#include "lane/program.h"
#include "lane/reference.h"
#include "lane/spec.h"
#include "lane/weights.h"
#include "support/expect_error.h"
#include "support/golden_case.h"
#include "support/recipe.h"
#include "support/recipe_edits.h"

namespace lane::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

/// A case's decode step, and its checkpoint with bytes of a tensor replaced.
class Values : public testing::Test {
 protected:
  void read(nlohmann::json recipe) {
    const Path path = folder_ / "model.gguf";
    write_checkpoint(recipe, path);
    checkpoint_ = read_checkpoint(path);
    options_.ctx = 64;
    graph_ = lift(parse_logos(cut(author(describe_model(checkpoint_, options_)), FormKind::Decode, 1).text));
  }
  template <class T>
  void plant(const char* tensor, uint64_t byte, T value) {
    const Path path = folder_ / "model.gguf";
    std::string bytes = read_file(path);
    std::memcpy(&bytes[checkpoint_.tensor(tensor)->offset + byte], &value, sizeof value);
    write_file(path, bytes);
    checkpoint_ = read_checkpoint(path);
  }
  Weights place() const { return place_weights({&graph_}, checkpoint_, options_); }

  TempFolder folder_;
  Options options_;
  Checkpoint checkpoint_;
  StepGraph graph_;
};

TEST_F(Values, OfRotaryFactorsAreNoted) {
  read(load_case("llama3-f32").recipe);
  const Weights before = place();
  ASSERT_EQ(before.folded.size(), 1u);  // both layers rotate by the same
  EXPECT_EQ(before.folded[0].name, "rope_freqs.weight");
  EXPECT_NE(to_text(before).find("folded into the sidecar: rope_freqs.weight, 128 bytes of shard 0"),
            std::string::npos);
  verify(before, checkpoint_);
  plant("rope_freqs.weight", 31 * 4, 9.0f);
  const Weights after = place();
  EXPECT_NE(after.folded[0].digest, before.folded[0].digest);
  EXPECT_NE(after.payload, before.payload);
}

TEST_F(Values, OfVectorsInBlocksAreNoted) {
  nlohmann::json recipe = load_case("llama-f32").recipe;
  tensor(recipe, "blk.1.ffn_norm.weight")["type"] = "Q8_0";
  tensor(recipe, "blk.1.ffn_norm.weight")["fill"] =
      nlohmann::json::parse(R"({"kind": "blocks", "scales": [[0, 0.01]]})");
  read(recipe);
  ASSERT_EQ(place().folded.size(), 1u);
  EXPECT_EQ(place().folded[0].name, "blk.1.ffn_norm.weight");
  plant("blk.1.ffn_norm.weight", 3 * 34, uint16_t(0x7c00));
  expect_error<CheckpointError>({"'blk.1.ffn_norm.weight'", "weight 96 ", "finite"}, [&] { place(); });
}

TEST_F(Values, OfNothingAreNotedWhereTheSidecarDependsOnNone) {
  read(load_case("llama-f32").recipe);
  EXPECT_TRUE(place().folded.empty());
}

TEST_F(Values, NoRotaryFactorIsZeroNegativeOrNoNumber) {
  for (const float factor : {0.0f, -0.0f, -2.0f, kInfinity, -kInfinity, kNaN}) {
    read(load_case("llama3-f32").recipe);
    check_weights(graph_, checkpoint_);
    plant("rope_freqs.weight", 5 * 4, factor);
    const auto at = std::to_string(checkpoint_.tensor("rope_freqs.weight")->offset + 20);
    expect_error<CheckpointError>({"byte " + at, "weight 5 ", "'rope_freqs.weight'", "above 0"}, [&] { place(); });
    expect_error<CheckpointError>({"weight 5 ", "'rope_freqs.weight'"}, [&] { check_weights(graph_, checkpoint_); });
  }
}

TEST_F(Values, TheInterpretersAreAllNumbers) {
  read(load_case("llama-f32").recipe);
  plant("blk.1.attn_k.weight", 1000 * 4, kNaN);
  plant("blk.1.attn_k.weight", 2000 * 4, kInfinity);
  expect_error<CheckpointError>({"nan", "'blk.1.attn_k.weight'", "weight 1000 (row 3, column 232)"},
                                [&] { check_weights(graph_, checkpoint_); });
  read(load_case("llama-q4_k_m").recipe);
  check_weights(graph_, checkpoint_);
  plant("blk.0.ffn_up.weight", 7 * 144, uint16_t(0x7c00));
  expect_error<CheckpointError>({"'blk.0.ffn_up.weight'", "weight 1792 "}, [&] { check_weights(graph_, checkpoint_); });
}

}  // namespace
}  // namespace lane::test
