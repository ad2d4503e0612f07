// Writes the small checkpoint that a golden case describes: something to compile where no real one is at hand.
//
//   make_checkpoint CASE.json OUT.gguf
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/recipe.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: make_checkpoint CASE.json OUT.gguf\n", stderr);
    return 2;
  }
  try {
    std::ifstream in(argv[1]);
    if (!in) throw std::runtime_error("cannot be read");
    const std::string bytes = lane::test::checkpoint_bytes(nlohmann::json::parse(in).at("checkpoint"));
    std::ofstream out(argv[2], std::ios::binary);
    if (!out.write(bytes.data(), std::streamsize(bytes.size())).flush())
      throw std::runtime_error(std::string(argv[2]) + " cannot be written");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_checkpoint: %s: %s\n", argv[1], error.what());
    return 5;
  }
}
