#include <gtest/gtest.h>

#include "lane/error.h"

namespace lane {
namespace {

TEST(Printable, LeavesPlainTextAlone) {
  EXPECT_EQ(printable("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
  EXPECT_EQ(printable("größe 東京 🙂"), "größe 東京 🙂");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, EscapesControlsAndDelimiters) {
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x1b[31m\n\x7f"), "\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("'\"\\"), "\\x27\\x22\\x5c");
  EXPECT_EQ(printable("\u0085\u2028"), "\\xc2\\x85\\xe2\\x80\\xa8");
}

TEST(Printable, EscapesInvisibleAndBidirectionalCharacters) {
  EXPECT_EQ(printable("a\u202Eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(printable("\u2066\u200B\uFEFF"), "\\xe2\\x81\\xa6\\xe2\\x80\\x8b\\xef\\xbb\\xbf");
}

TEST(Printable, EscapesInvalidUtf8ByteByByte) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(printable("\xe6\x9d"), "\\xe6\\x9d");                    // cut short
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde…");
  EXPECT_EQ(printable("東京", 4), "東…");
  EXPECT_EQ(printable("ab\n", 4), "ab…");
}

}  // namespace
}  // namespace lane
