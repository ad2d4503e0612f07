// How the text side reports failure: a value, never an exception, so that the C interface of an emitted program lets
// nothing escape.
#pragma once
#include <string>
#include <utility>

#include "base/namespace.h"

namespace LANE_NAMESPACE {

// Exit codes of the process that ends with the failure; the same in lanec and in the programs it writes.
constexpr int kExitUsage = 2;
constexpr int kExitCheckpoint = 3;
constexpr int kExitEnvironment = 5;
constexpr int kExitInternal = 70;

/// Success, or an exit code and one line that says where, what was found and what is accepted.
struct Status {
  int code = 0;
  std::string message;
  bool ok() const { return code == 0; }
};

inline Status usage_error(const std::string& message) { return {kExitUsage, "Usage: " + message}; }
inline Status checkpoint_error(const std::string& message) { return {kExitCheckpoint, "Checkpoint: " + message}; }
inline Status io_error(const std::string& message) { return {kExitEnvironment, "Io: " + message}; }
inline Status internal_error(const std::string& message) { return {kExitInternal, "Internal: " + message}; }

}  // namespace LANE_NAMESPACE
