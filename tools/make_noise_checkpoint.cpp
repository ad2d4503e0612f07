// Writes a checkpoint of a real model's shape, vocabulary size and mix of formats, filled with noise: something of the
// right size to measure where no real one is at hand.
//
//   make_noise_checkpoint SHAPE MIX OUT.gguf [--layers N] [--vocabulary N] [--seed N]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>

#include "noise/noise.h"
#include "noise/shapes.h"
#include "output.h"

namespace {

using namespace lane;
using namespace lane::noise;
namespace fs = std::filesystem;

struct Arguments {
  std::string shape, mix, output;
  int64_t layers = 0, vocabulary = 0;  // 0: as the shape has it
  uint64_t seed = 1;
};

Shape shape_of(const Arguments& arguments) {
  const Shape* found = find_shape(arguments.shape);
  if (!found) {
    std::string names;
    for (const Shape& shape : shapes()) names += (names.empty() ? "" : ", ") + std::string(shape.name);
    throw CLI::ValidationError(fmt::format("shape '{}'; known are {}", arguments.shape, names));
  }
  Shape shape = *found;
  if (arguments.layers > 0) shape.layers = arguments.layers;
  if (arguments.vocabulary > 0) shape.vocabulary = arguments.vocabulary;
  return shape;
}

struct Tensor {
  test::TensorText text;
  const Format* format;
  Role role;
  uint64_t bytes;
};

Tensor tensor_of(const Shape& shape, const Mix& mix, const TensorRow& row, int64_t layer) {
  const int64_t rows = shape.extent(row.rows), columns = shape.extent(row.columns);
  const Format& format = format_of(mix, shape, row, layer);
  test::TensorText text;
  text.name = layer < 0 ? std::string(row.name) : fmt::format("blk.{}.{}", layer, row.name);
  text.ne = rows == 1 ? std::vector<int64_t>{columns} : std::vector<int64_t>{columns, rows};
  text.type = format.id;
  return {text, &format, row.role, uint64_t(rows) * format.row_bytes(uint64_t(columns))};
}

std::vector<Tensor> tensors_of(const Shape& shape, const Mix& mix) {
  std::vector<Tensor> tensors;
  for (const TensorRow& row : shape.model) tensors.push_back(tensor_of(shape, mix, row, -1));
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const TensorRow& row : shape.layer) tensors.push_back(tensor_of(shape, mix, row, layer));
  }
  return tensors;
}

class Writer {
 public:
  Writer(const fs::path& path, uint64_t seed) : out_(path, std::ios::binary), seed_(seed) {}

  void header(const std::string& bytes) {
    out_.write(bytes.data(), std::streamsize(bytes.size()));
    pad(bytes.size());
  }
  void tensor(const Tensor& t) {
    const std::string& page = page_of(t);
    const size_t block = size_t(t.format->block_bytes);
    // Strides of the golden ratio: tensors begin far from each other on the page.
    size_t at = ((++tensors_ * 0x9E3779B97F4A7C15) >> 16) % (page.size() / block) * block;
    for (uint64_t left = t.bytes; left > 0;) {
      const uint64_t bytes = std::min<uint64_t>(left, page.size() - at);
      out_.write(page.data() + at, std::streamsize(bytes));
      left -= bytes;
      at = 0;
    }
    pad(t.bytes);
  }
  void finish() {
    out_.close();
    if (!out_) throw std::runtime_error("cannot be written");
  }

 private:
  const std::string& page_of(const Tensor& t) {
    std::string& page = pages_[{t.format->id, std::min(t.role, Role::Matrix)}];
    if (page.empty()) page = noise_page(*t.format, t.role, seed_);
    return page;
  }
  void pad(uint64_t bytes) {
    constexpr char kZeros[32] = {};
    out_.write(kZeros, std::streamsize((32 - bytes % 32) % 32));
  }

  std::ofstream out_;
  uint64_t seed_, tensors_ = 0;
  std::map<std::pair<int32_t, Role>, std::string> pages_;
};

void write(const Arguments& arguments) {
  const Shape shape = shape_of(arguments);
  const Mix* mix = find_mix(arguments.mix);
  if (!mix) throw CLI::ValidationError(fmt::format("mix '{}'; known are {}", arguments.mix, mix_names()));
  const std::vector<Tensor> tensors = tensors_of(shape, *mix);
  test::GgufText file;
  add_metadata(shape, file);
  for (const Tensor& t : tensors) file.tensor(t.text);
  tools::OutputFiles files;
  Writer writer(files.reserve(arguments.output), arguments.seed);
  writer.header(file.header());
  for (const Tensor& t : tensors) writer.tensor(t);
  writer.finish();
  files.commit();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A checkpoint of a real model's shape, filled with noise");
  Arguments arguments;
  app.add_option("SHAPE", arguments.shape, "gemma3-270m, qwen2.5-0.5b, llama3.2-1b, llama3.1-8b")->required();
  app.add_option("MIX", arguments.mix, "q4_k_m, q8_0, bf16")->required();
  app.add_option("OUT", arguments.output, "the file to write")->required();
  app.add_option("--layers", arguments.layers, "layers, instead of the shape's")->check(CLI::Range(1, 512));
  app.add_option("--vocabulary", arguments.vocabulary, "tokens, instead of the shape's")
      ->check(CLI::Range(512, 1 << 20));
  app.add_option("--seed", arguments.seed, "of the noise");
  try {
    app.parse(argc, argv);
    write(arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_noise_checkpoint: %s: %s\n", arguments.output.c_str(), error.what());
    return 5;
  }
}
