// compare_golden CASE.json LOGITS: a dump of logits against a golden case, as one line. Exit status 1: out of bounds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>
#include <utility>

#include "support/golden_comparison.h"

namespace lane::test {
namespace {

std::vector<float> floats_of(const std::string& bytes) {
  if (bytes.size() % sizeof(float) != 0) throw std::runtime_error(fmt::format("{} bytes are no floats", bytes.size()));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// How a case is named in the table, and what its comparison found.
bool print_comparison(const GoldenCase& golden, const std::string& logits, const std::string& answer,
                      const GoldenBounds& bounds) {
  const GoldenComparison found = compare_logits(golden, floats_of(read_file(logits)), bounds.tie);
  std::string generated = "-";
  if (!answer.empty())
    generated = fmt::format("{}/{}", compare_answer(golden, read_file(answer), bounds.tie), golden.greedy_ids.size());
  const bool good = found.within(bounds);
  fmt::print("{:<24} {:>9.2e}  {:>3}/{:<3}  {:>9.2e} {:>9.2e}  {:>7}  {}\n", golden.name, found.max_difference,
             found.agreed, found.positions, found.mean_kl, found.max_kl, generated, good ? "ok" : "FAILED");
  return good;
}

int run(int argc, char** argv) {
  CLI::App app("compares a dump of logits with a golden case", "compare_golden");
  std::string golden, logits, answer, exact;
  GoldenBounds bounds;
  app.add_option("case", golden, "golden case, JSON")->required();
  app.add_option("logits", logits, "what --dump-logits wrote for the prompt and the greedy ids")->required();
  app.add_option("--answer", answer, "what --json printed for the prompt alone");
  app.add_option("--exact", exact, "rows for the golden's own, of another checkpoint: as --dump-logits writes them");
  app.add_option("--difference", bounds.difference, "most difference of a logit");
  app.add_option("--tie", bounds.tie, "logits nearer than this are as good as equal");
  app.add_option("--mean-kl", bounds.mean_kl, "most mean divergence");
  CLI11_PARSE(app, argc, argv);
  try {
    GoldenCase oracle = read_case(golden);
    if (!exact.empty()) oracle = with_oracle(std::move(oracle), floats_of(read_file(exact)));
    return print_comparison(oracle, logits, answer, bounds) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print("{:<24} FAILED: {}\n", Path(golden).stem().string(), error.what());
    return 1;
  }
}

}  // namespace
}  // namespace lane::test

int main(int argc, char** argv) { return lane::test::run(argc, argv); }
