// What to do with a refusal: throw it, as a compile does; or keep it and look at what else there is, as a survey does.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "lane/error.h"

namespace lane {

class Refusals {
 public:
  enum class Mode { Throw, Keep };
  explicit Refusals(Mode mode) : mode_(mode) {}

  /// Where refusals are kept the caller goes on, with a value of its own choice for the one refused.
  template <class Refusal>
  void add(const Refusal& refusal) {
    if (mode_ == Mode::Throw) throw refusal;
    keep(refusal);
  }
  /// What `part` returns; where it throws and refusals are kept, a default in its place.
  template <class Part>
  auto attempt(Part part) -> decltype(part()) {
    if (mode_ == Mode::Throw) return part();
    try {
      return part();
    } catch (const InternalError&) {
      throw;
    } catch (const Error& refusal) {
      keep(refusal);
      return decltype(part())();  // of void: nothing
    }
  }

  /// Each once, in order: layers refuse the same key alike.
  const std::vector<std::string>& kept() const { return kept_; }

 private:
  void keep(const Error& refusal) {
    if (seen_.insert(refusal.what()).second) kept_.emplace_back(refusal.what());
  }

  Mode mode_;
  std::vector<std::string> kept_;
  std::set<std::string> seen_;
};

}  // namespace lane
