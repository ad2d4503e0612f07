// The chained products that schedules of the golden cases launch.
#include "kernels/repacked_layouts.h"
#include "ops/chained_products.cuh"

namespace lane::test {
namespace {

using program::RepackedQ4_K;
using program::RepackedQ6_K;

std::string stage(std::initializer_list<std::string_view> layouts, int columns, int words) {
  std::string text;
  for (const std::string_view layout : layouts) text += "Repacked" + std::string(layout) + ", ";
  return text + std::to_string(columns) + ", " + std::to_string(words);
}

template <class First, int Columns, class L, int Words>
void add_gated(Registry& registry, std::string_view first, std::string_view l) {
  registry["chained_gated_product<" + stage({first}, Columns, Words) + ", " + stage({l}, 256, Words) + ">"] =
      registered(program::chained_gated_product<First, Columns, Words, L, 256, Words>);
}
template <class First, int Columns, class L, int Words>
void add_post_normed(Registry& registry, std::string_view first, std::string_view l) {
  registry["chained_post_normed_gated_product<" + stage({first}, Columns, Words) + ", " + stage({l}, 256, Words) +
           ">"] = registered(program::chained_post_normed_gated_product<First, Columns, Words, L, 256, Words>);
}
template <class First, int Columns, class L, class Last, int Words>
void add_matrices(Registry& registry, std::string_view first, std::string_view l, std::string_view last) {
  registry["chained_products<" + stage({first}, Columns, Words) + ", " + stage({l, l, last}, 256, Words) + ">"] =
      registered(program::chained_products<First, Columns, Words, L, L, Last, 256, Words>);
}
/// What layers of one format launch.
template <class L, int Words>
void add_layer(Registry& registry, std::string_view l) {
  add_gated<L, 256, L, Words>(registry, l, l);
  add_matrices<L, 512, L, L, Words>(registry, l, l, l);
}

}  // namespace

void add_chained_products(Registry& registry) {
  for_each_repacked_layout([&]<class L, int Words>(std::string_view name) { add_layer<L, Words>(registry, name); });
  add_matrices<program::RepackedBF16, 512, program::RepackedBF16, program::RepackedBF16, 0>(registry, "BF16", "BF16",
                                                                                            "BF16");
  add_matrices<program::RepackedF16, 512, program::RepackedF16, program::RepackedF16, 0>(registry, "F16", "F16", "F16");
  add_gated<program::RepackedQ8_0, 128, program::RepackedQ8_0, 2>(registry, "Q8_0", "Q8_0");
  add_post_normed<RepackedQ4_K, 256, RepackedQ4_K, 2>(registry, "Q4_K", "Q4_K");
  add_matrices<RepackedQ6_K, 512, RepackedQ4_K, RepackedQ6_K, 2>(registry, "Q6_K", "Q4_K", "Q6_K");
  add_matrices<RepackedQ6_K, 512, RepackedQ4_K, RepackedQ4_K, 2>(registry, "Q6_K", "Q4_K", "Q4_K");
  add_matrices<RepackedQ4_K, 512, RepackedQ4_K, RepackedQ6_K, 2>(registry, "Q4_K", "Q4_K", "Q6_K");
}

}  // namespace lane::test
