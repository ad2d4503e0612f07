// lanec's version: printed by the tool and on top of every program it writes.
#pragma once

namespace lane {

constexpr const char* kVersion = "0.1.0";

}  // namespace lane
