// Output files that appear whole or not at all.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lane::tools {

/// Throws IoError where no file could be made at `path`, UsageError where it is `input` itself. To be asked before any
/// work.
void check_output(const std::filesystem::path& path, const std::filesystem::path& input);

/// Files written beside their places and moved there together by commit(): where one cannot be, all are as before.
class OutputFiles {
 public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();

  void add(const std::filesystem::path& path, std::string_view bytes);
  /// A name beside `path` for another program to write; it belongs to the set from now on.
  std::filesystem::path reserve(const std::filesystem::path& path);
  void commit();

 private:
  struct Entry {
    std::filesystem::path path, temporary;
    std::filesystem::path before;  // a second name of what stood at `path`
  };
  std::vector<Entry> entries_;
};

}  // namespace lane::tools
