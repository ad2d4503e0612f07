// The products of float weights and several tokens that schedules of the golden cases launch.
#include "kernels/registered.h"
#include "layout/floats.cuh"
#include "ops/batched_product.cuh"
#include "ops/float_vectors.cuh"
#include "ops/mma_product.cuh"
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

template <class L>
void add_split_vectors(Registry& registry, const std::string& layout) {
  registry["split_vectors<" + layout + ", 256, 1>"] = registered(program::split_vectors<L, 256, 1>);
  registry["split_vectors<" + layout + ", 256, 2>"] = registered(program::split_vectors<L, 256, 2>);
  registry["split_vectors<" + layout + ", 512, 1>"] = registered(program::split_vectors<L, 512, 1>);
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
/// For blocks of so many rows and tokens.
template <class L, int Rows, int Tokens>
void add_mma(Registry& registry, const std::string& layout) {
  const std::string block = ", " + std::to_string(Rows) + ", " + std::to_string(Tokens) + ">";
  registry["mma_product<" + layout + ", 256" + block] = registered(program::mma_product<L, 256, Rows, Tokens>);
  registry["mma_product<" + layout + ", 512" + block] = registered(program::mma_product<L, 512, Rows, Tokens>);
  registry["mma_gated_product<" + layout + ", 256" + block] =
      registered(program::mma_gated_product<L, 256, Rows, Tokens>);
}
template <class L>
void add_all_mma(Registry& registry, const std::string& layout) {
  add_mma<L, 16, 16>(registry, layout), add_mma<L, 32, 16>(registry, layout);
  add_mma<L, 32, 32>(registry, layout), add_mma<L, 64, 32>(registry, layout);
}

/// What a layer of one format launches.
template <class L>
void add_layer(Registry& registry, const std::string& layout) {
  add_product<L, 256>(registry, layout);
  add_product<L, 512>(registry, layout);
  registry["batched_gated_product<" + layout + ", 256>"] = registered(program::batched_gated_product<L, 256>);
  registry["float_vectors<" + layout + ", 256, 2>"] = registered(program::float_vectors<L, 256, 2>);
  add_split_vectors<L>(registry, layout);
  add_wide<L, 1>(registry, layout);
  add_wide<L, 2>(registry, layout);
  add_all_mma<L>(registry, layout);
}
/// The same of rows as stored.
template <class L>
void add_stored_layer(Registry& registry, const std::string& layout) {
  add_split_vectors<L>(registry, layout);
  add_all_mma<L>(registry, layout);
}

}  // namespace

void add_batched_products(Registry& registry) {
  add_layer<program::RepackedF16>(registry, "RepackedF16");
  add_layer<program::RepackedBF16>(registry, "RepackedBF16");
  add_stored_layer<program::StoredF16>(registry, "StoredF16");
  add_stored_layer<program::StoredBF16>(registry, "StoredBF16");
}

}  // namespace lane::test
