// A file read with pread: one that shrinks meanwhile gives an error, where a mapping would give a signal.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/status.h"

namespace LANE_NAMESPACE {

class File {
 public:
  File() = default;
  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Status open(const std::string& path) {
    path_ = path;
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) return io_error(path + ": " + std::strerror(errno));
    if (!S_ISREG(info.st_mode)) return io_error(path + ": not a regular file");
    return {};
  }
  const std::string& path() const { return path_; }
  uint64_t bytes() const {
    struct stat info {};
    return ::fstat(descriptor_, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  }

  /// Exactly `bytes` at `offset`.
  Status read(uint64_t offset, void* to, uint64_t bytes) const {
    for (uint64_t done = 0; done < bytes;) {
      const ssize_t got =
          ::pread(descriptor_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_error(path_ + ": at byte " + std::to_string(offset + done) + ": " + std::strerror(errno));
      if (got == 0) {
        return checkpoint_error(path_ + ": at byte " + std::to_string(offset + done) + ": found the end; expected " +
                                std::to_string(bytes - done) + " bytes more");
      }
      done += static_cast<uint64_t>(got);
    }
    return {};
  }

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace LANE_NAMESPACE
