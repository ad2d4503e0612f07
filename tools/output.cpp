#include "output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "commands.h"
#include "lane/error.h"
#include "runtime/output.h"

namespace lane::tools {
namespace fs = std::filesystem;

namespace {

std::string reason(int error) { return std::strerror(error); }

/// Writes `bytes` under the name `temporary`; a message says `path`, which it is for.
void write_whole(const fs::path& temporary, const fs::path& path, std::string_view bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wxb"), std::fclose);
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (!written || std::fflush(file.get()) != 0) {
    throw IoError(fmt::format("{}: {}", printable(path.string()), reason(errno)));
  }
}

/// The file at `path`, if there is one, gets a second name: what stands there when a set cannot be written whole.
void keep(const fs::path& path, const fs::path& before) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return;
  fs::create_hard_link(path, before, error);
  if (error) fs::copy_file(path, before, error);  // a file system without links
  if (error) throw IoError(fmt::format("{}: cannot keep its contents: {}", printable(path.string()), error.message()));
}

void put_back(const fs::path& path, const fs::path& before) {
  std::error_code error;
  fs::rename(before, path, error);
  if (error) fs::remove(path, error);  // there was none before
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

void check_output(const fs::path& path, const fs::path& input) {
  std::error_code ignored;
  if (fs::equivalent(path, input, ignored)) {
    throw UsageError(fmt::format("output '{}' is the input itself", printable(path.string())));
  }
  const fs::path folder = folder_of(path);
  if (!fs::is_directory(folder, ignored)) {
    throw IoError(fmt::format("{}: no such folder to write '{}' in", printable(folder.string()),
                              printable(path.filename().string())));
  }
  if (fs::is_directory(path, ignored)) throw IoError(fmt::format("{}: is a folder", printable(path.string())));
  // Files appear by renaming, which would put a file in the place of a device or a pipe.
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw IoError(fmt::format("{}: is no regular file; '-' is standard output", printable(path.string())));
  }
  // Whatever path names it, and be it one shard of many.
  if (LANE_NAMESPACE::generate_detail::holds_checkpoint(path.string()))
    throw UsageError(fmt::format("output '{}' is a checkpoint", printable(path.string())));
  if (::access(folder.c_str(), W_OK) != 0)
    throw IoError(fmt::format("{}: {}", printable(folder.string()), reason(errno)));
}

OutputFiles::~OutputFiles() {
  std::error_code ignored;
  for (const Entry& e : entries_) {
    fs::remove(e.temporary, ignored);
    fs::remove(e.before, ignored);
  }
}

fs::path OutputFiles::reserve(const fs::path& named) {
  std::error_code ignored;
  const fs::path path = fs::is_symlink(named, ignored) ? fs::canonical(named, ignored) : named;
  const std::string hidden = fmt::format(".{}.{}", path.filename().string(), ::getpid());
  entries_.push_back({path, folder_of(path) / (hidden + ".tmp"), folder_of(path) / (hidden + ".before")});
  return entries_.back().temporary;
}

void OutputFiles::add(const fs::path& path, std::string_view bytes) { write_whole(reserve(path), path, bytes); }

void OutputFiles::commit() {
  for (const Entry& e : entries_) keep(e.path, e.before);
  for (size_t i = 0; i < entries_.size(); ++i) {
    std::error_code error;
    fs::rename(entries_[i].temporary, entries_[i].path, error);
    if (!error) continue;
    for (size_t done = 0; done < i; ++done) put_back(entries_[done].path, entries_[done].before);
    throw IoError(fmt::format("{}: {}", printable(entries_[i].path.string()), error.message()));
  }
  std::error_code ignored;
  for (const Entry& e : entries_) fs::remove(e.before, ignored);
  entries_.clear();
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw IoError("standard output: " + reason(errno));
  }
}

}  // namespace lane::tools
