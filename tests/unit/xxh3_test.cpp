#include "runtime/xxh3.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>

namespace lane_program {
namespace {

std::vector<uint8_t> random_bytes(size_t n) {
  std::mt19937 random(11);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& b : bytes) b = uint8_t(random());
  return bytes;
}

TEST(Xxh3, EqualsTheLibraryForEveryLengthOfItsLongForm) {
  const std::vector<uint8_t> bytes = random_bytes(5000);
  for (size_t n = 241; n <= bytes.size(); ++n) {
    ASSERT_EQ(digest(bytes.data(), n), XXH3_64bits(bytes.data(), n)) << n << " bytes";
  }
}

TEST(Xxh3, ShorterBytesArePaddedWithZeros) {
  const std::vector<uint8_t> bytes = random_bytes(240);
  for (size_t n : {size_t{0}, size_t{1}, size_t{16}, size_t{239}, size_t{240}}) {
    std::vector<uint8_t> padded(bytes.begin(), bytes.begin() + long(n));
    padded.resize(256);
    EXPECT_EQ(digest(bytes.data(), n), XXH3_64bits(padded.data(), 256)) << n << " bytes";
  }
}

TEST(Xxh3, UnalignedBytes) {
  const std::vector<uint8_t> bytes = random_bytes(3001);
  EXPECT_EQ(digest(bytes.data() + 1, 3000), XXH3_64bits(bytes.data() + 1, 3000));
}

TEST(Xxh3, PartsGiveTheDigestOfTheWhole) {
  const std::vector<uint8_t> bytes = random_bytes(9 * RunningDigest::kBlock);
  for (size_t n : {64, 65, 127, 128, 1000, 1023, 1024}) {
    RunningDigest running;
    running.add(bytes.data(), 3 * RunningDigest::kBlock);
    running.add(bytes.data() + 3 * RunningDigest::kBlock, RunningDigest::kBlock);
    const size_t whole = 4 * RunningDigest::kBlock + n;
    EXPECT_EQ(running.finish(bytes.data() + 4 * RunningDigest::kBlock, n), XXH3_64bits(bytes.data(), whole)) << n;
  }
}

TEST(Xxh3, PiecesAreDigestedInOrder) {
  const std::vector<uint8_t> bytes = random_bytes(600);
  PieceDigest forth, back;
  forth.add(bytes.data(), 300);
  forth.add(bytes.data() + 300, 300);
  back.add(bytes.data() + 300, 300);
  back.add(bytes.data(), 300);
  EXPECT_NE(forth.value(), back.value());
}

}  // namespace
}  // namespace lane_program
