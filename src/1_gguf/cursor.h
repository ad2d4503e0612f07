// Little-endian values out of a file's bytes, each checked against what is left.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "lane/error.h"

namespace lane {

/// A position in a file. A value that does not fit into the bytes left throws CheckpointError with its place; `what`
/// says what was being read, as in "the value of 'general.name'".
class Cursor {
 public:
  Cursor(std::string file, std::span<const std::byte> bytes) : file_(std::move(file)), bytes_(bytes) {}

  const std::string& file() const { return file_; }
  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  template <class T>
  T take(std::string_view what) {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T), what).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take_bytes(uint64_t count, std::string_view what);
  /// A u64 length and that many bytes, a gigabyte at the most.
  std::string_view take_string(std::string_view what);
  /// The bytes from `begin` to here.
  std::span<const std::byte> since(uint64_t begin) const { return bytes_.subspan(begin, at_ - begin); }

  [[noreturn]] void fail(uint64_t at, std::string found, std::string expected) const {
    throw CheckpointError(file_, at, std::move(found), std::move(expected));
  }

 private:
  std::string file_;
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
};

}  // namespace lane
