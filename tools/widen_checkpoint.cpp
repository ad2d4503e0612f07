// Writes a checkpoint again with all its matrices in one float format: something to measure float weights with that has
// a real model's numbers. What is no matrix, and all metadata, stays as it is.
//
//   widen_checkpoint MODEL.gguf bf16|f16 OUT.gguf
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>
#include <fstream>

#include "lane/gguf.h"
#include "output.h"
#include "support/gguf_builder.h"
#include "support/recipe.h"

namespace {

using namespace lane;

struct Arguments {
  std::string input, format, output;
};

/// To the nearest, to even. Weights are finite.
uint16_t bfloat_bits(double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(float(value));
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

bool is_matrix(const TensorInfo& t) { return t.dims >= 2 && t.rows() * t.experts() > 1; }

test::TensorText text_of(const TensorInfo& t, FormatId format) {
  test::TensorText text;
  text.name = t.name;
  for (int i = 0; i < t.dims; i++) text.ne.push_back(int64_t(t.ne[i]));
  text.type = is_matrix(t) ? int32_t(format) : t.format->id;
  return text;
}

/// The first shard's header with its metadata byte for byte, and the tensors' new formats.
std::string header_of(const Checkpoint& checkpoint, FormatId format) {
  constexpr size_t kMetadata = 24;  // behind magic, version and the two counts
  const auto* bytes = reinterpret_cast<const char*>(checkpoint.shards[0].bytes.data());
  test::GgufText file;
  file.alignment = checkpoint.shards[0].alignment;
  file.entries = {std::string(bytes + kMetadata, checkpoint.tensors[0].info_offset - kMetadata)};
  file.entry_count = checkpoint.metadata.size();
  for (const TensorInfo& t : checkpoint.tensors) file.tensor(text_of(t, format));
  return file.header();
}

class Writer {
 public:
  Writer(const std::filesystem::path& path, uint64_t alignment) : out_(path, std::ios::binary), alignment_(alignment) {}
  void bytes(const char* data, size_t count) {
    out_.write(data, std::streamsize(count));
    written_ += count;
  }
  void pad() {
    const std::string zeros(size_t((alignment_ - written_ % alignment_) % alignment_), '\0');
    bytes(zeros.data(), zeros.size());
  }
  void close() {
    out_.close();
    if (!out_) throw std::runtime_error("cannot be written");
  }

 private:
  std::ofstream out_;
  uint64_t alignment_, written_ = 0;
};

/// A matrix, some blocks at a time.
void write_widened(const TensorInfo& t, const std::byte* blocks, FormatId format, Writer& out) {
  const auto block = size_t(t.format->block_elements), all = size_t(t.columns() * t.rows() * t.experts());
  std::vector<double> values((size_t{1} << 16) / block * block);
  std::vector<uint16_t> widened(values.size());
  for (size_t at = 0; at < all; at += values.size()) {
    const size_t count = std::min(values.size(), all - at);
    t.format->decode(blocks + t.format->row_bytes(at), count, values.data());
    for (size_t i = 0; i < count; i++)
      widened[i] = format == FormatId::BF16 ? bfloat_bits(values[i]) : test::half_bits(values[i]);
    out.bytes(reinterpret_cast<const char*>(widened.data()), 2 * count);
  }
}

void widen(const Arguments& arguments) {
  const FormatId format = arguments.format == "bf16" ? FormatId::BF16 : FormatId::F16;
  tools::check_output(arguments.output, arguments.input);
  const Checkpoint checkpoint = read_checkpoint(arguments.input);
  if (checkpoint.shards.size() != 1) throw std::runtime_error("is split; expected one file");
  if (checkpoint.tensors.empty()) throw std::runtime_error("has no tensors");
  tools::OutputFiles files;
  Writer out(files.reserve(arguments.output), checkpoint.shards[0].alignment);
  const std::string header = header_of(checkpoint, format);
  out.bytes(header.data(), header.size());
  for (const TensorInfo& t : checkpoint.tensors) {
    if (is_matrix(t) && !t.format->supported()) throw std::runtime_error(fmt::format("'{}' cannot be decoded", t.name));
    out.pad();
    const std::byte* data = checkpoint.data(t).data();
    if (is_matrix(t))
      write_widened(t, data, format, out);
    else
      out.bytes(reinterpret_cast<const char*>(data), t.bytes);
  }
  out.pad();
  out.close();
  files.commit();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A checkpoint with all its matrices in one float format");
  Arguments arguments;
  app.add_option("MODEL", arguments.input, "a GGUF checkpoint of one file")->required();
  app.add_option("FORMAT", arguments.format, "bf16 or f16")->required()->check(CLI::IsMember({"bf16", "f16"}));
  app.add_option("OUT", arguments.output, "the file to write")->required();
  try {
    app.parse(argc, argv);
    widen(arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "widen_checkpoint: %s: %s\n", arguments.input.c_str(), error.what());
    return 5;
  }
}
