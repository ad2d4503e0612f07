#include "support/files.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <xxhash.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace lane::test {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "lane-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder like " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const Path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

std::string digest(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Path test_path(std::string_view name) {
  const char* elsewhere = std::getenv("LANE_TEST_DIR");
  return Path(elsewhere ? elsewhere : LANE_TEST_DIR) / name;
}

}  // namespace lane::test
