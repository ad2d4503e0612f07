// What a program computed against a golden case.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "support/golden_case.h"

namespace lane::test {

/// How far a program may be from the oracle.
struct GoldenBounds {
  double difference = 1e-3;  // of any logit the golden lists
  double tie = 1e-3;  // another choice is right where the oracle's logit of it is nearer than this to its highest
  double mean_kl = 1e-8;
};

struct GoldenComparison {
  int positions = 0;
  double max_difference = 0;  // of any logit the golden lists; infinite where one is no number
  int agreed = 0;             // positions whose greatest logit is the oracle's, ties aside
  double mean_kl = 0;         // KL(oracle || program) over the ids listed at a position, both normalised over them
  double max_kl = 0;

  bool within(const GoldenBounds& bounds) const {
    return agreed == positions && max_difference <= bounds.difference && mean_kl <= bounds.mean_kl;
  }
};

/// `logits`: a row of the vocabulary's size for each position of the golden, row-major, as --dump-logits writes them
/// for its prompt followed by its greedy ids. Throws std::runtime_error where they cannot be such rows.
GoldenComparison compare_logits(const GoldenCase& golden, std::span<const float> logits, double tie);

/// The golden with what `logits`, rows as above, say for its oracle's: at each position their sixteen highest. So a
/// checkpoint without goldens of its own, but with a golden's ids, is compared with the interpreter in float64.
GoldenCase with_oracle(GoldenCase golden, std::span<const float> logits);

/// How many of the greedy ids an answer gives (the line that --json prints): until it ends, or leaves the oracle's path
/// at a tie. Throws std::runtime_error, saying why, where it is none that the golden allows.
int compare_answer(const GoldenCase& golden, const std::string& answer, double tie);

}  // namespace lane::test
