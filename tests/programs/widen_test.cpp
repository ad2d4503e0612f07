// A checkpoint with its matrices widened to one float format: their values rounded, all else as it was.
#include <gtest/gtest.h>

#include <cmath>

#include "lane/gguf.h"
#include "process.h"
#include "support/golden_case.h"

namespace lane::test {
namespace {

std::vector<double> values_of(const Checkpoint& checkpoint, const TensorInfo& t) {
  std::vector<double> values(t.columns() * t.rows() * t.experts());
  t.format->decode(checkpoint.data(t).data(), values.size(), values.data());
  return values;
}

void expect_widened(const std::string& format, double rounding) {
  const TempFolder folder;
  const std::string before = write_case(load_case("llama-q4_k_m"), folder.path()), after = folder / "widened.gguf";
  const Outcome outcome = run_process({WIDEN_CHECKPOINT, before, format == "F16" ? "f16" : "bf16", after});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Checkpoint narrow = read_checkpoint(before), wide = read_checkpoint(after);
  verify(wide);
  ASSERT_EQ(wide.tensors.size(), narrow.tensors.size());
  ASSERT_EQ(wide.metadata.size(), narrow.metadata.size());
  for (size_t i = 0; i < wide.metadata.size(); i++) EXPECT_EQ(wide.metadata[i].key, narrow.metadata[i].key);
  for (const TensorInfo& t : wide.tensors) {
    const TensorInfo& from = *narrow.tensor(t.name);
    EXPECT_EQ(t.format->name, t.rows() > 1 ? format : from.format->name) << t.name;
    const std::vector<double> found = values_of(wide, t), expected = values_of(narrow, from);
    ASSERT_EQ(found.size(), expected.size()) << t.name;
    for (size_t k = 0; k < found.size(); k++)
      ASSERT_NEAR(found[k], expected[k], rounding * std::abs(expected[k]) + 0x1p-24) << t.name << ", " << k;
  }
}

TEST(WidenCheckpoint, RoundsMatricesAndKeepsTheRest) {
  expect_widened("BF16", 0x1p-8);
  expect_widened("F16", 0x1p-11);
}

TEST(WidenCheckpoint, RefusesAFormatAndAFileThatItDoesNotTake) {
  const TempFolder folder;
  const std::string before = write_case(load_case("llama-q4_k_m"), folder.path());
  EXPECT_EQ(run_process({WIDEN_CHECKPOINT, before, "q8_0", folder / "x.gguf"}).code, 2);
  EXPECT_EQ(run_process({WIDEN_CHECKPOINT, folder / "none", "f16", folder / "x.gguf"}).code, 5);
  EXPECT_FALSE(std::filesystem::exists(folder / "x.gguf"));
}

}  // namespace
}  // namespace lane::test
