// The products of float weights and several tokens that schedules of the golden cases launch.
#include "kernels/registered.h"
#include "layout/floats.cuh"
#include "ops/batched_product.cuh"
#include "ops/float_vectors.cuh"
#include "ops/split_vectors.cuh"
#include "ops/wide_product.cuh"

namespace lane::test {
namespace {

template <class L, int Columns>
void add_product(Registry& registry, const std::string& layout) {
  const std::string arguments = "<" + layout + ", " + std::to_string(Columns);
  registry["batched_product" + arguments + ">"] = registered(program::batched_product<L, Columns>);
  registry["float_vectors" + arguments + ", 1>"] = registered(program::float_vectors<L, Columns, 1>);
}

/// For blocks of Groups groups of rows.
template <class L, int Groups>
void add_wide(Registry& registry, const std::string& layout) {
  const std::string groups = ", " + std::to_string(Groups) + ", 1>";
  registry["wide_product<" + layout + ", 256" + groups] = registered(program::wide_product<L, 256, Groups, 1>);
  registry["wide_product<" + layout + ", 512" + groups] = registered(program::wide_product<L, 512, Groups, 1>);
  registry["wide_gated_product<" + layout + ", 256" + groups] =
      registered(program::wide_gated_product<L, 256, Groups, 1>);
}

/// What a layer of one format launches.
template <class L>
void add_layer(Registry& registry, const std::string& layout) {
  add_product<L, 256>(registry, layout);
  add_product<L, 512>(registry, layout);
  registry["batched_gated_product<" + layout + ", 256>"] = registered(program::batched_gated_product<L, 256>);
  registry["float_vectors<" + layout + ", 256, 2>"] = registered(program::float_vectors<L, 256, 2>);
  registry["split_vectors<" + layout + ", 256, 1>"] = registered(program::split_vectors<L, 256, 1>);
  registry["split_vectors<" + layout + ", 256, 2>"] = registered(program::split_vectors<L, 256, 2>);
  registry["split_vectors<" + layout + ", 512, 1>"] = registered(program::split_vectors<L, 512, 1>);
  add_wide<L, 1>(registry, layout);
  add_wide<L, 2>(registry, layout);
}

}  // namespace

void add_batched_products(Registry& registry) {
  add_layer<program::RepackedF16>(registry, "RepackedF16");
  add_layer<program::RepackedBF16>(registry, "RepackedBF16");
}

}  // namespace lane::test
