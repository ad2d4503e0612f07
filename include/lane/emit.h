// Pass 11: the program as text. Decides nothing: it prints. Bytes of the checkpoint reach the text only as numbers and
// as identifiers that lanec makes.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "lane/compile.h"

namespace lane {

struct Program {
  std::string cu;  // model.cu
  std::vector<std::byte>
      sidecar;  // model.lane: header with its own digest, the default checkpoint path outside the digest, the payload
};

Program emit(const Lane& lane);
/// Throws InternalError: unbalanced text, an include left, bytes outside printable ASCII (the embedded files may hold
/// UTF-8).
void verify(const Program& program);
std::string to_text(const Program& program);  // the .cu

}  // namespace lane
