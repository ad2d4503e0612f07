#include "mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lane/error.h"

namespace lane {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view doing) {
  throw IoError(fmt::format("{}: cannot {}: {}", printable(path, 4096), doing, std::strerror(errno)));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK a named pipe would wait for a writer before we could say that it is no file.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(path, "open");
  try {
    struct stat info;
    if (fstat(descriptor_, &info) != 0) fail(path, "inspect");
    if (!S_ISREG(info.st_mode)) throw IoError(printable(path, 4096) + ": not a regular file; a GGUF file is expected");
    size_ = size_t(info.st_size);
    if (size_ == 0) return;
    void* mapping = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (mapping == MAP_FAILED) fail(path, "map");
    data_ = static_cast<const std::byte*>(mapping);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
  close(descriptor_);
}

void MappedFile::check_size() const {
  struct stat info;
  if (fstat(descriptor_, &info) != 0) fail(path_, "inspect");
  if (size_t(info.st_size) < size_)
    throw IoError(
        fmt::format("{}: changed while it was being read: found {} bytes; expected the {} there were at first",
                    printable(path_, 4096), info.st_size, size_));
}

}  // namespace lane
