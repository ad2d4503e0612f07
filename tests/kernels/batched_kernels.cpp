// The products of float weights and several tokens that schedules of the golden cases launch.
#include "kernels/registered.h"
#include "layout/floats.cuh"
#include "ops/batched_product.cuh"
#include "ops/float_vectors.cuh"

namespace lane::test {
namespace {

template <class L, int Columns>
void add_product(Registry& registry, const std::string& layout) {
  const std::string arguments = "<" + layout + ", " + std::to_string(Columns);
  registry["batched_product" + arguments + ">"] = registered(program::batched_product<L, Columns>);
  registry["float_vectors" + arguments + ", 1>"] = registered(program::float_vectors<L, Columns, 1>);
}

/// What a layer of one format launches.
template <class L>
void add_layer(Registry& registry, const std::string& layout) {
  add_product<L, 256>(registry, layout);
  add_product<L, 512>(registry, layout);
  registry["batched_gated_product<" + layout + ", 256>"] = registered(program::batched_gated_product<L, 256>);
  registry["float_vectors<" + layout + ", 256, 2>"] = registered(program::float_vectors<L, 256, 2>);
}

}  // namespace

void add_batched_products(Registry& registry) {
  add_layer<program::RepackedF16>(registry, "RepackedF16");
  add_layer<program::RepackedBF16>(registry, "RepackedBF16");
}

}  // namespace lane::test
