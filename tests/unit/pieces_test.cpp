#include "runtime/pieces.h"

#include <gtest/gtest.h>

#include <random>

#include "support/files.h"

namespace lane_program {
namespace {

std::string noise(size_t bytes) {
  std::mt19937 random(3);
  std::string text(bytes, '\0');
  for (char& c : text) c = char(random());
  return text;
}

class Pieces : public testing::TestWithParam<uint64_t> {
 protected:
  lane::test::TempFolder folder_;
  File file_;

  const File& written(const std::string& text) {
    lane::test::write_file(folder_ / "file", text);
    EXPECT_TRUE(file_.open(folder_ / "file").ok());
    return file_;
  }
};

/// Pieces of several parts, with last ones from a byte on.
TEST_P(Pieces, ComeInOrderWithTheirDigests) {
  constexpr uint64_t kBegin = 100, kPiece = 1 << 20;
  const std::string text = noise(kBegin + GetParam());
  PieceReader reader(written(text), kBegin, text.size(), kPiece);
  std::vector<std::vector<uint8_t>> buffers(3, std::vector<uint8_t>(kPiece));
  std::string read;
  size_t started = 0;
  while (read.size() < GetParam()) {
    while (!reader.all_started() && reader.in_flight() < buffers.size())
      reader.start(buffers[started++ % buffers.size()].data());
    const Piece piece = reader.take();
    ASSERT_TRUE(piece.status.ok()) << piece.status.message;
    EXPECT_EQ(piece.at, kBegin + read.size());
    EXPECT_EQ(piece.digest, digest(text.data() + piece.at, piece.bytes));
    read.append(reinterpret_cast<const char*>(piece.data), piece.bytes);
  }
  EXPECT_TRUE(read == text.substr(kBegin));
  EXPECT_TRUE(reader.all_started());
}

INSTANTIATE_TEST_SUITE_P(Bytes, Pieces,
                         testing::Values(1, 300, 1 << 18, (1 << 19) - 1, 1 << 19, (1 << 20) + 1, (7 << 20) + 12345));

TEST(PieceReader, AFileThatEndsEarlyIsRefused) {
  const lane::test::TempFolder folder;
  lane::test::write_file(folder / "file", noise(2 << 20));
  File file;
  ASSERT_TRUE(file.open(folder / "file").ok());
  PieceReader reader(file, 0, (2 << 20) + 1, 1 << 20);
  std::vector<uint8_t> buffer(1 << 20);
  Piece last;
  while (!reader.all_started()) {
    reader.start(buffer.data());
    last = reader.take();
  }
  EXPECT_EQ(last.status.code, kExitCheckpoint);
}

}  // namespace
}  // namespace lane_program
