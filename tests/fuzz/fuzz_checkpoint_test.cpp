// Thousands of damaged checkpoints, the same ones in every run: each is read or refused by name, in memory bounded by
// the file's size.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fuzz/allocations.h"
#include "fuzz/targets.h"
#include "support/gguf_builder.h"

namespace lane::test {
namespace {

std::string small_file() {
  GgufText file;
  file.string("general.architecture", "llama").u32("general.alignment", 32).i32("i", -1);
  file.entry("f", MetaType::F64, Bytes().put(0.5).text()).entry("b", MetaType::Bool, Bytes().put(char(1)).text());
  file.array("strings", MetaType::String, 3, Bytes().string("a").string("bc").string("").text());
  file.array("reals", MetaType::F32, 4, std::string(16, '\1'));
  const std::string inner = Bytes().put<uint32_t>(5).put<uint64_t>(1).put<int32_t>(7).text();
  file.array("nested", MetaType::Array, 2, inner + inner);
  file.tensor({"a", {8}}).tensor({"m", {32, 2, 3}, int(FormatId::Q4_0)}).tensor({"k", {256, 1}, int(FormatId::Q6_K)});
  return file.text();
}

std::string split_file() {
  GgufText file;
  file.u16("split.no", 0).u16("split.count", 1).i32("split.tensors.count", 1);
  return file.tensor({"t", {4, 4, 2, 1}, int(FormatId::F16)}).text();
}

/// One of the changes that files suffer, or that an attacker would make.
void mutate(std::string& text, std::mt19937& random) {
  constexpr uint64_t kNumbers[] = {0,          1,         2,          3,         13,         31,
                                   43,         255,       0x7FFFFFFF, 1u << 31,  UINT32_MAX, 1ull << 32,
                                   1ull << 62, INT64_MAX, 1ull << 63, UINT64_MAX};
  if (text.empty()) return;
  const size_t at = random() % text.size(), length = std::min<size_t>(1 + random() % 16, text.size() - at);
  const uint64_t number = kNumbers[random() % std::size(kNumbers)];
  switch (random() % 7) {
    case 0:
      text[at] = char(random());
      break;
    case 1:
      text[at] ^= char(1 << random() % 8);
      break;
    case 2:
      std::memcpy(text.data() + at, &number, std::min<size_t>(8, text.size() - at));
      break;
    case 3:
      std::memcpy(text.data() + at, &number, std::min<size_t>(4, text.size() - at));
      break;
    case 4:
      text.resize(at);
      break;
    case 5:
      text.erase(at, length);
      break;
    case 6:
      text.insert(at, text.substr(random() % text.size(), length));
      break;
  }
}

TEST(FuzzCheckpoint, SeedsAreSound) {
  EXPECT_TRUE(try_checkpoint(small_file()));
  EXPECT_TRUE(try_checkpoint(split_file()));
}

TEST(FuzzCheckpoint, MutatedFilesAreReadOrRefused) {
  std::mt19937 random(1);
  int read = 0, refused = 0;
  for (const std::string& seed : {small_file(), split_file()})
    for (int i = 0; i < 3000; i++) {
      std::string text = seed;
      for (unsigned changes = 1 + random() % 3; changes > 0; changes--) mutate(text, random);
      (try_checkpoint(text) ? read : refused)++;
    }
  // Changes of data and names are harmless, most others are not: a reader that takes either all or nothing fails here.
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

TEST(FuzzCheckpoint, NoLengthIsAllocatedOnTrust) {
  std::mt19937 random(2);
  const std::string seed = small_file();
  reset_greatest_allocation();
  for (int i = 0; i < 3000; i++) {
    std::string text = seed;
    mutate(text, random);
    try_checkpoint(text);
  }
  EXPECT_GT(greatest_allocation(), 0u);
  // A length taken from the file on trust would show as an allocation of its size.
  EXPECT_LT(greatest_allocation(), 64 * seed.size());
}

}  // namespace
}  // namespace lane::test
