// The products of several tokens that schedules of the golden cases launch, and those of long chunks.
#include "kernels/registered.h"
#include "layout/all.cuh"
#include "ops/chunk_product.cuh"
#include "ops/half_vectors.cuh"
#include "ops/quantize_vectors.cuh"
#include "ops/tiled_product.cuh"

namespace lane::test {
namespace {

std::string arguments(std::string_view layout, std::initializer_list<int> numbers) {
  std::string text = "<Repacked" + std::string(layout);
  for (const int n : numbers) text += ", " + std::to_string(n);
  return text + ">";
}

/// In blocks of one tile of rows and of two: which a launch takes depends on the chip's multiprocessors.
template <class L, int Columns, int Tiles>
void add_tiles(Registry& registry, std::string_view l) {
  registry["tiled_product" + arguments(l, {Columns, 2, 8, Tiles})] =
      registered(program::tiled_product<L, Columns, 2, 8, Tiles>);
  registry["tiled_product" + arguments(l, {Columns, 2, 16, Tiles})] =
      registered(program::tiled_product<L, Columns, 2, 16, Tiles>);
}
template <class L, int Columns>
void add_product(Registry& registry, std::string_view l) {
  add_tiles<L, Columns, 1>(registry, l);
  add_tiles<L, Columns, 2>(registry, l);
}
/// Queries, keys and values in one launch.
template <class L0, class L1, class L2, int Tokens, int Tiles>
void add_together_in(Registry& registry, const std::string& layouts) {
  registry["tiled_products<" + layouts + "256, 2, " + std::to_string(Tokens) + ", " + std::to_string(Tiles) + ">"] =
      registered(program::tiled_products<L0, L1, L2, 256, 2, Tokens, Tiles>);
}
template <class L0, class L1, class L2>
void add_together(Registry& registry, std::initializer_list<std::string_view> names) {
  std::string layouts;
  for (const std::string_view name : names) layouts += "Repacked" + std::string(name) + ", ";
  add_together_in<L0, L1, L2, 8, 1>(registry, layouts);
  add_together_in<L0, L1, L2, 8, 2>(registry, layouts);
  add_together_in<L0, L1, L2, 16, 1>(registry, layouts);
  add_together_in<L0, L1, L2, 16, 2>(registry, layouts);
}
template <class L, int Columns, int Matrices>
void add_vectors(Registry& registry, std::string_view l) {
  registry["quantize_vectors" + arguments(l, {Columns, 2, Matrices})] =
      registered(program::quantize_vectors<L, Columns, 2, Matrices>);
}

/// What a layer of one format launches.
template <class L>
void add_layer(Registry& registry, std::string_view l) {
  add_product<L, 256>(registry, l);
  add_product<L, 512>(registry, l);
  add_together<L, L, L>(registry, {l, l, l});
  add_vectors<L, 256, 1>(registry, l);
  add_vectors<L, 256, 2>(registry, l);
  add_vectors<L, 512, 1>(registry, l);
  registry["tiled_gated_product" + arguments(l, {256, 2, 8, 2})] =
      registered(program::tiled_gated_product<L, 256, 2, 8, 2>);
  registry["tiled_gated_product" + arguments(l, {256, 2, 16, 2})] =
      registered(program::tiled_gated_product<L, 256, 2, 16, 2>);
}

/// And in a long chunk, in blocks of a size.
template <class L, int Tokens, int Groups, int Splits>
void add_chunk(Registry& registry, std::string_view l) {
  registry["chunk_product" + arguments(l, {256, 2, Tokens, Groups, Splits})] =
      registered(program::chunk_product<L, 256, 2, Tokens, Groups, Splits>);
  registry["chunk_product" + arguments(l, {512, 2, Tokens, Groups, Splits})] =
      registered(program::chunk_product<L, 512, 2, Tokens, Groups, Splits>);
  registry["chunk_gated_product" + arguments(l, {256, 2, Tokens, Groups, Splits})] =
      registered(program::chunk_gated_product<L, 256, 2, Tokens, Groups, Splits>);
  std::string products = "chunk_products<";
  for (int i = 0; i < 3; i++) products += "Repacked" + std::string(l) + ", ";
  for (const int number : {256, 2, Tokens, Groups}) products += std::to_string(number) + ", ";
  registry[products + std::to_string(Splits) + ">"] =
      registered(program::chunk_products<L, L, L, 256, 2, Tokens, Groups, Splits>);
}
/// And in tiles of 32 tokens, where a chip has more multiprocessors than such a chunk has blocks.
template <class L>
void add_long_tiles(Registry& registry, std::string_view l) {
  registry["tiled_product" + arguments(l, {256, 2, 32, 2})] = registered(program::tiled_product<L, 256, 2, 32, 2>);
  registry["tiled_product" + arguments(l, {512, 2, 32, 2})] = registered(program::tiled_product<L, 512, 2, 32, 2>);
  const std::string name = "Repacked" + std::string(l) + ", ";
  add_together_in<L, L, L, 32, 2>(registry, name + name + name);
  registry["tiled_gated_product" + arguments(l, {256, 2, 32, 2})] =
      registered(program::tiled_gated_product<L, 256, 2, 32, 2>);
}
template <class L>
void add_chunks(Registry& registry, std::string_view l) {
  add_long_tiles<L>(registry, l);
  add_chunk<L, 64, 1, 2>(registry, l);
  add_chunk<L, 64, 2, 1>(registry, l);
}

}  // namespace

void add_tiled_products(Registry& registry) {
  add_layer<program::RepackedIQ4_NL>(registry, "IQ4_NL");
  add_layer<program::RepackedIQ4_XS>(registry, "IQ4_XS");
  add_layer<program::RepackedQ3_K>(registry, "Q3_K");
  add_layer<program::RepackedQ4_0>(registry, "Q4_0");
  add_layer<program::RepackedQ4_1>(registry, "Q4_1");
  add_layer<program::RepackedQ4_K>(registry, "Q4_K");
  add_layer<program::RepackedQ5_0>(registry, "Q5_0");
  add_layer<program::RepackedQ5_1>(registry, "Q5_1");
  add_layer<program::RepackedQ5_K>(registry, "Q5_K");
  add_layer<program::RepackedQ6_K>(registry, "Q6_K");
  add_layer<program::RepackedQ8_0>(registry, "Q8_0");
  add_product<program::RepackedQ8_0, 128>(registry, "Q8_0");
  add_together<program::RepackedQ4_K, program::RepackedQ4_K, program::RepackedQ6_K>(registry, {"Q4_K", "Q4_K", "Q6_K"});
  add_together_in<program::RepackedQ4_K, program::RepackedQ4_K, program::RepackedQ6_K, 32, 2>(
      registry, "RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, ");
  add_vectors<program::RepackedQ8_0, 128, 1>(registry, "Q8_0");
  registry["half_vectors<256, 2>"] = registered(program::half_vectors<256, 2>);
  registry["half_vectors<512, 2>"] = registered(program::half_vectors<512, 2>);
  add_chunks<program::RepackedQ4_K>(registry, "Q4_K");
  add_chunk<program::RepackedQ4_K, 32, 1, 4>(registry, "Q4_K");
  add_chunk<program::RepackedQ4_K, 32, 2, 2>(registry, "Q4_K");
  add_chunk<program::RepackedQ4_K, 32, 4, 1>(registry, "Q4_K");
  registry["chunk_part_product<RepackedQ4_K, 2048, 2, 32, 2, 2, 2>"] =
      registered(program::chunk_part_product<program::RepackedQ4_K, 2048, 2, 32, 2, 2, 2>);
  add_chunks<program::RepackedQ5_0>(registry, "Q5_0");
  add_chunks<program::RepackedQ6_K>(registry, "Q6_K");
  add_chunks<program::RepackedQ8_0>(registry, "Q8_0");
}

}  // namespace lane::test
