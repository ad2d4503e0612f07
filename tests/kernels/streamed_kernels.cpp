// The streamed products that schedules of the golden cases launch.
#include "kernels/repacked_layouts.h"
#include "layout/row_lookup.cuh"
#include "ops/post_normed_products.cuh"
#include "ops/streamed_product.cuh"

namespace lane::test {
namespace {

using program::RepackedBF16;
using program::RepackedF16;
using program::RepackedQ4_K;
using program::RepackedQ5_0;
using program::RepackedQ6_K;
using program::RepackedQ8_0;

std::string arguments(std::initializer_list<std::string_view> layouts, int columns, int words) {
  std::string text = "<";
  for (const std::string_view layout : layouts) text += "Repacked" + std::string(layout) + ", ";
  return text + std::to_string(columns) + ", " + std::to_string(words) + ">";
}

template <class L, int Columns, int Words>
void add_product(Registry& registry, std::string_view l) {
  registry["streamed_product" + arguments({l}, Columns, Words)] =
      registered(program::streamed_product<L, Columns, Words>);
}
template <class L, class Last, int Columns, int Words>
void add_products(Registry& registry, std::string_view l, std::string_view last) {
  registry["streamed_products" + arguments({l, l, last}, Columns, Words)] =
      registered(program::streamed_products<L, L, Last, Columns, Words>);
}

/// What a layer with norms behind its products launches.
template <class L, class Last, int Words>
void add_post_normed(Registry& registry, std::string_view l, std::string_view last) {
  registry["post_normed_products" + arguments({l, l, last}, 256, Words)] =
      registered(program::post_normed_products<L, L, Last, 256, Words>);
  registry["post_normed_gated_product" + arguments({l}, 256, Words)] =
      registered(program::post_normed_gated_product<L, 256, Words>);
  registry["post_normed_choice" + arguments({last}, 256, Words)] =
      registered(program::post_normed_choice<Last, 256, Words>);
}

/// What a layer of one format launches.
template <class L, int Words>
void add_layer(Registry& registry, std::string_view l) {
  add_product<L, 256, Words>(registry, l);
  add_product<L, 512, Words>(registry, l);
  add_products<L, L, 256, Words>(registry, l, l);
  registry["streamed_choice" + arguments({l}, 256, Words)] = registered(program::streamed_choice<L, 256, Words>);
  registry["streamed_gated_product" + arguments({l}, 256, Words)] =
      registered(program::streamed_gated_product<L, 256, Words>);
  registry["repacked_row_lookup<Repacked" + std::string(l) + ">"] = registered(program::repacked_row_lookup<L>);
}

}  // namespace

void add_streamed_products(Registry& registry) {
  for_each_repacked_layout([&]<class L, int Words>(std::string_view name) { add_layer<L, Words>(registry, name); });
  add_products<RepackedQ4_K, RepackedQ6_K, 256, 2>(registry, "Q4_K", "Q6_K");
  add_product<RepackedQ8_0, 128, 2>(registry, "Q8_0");
  add_post_normed<RepackedQ4_K, RepackedQ4_K, 2>(registry, "Q4_K", "Q4_K");
  add_post_normed<RepackedQ4_K, RepackedQ6_K, 2>(registry, "Q4_K", "Q6_K");
}

}  // namespace lane::test
