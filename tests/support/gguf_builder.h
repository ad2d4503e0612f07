// GGUF files byte by byte: sound ones, and every kind of damage that a writer library would not let through.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lane/gguf.h"

namespace lane::test {

/// Bytes appended as they are asked for, nothing checked.
class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    text_.append(raw, sizeof(T));
    return *this;
  }
  Bytes& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  /// A u64 length and the bytes.
  Bytes& string(std::string_view bytes) { return put<uint64_t>(bytes.size()).raw(bytes); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A tensor as a file describes it. Left alone, offset and data are those of a sound file: the running sum, zeros.
struct TensorText {
  std::string name;
  std::vector<int64_t> ne;              // columns first, as GGUF writes it
  int32_t type = 0;                     // GGUF's number
  std::string data = {};                // empty: zeros
  std::optional<uint64_t> offset = {};  // set: written instead of the running sum
};

/// A whole file from its parts. What is not overruled is sound.
struct GgufText {
  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the padding; the key is not written by itself
  std::optional<uint64_t> tensor_count = {}, entry_count = {};
  std::vector<std::string> entries;  // key, type and value of each, as they lie in the file
  std::vector<TensorText> tensors;
  bool pad_end = true;  // padding after the last tensor

  /// The metadata entry `key` of `type` with the value's bytes.
  GgufText& entry(std::string_view key, MetaType type, std::string_view value);
  GgufText& u16(std::string_view key, uint16_t value);
  GgufText& u32(std::string_view key, uint32_t value);
  GgufText& i32(std::string_view key, int32_t value);
  GgufText& string(std::string_view key, std::string_view value);
  /// An array of `count` elements; `elements` are its bytes.
  GgufText& array(std::string_view key, MetaType element, uint64_t count, std::string_view elements);
  GgufText& tensor(TensorText tensor);

  std::string text() const;
  /// The bytes before the data's padding.
  std::string header() const;
  size_t header_bytes() const { return header().size(); }
};

}  // namespace lane::test
