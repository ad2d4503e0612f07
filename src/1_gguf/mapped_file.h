// A file's bytes as memory, read-only.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace lane {

/// Maps `path` whole for its lifetime. Throws IoError where the path is missing, unreadable or no regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Throws IoError where the file has become shorter than its mapping: a read past its end would be a bus error.
  void check_size() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace lane
