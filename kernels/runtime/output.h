// Where a run's text and logits go, and where its prompt comes from.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/namespace.h"
#include "runtime/status.h"
#include "runtime/tokenizer.h"

namespace LANE_NAMESPACE {

/// Takes the logits of one position after the other: `row` has the engine's vocabulary_rows() floats.
class LogitsSink {
 public:
  virtual ~LogitsSink() = default;
  virtual Status row(const float* row) = 0;
};

namespace generate_detail {

inline Status system_error(const std::string& what, const std::string& path) {
  return io_error(path + ": " + what + ": " + std::strerror(errno));
}

/// Everything in the file, or on standard input. Stops at what no prompt can be, so that an endless file ends too.
inline Status read_text(const std::string& path, std::string* out) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return system_error("cannot open", path);
  char block[65536];
  for (size_t got = 1; got > 0 && out->size() < kLongestText;) {
    got = std::fread(block, 1, sizeof block, file);
    out->append(block, got);
  }
  const Status status = std::ferror(file) ? system_error("cannot read", path) : Status{};
  if (file != stdin) std::fclose(file);
  return status;
}

/// Text for a person or a pipe. A reader that has gone is no error: there is no one left to write for.
class TextOutput {
 public:
  explicit TextOutput(std::FILE* file) : file_(file) {}
  Status write(std::string_view text) {
    if (file_ == nullptr || reader_gone_ || text.empty()) return {};
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0) return {};
    reader_gone_ = errno == EPIPE;
    return reader_gone_ ? Status{} : system_error("cannot write", "standard output");
  }
  bool reader_gone() const { return reader_gone_; }

 private:
  std::FILE* file_;
  bool reader_gone_ = false;
};

/// A regular file's first four bytes; fewer where it is shorter or cannot be read.
inline std::string magic_of(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return "";
  char magic[4];
  const size_t bytes = std::fread(magic, 1, sizeof magic, file);
  std::fclose(file);
  return {magic, bytes};
}

/// Whether a file begins as checkpoints do, every shard of them.
inline bool holds_checkpoint(const std::string& path) { return magic_of(path) == "GGUF"; }

/// Or as sidecars and programs do: what a run reads, whatever path names it.
inline bool holds_model(const std::string& path) {
  return holds_checkpoint(path) || magic_of(path) == "lane" || magic_of(path) == "\177ELF";
}

/// The file of --dump-logits: written under another name and renamed when it is whole; a pipe or a device is written as
/// it is. On little-endian machines alone, as all of GGUF here.
class LogitsFile : public LogitsSink {
 public:
  LogitsFile(std::string path, int32_t tokens) : path_(std::move(path)), tokens_(static_cast<size_t>(tokens)) {
    struct stat info;
    const bool special = ::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
    part_ = special ? path_ : path_ + "." + std::to_string(::getpid()) + ".part";
  }
  ~LogitsFile() override {
    if (file_ == nullptr) return;
    std::fclose(file_);
    discard();
  }
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;

  bool wanted() const { return !path_.empty(); }
  Status open() {
    if (wanted() && holds_model(path_))
      return usage_error(path_ + ": a checkpoint, sidecar or program would be written over");
    if (wanted() && (file_ = std::fopen(part_.c_str(), "wb")) == nullptr) return system_error("cannot write", path_);
    return {};
  }
  /// Rows of a matrix beyond the vocabulary's tokens are padding, and left out.
  Status row(const float* row) override {
    return std::fwrite(row, sizeof(float), tokens_, file_) == tokens_ ? Status{} : system_error("cannot write", path_);
  }
  Status finish() {
    if (file_ == nullptr) return {};
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    if (closed && (part_ == path_ || std::rename(part_.c_str(), path_.c_str()) == 0)) return {};
    const Status status = system_error("cannot write", path_);
    discard();
    return status;
  }

 private:
  void discard() {
    if (part_ != path_) std::remove(part_.c_str());
  }

  std::string path_, part_;
  size_t tokens_;
  std::FILE* file_ = nullptr;
};

}  // namespace generate_detail

}  // namespace LANE_NAMESPACE
