// What a person asks of a compile. Every pass after spec takes it const.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lane {

enum class Activations { F32, Int8x2, Int8 };
enum class KvType { F16, F32, Q8_0 };

struct Options {
  int64_t ctx = 0;                 // 0: the smaller of the model's and 4096
  std::optional<int64_t> prefill;  // the largest chunk; 1: a decode step at a time; absent: the largest that fits
  std::optional<int64_t> batch;    // sequences of the batch form; absent: none
  Activations activations = Activations::Int8x2;
  KvType kv = KvType::F16;
  std::string chip = "sm_90";
  bool cuda_graphs = true;
  bool fuse_quant = true;
  /// Repack matrices and stream them, where their format and shape allow; absent: on chips that have bulk copies. With
  /// f32 activations, or without fuse_quant, nothing streams.
  std::optional<bool> stream;
  bool branches = true;
  std::vector<std::string> hold;  // fusion rules kept apart; "all"
  std::vector<std::string> fuse;  // rules applied only where this names them: "chain"
  std::string symbol_prefix = "lane_program";
  std::string pre;        // overrides tokenizer.ggml.pre
  int64_t mem_bytes = 0;  // 0: the chip's memory
};

std::string_view to_text(Activations a);  // "f32", "int8x2", "int8"
std::string_view to_text(KvType k);

}  // namespace lane
