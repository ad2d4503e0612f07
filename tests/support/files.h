// Files of a test: a folder of its own, gone afterwards, and whole files read and written.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace lane::test {

using Path = std::filesystem::path;

/// A fresh folder, removed with everything in it at the end of the scope.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const Path& path() const { return path_; }
  Path operator/(std::string_view name) const { return path_ / name; }

 private:
  Path path_;
};

std::string read_file(const Path& path);
void write_file(const Path& path, std::string_view bytes);
/// XXH3-128 of the bytes, as 32 hexadecimal digits.
std::string digest(std::string_view bytes);
/// tests/<name> of the source tree, or of the folder that LANE_TEST_DIR in the environment names.
Path test_path(std::string_view name);

}  // namespace lane::test
