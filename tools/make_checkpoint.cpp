// Writes the small checkpoint that a golden case describes: something to compile where no real one is at hand.
//
//   make_checkpoint CASE.json OUT.gguf [--digest]
//
// --digest prints the file's XXH3-128, as tests/golden/cases/digests.txt has it.
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "support/files.h"
#include "support/recipe.h"

int main(int argc, char** argv) {
  const bool digest = argc == 4 && std::string_view(argv[3]) == "--digest";
  if (argc != 3 && !digest) {
    std::fputs("usage: make_checkpoint CASE.json OUT.gguf [--digest]\n", stderr);
    return 2;
  }
  try {
    std::ifstream in(argv[1]);
    if (!in) throw std::runtime_error("cannot be read");
    const std::string bytes = lane::test::checkpoint_bytes(nlohmann::json::parse(in).at("checkpoint"));
    std::ofstream out(argv[2], std::ios::binary);
    if (!out.write(bytes.data(), std::streamsize(bytes.size())).flush())
      throw std::runtime_error(std::string(argv[2]) + " cannot be written");
    if (digest) std::printf("%s\n", lane::test::digest(bytes).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_checkpoint: %s: %s\n", argv[1], error.what());
    return 5;
  }
}
