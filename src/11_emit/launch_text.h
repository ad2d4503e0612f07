// Prints the launches of a form. Layers repeat them with other addresses, so what most have in common is said once, in
// a lambda at the function's head, and each launch says the rest:
//
//   const auto tiled_product_1 = [&](int stream, uint64_t a0, int a1) {
//     s.launch_dependent(stream, dim3(32), dim3(256), 34048, tiled_product<RepackedQ4_K, 4096>, m.arena(a0),
//     s.matrix(a1), 6);
//   };
//   tiled_product_1(0, 512, 7);
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace lane {

struct LaunchText {
  std::string method;  // of Step
  std::string kernel;  // its name, without template arguments
  std::string fixed;   // geometry and kernel, as they are passed
  int stream = 0;
  std::vector<std::string> args;  // "m.arena(512)", "6"
  std::string line() const;       // the whole call
};

/// Launches in their order; those that differ in numbers and streams alone share a lambda.
class LaunchTexts {
 public:
  explicit LaunchTexts(std::vector<LaunchText> launches);
  /// The lambdas, a line each and more.
  std::string definitions() const;
  /// The call that makes launch `i`.
  std::string call(size_t i) const;

 private:
  struct Shared {
    std::string name;
    std::vector<size_t> members;
    std::vector<bool> varies;  // each argument
    bool streams = false;      // whether the stream varies
  };
  const Shared* shared_of(size_t i) const;
  std::string definition(const Shared& shared) const;

  std::vector<LaunchText> launches_;
  std::vector<Shared> shared_;
  std::vector<int> shared_by_;  // of each launch; -1: by none
};

}  // namespace lane
