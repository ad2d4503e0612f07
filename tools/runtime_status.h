// The runtime reports failure by value, lanec by exception.
#pragma once
#include "lane/error.h"
#include "runtime/status.h"

namespace lane::tools {

/// Throws what `status` says, if anything. Its message begins with the refusal's name.
inline void check(const LANE_NAMESPACE::Status& status) {
  if (status.ok()) return;
  const std::string message = status.message.substr(status.message.find(": ") + 2);
  if (status.code == LANE_NAMESPACE::kExitUsage) throw UsageError(message);
  if (status.code == LANE_NAMESPACE::kExitEnvironment) throw IoError(message);
  throw InternalError(message);
}

}  // namespace lane::tools
