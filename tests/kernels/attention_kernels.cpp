// Attention on tensor cores, for the heads of the golden cases: a case with others needs a line here.
#include "kernels/registered.h"
#include "ops/attention_chunk.cuh"
#include "ops/attention_split.cuh"

namespace lane::test {
namespace {

template <int Width, int ValueWidth, int Heads>
void add_split(Registry& registry) {
  const std::string arguments =
      std::to_string(Width) + ", " + std::to_string(ValueWidth) + ", " + std::to_string(Heads);
  registry["attention_split<" + arguments + ">"] = registered(program::attention_split<Width, ValueWidth, Heads>);
}
template <int Width, int ValueWidth>
void add_chunk(Registry& registry) {
  const std::string arguments = std::to_string(Width) + ", " + std::to_string(ValueWidth);
  registry["attention_chunk<" + arguments + ">"] = registered(program::attention_chunk<Width, ValueWidth>);
}

}  // namespace

void add_attention_on_tensor_cores(Registry& registry) {
  add_split<32, 32, 1>(registry);
  add_split<32, 32, 2>(registry);
  add_split<32, 32, 6>(registry);
  add_split<48, 24, 1>(registry);
  add_split<64, 32, 2>(registry);
  add_split<64, 64, 1>(registry);
  add_split<64, 64, 2>(registry);
  add_split<64, 64, 4>(registry);
  add_split<96, 64, 4>(registry);
  add_split<128, 128, 2>(registry);
  add_chunk<32, 32>(registry);
  add_chunk<48, 24>(registry);
  add_chunk<64, 32>(registry);
  add_chunk<64, 64>(registry);
  add_chunk<96, 64>(registry);
  add_chunk<128, 128>(registry);
}

}  // namespace lane::test
