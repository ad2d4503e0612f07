// Functions that take any bytes and may only succeed or refuse by name.
#pragma once
#include <string_view>

namespace lane::test {

/// Reads `bytes` as a checkpoint's file and asks everything of it. Returns whether it was one; anything thrown but a
/// lane::Error for the file's sake escapes.
bool try_checkpoint(std::string_view bytes);

}  // namespace lane::test
