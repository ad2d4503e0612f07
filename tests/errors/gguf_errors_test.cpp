// Malformed checkpoints: each is refused by type, and the message names the file, the place, what was found and what is
// accepted.
#include <gtest/gtest.h>

#include <filesystem>

#include "lane/gguf.h"
#include "support/expect_error.h"
#include "support/files.h"
#include "support/gguf_builder.h"

namespace lane {
namespace {

using test::Bytes;
using test::expect_error;
using test::GgufText;
using test::TensorText;

class MalformedCheckpoint : public testing::Test {
 protected:
  Checkpoint read(const std::string& text) {
    test::write_file(folder_ / "model.gguf", text);
    return read_checkpoint(folder_ / "model.gguf");
  }
  template <class E = CheckpointError>
  void refuses(std::initializer_list<std::string_view> parts, const std::string& text) {
    expect_error<E>({"model.gguf"}, [&] { read(text); });
    expect_error<E>(parts, [&] { read(text); });
  }
  void refuses_tensor(std::initializer_list<std::string_view> parts, TensorText tensor) {
    refuses(parts, GgufText().tensor(std::move(tensor)).text());
  }
  test::TempFolder folder_;
};

/// A file with metadata of several types and two tensors.
GgufText sound() {
  GgufText file;
  file.string("general.architecture", "llama").u32("llama.block_count", 2);
  file.array("tokenizer.ggml.tokens", MetaType::String, 2, Bytes().string("a").string("b").text());
  file.array("tokenizer.ggml.scores", MetaType::F32, 2, std::string(8, '\0'));
  return file.tensor({"output_norm.weight", {8}}).tensor({"token_embd.weight", {32, 2}, int(FormatId::Q4_0)});
}

// Files that are no GGUF file, or none of ours.

TEST_F(MalformedCheckpoint, IsMissing) {
  expect_error<IoError>({"absent.gguf", "cannot open"}, [&] { read_checkpoint(folder_ / "absent.gguf"); });
}

TEST_F(MalformedCheckpoint, IsAFolder) {
  expect_error<IoError>("not a regular file", [&] { read_checkpoint(folder_.path()); });
}

TEST_F(MalformedCheckpoint, IsEmpty) { refuses({"at byte 0", "an empty file", "'GGUF'"}, ""); }

TEST_F(MalformedCheckpoint, IsAnLfsPointer) {
  refuses({"Git LFS pointer", "git lfs pull"},
          "version https://git-lfs.github.com/spec/v1\noid "
          "sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca\n");
}

TEST_F(MalformedCheckpoint, IsAnotherText) {
  refuses({"at byte 0", "'<!DOCTYPE html>", "the magic 'GGUF'"}, "<!DOCTYPE html>\n<html></html>\n");
  refuses({"'GGU'", "the magic"}, "GGU");
  refuses({"'\\x1b[2J"}, "\x1b[2Jclears the terminal");
}

TEST_F(MalformedCheckpoint, IsOfAnotherVersion) {
  for (const uint32_t version : {0u, 1u, 4u, 0x10003u}) {
    GgufText file = sound();
    file.version = version;
    refuses({"at byte 4", "GGUF version " + std::to_string(version), "version 2 or 3"}, file.text());
  }
}

TEST_F(MalformedCheckpoint, IsBigEndian) {
  GgufText swapped = sound(), reversed = sound();
  swapped.version = 0x03000000;
  reversed.magic = "FUGG";
  refuses({"at byte 4", "big-endian"}, swapped.text());
  refuses({"at byte 0", "big-endian"}, reversed.text());
}

// Damaged lengths and counts.

TEST_F(MalformedCheckpoint, IsCutShortAnywhere) {
  GgufText file = sound();
  file.pad_end = false;
  const std::string text = file.text();
  read(text);
  for (size_t bytes = 0; bytes < text.size(); bytes++) {
    SCOPED_TRACE(bytes);
    refuses({"found"}, text.substr(0, bytes));
  }
}

TEST_F(MalformedCheckpoint, ClaimsMoreThanItHolds) {
  for (const uint64_t count : {uint64_t(1) << 30, uint64_t(1) << 63, UINT64_MAX}) {
    GgufText tensors = sound(), entries = sound();
    tensors.tensor_count = entries.entry_count = count;
    refuses({"at byte 8", std::to_string(count) + " tensors", "bytes follow"}, tensors.text());
    refuses({"at byte 16", std::to_string(count) + " metadata entries", "bytes follow"}, entries.text());
  }
}

TEST_F(MalformedCheckpoint, ClaimsOneTensorMore) {
  GgufText file = sound();
  file.tensor_count = 3;
  // What is read as a third tensor is the padding: a name of no bytes.
  refuses({"no name for tensor 2"}, file.text());
}

TEST_F(MalformedCheckpoint, HasAStringPastItsEnd) {
  for (const uint64_t length : {uint64_t(1000), uint64_t(1) << 31, uint64_t(1) << 63, UINT64_MAX}) {
    const std::string value = Bytes().put(length).raw("short").text();
    refuses({"key 'name'", std::to_string(length)}, GgufText().entry("name", MetaType::String, value).text());
    GgufText file;
    file.entries.push_back(value + std::string(20, ' '));
    refuses({"key 0 of the metadata", std::to_string(length)}, file.text());
  }
}

TEST_F(MalformedCheckpoint, HasAnArrayPastItsEnd) {
  for (const MetaType element : {MetaType::U8, MetaType::F64, MetaType::String, MetaType::Array})
    for (const uint64_t count : {uint64_t(100), uint64_t(1) << 30, uint64_t(1) << 61, UINT64_MAX})
      refuses({"key 'list'", std::to_string(count) + " elements", "bytes follow"},
              GgufText().array("list", element, count, "some bytes").text());
}

TEST_F(MalformedCheckpoint, HasAStringOfAnArrayPastItsEnd) {
  const std::string strings = Bytes().string("a").put<uint64_t>(99).raw("b").text();
  refuses({"a string of key 'list'", "99 bytes"}, GgufText().array("list", MetaType::String, 2, strings).text());
}

TEST_F(MalformedCheckpoint, NestsArraysWithoutEnd) {
  std::string nested;
  for (int i = 0; i < 100000; i++) nested += Bytes().put(uint32_t(MetaType::Array)).put<uint64_t>(1).text();
  refuses({"key 'deep'", "deep", "at most 8"}, GgufText().array("deep", MetaType::Array, 1, nested).text());
}

// Metadata.

TEST_F(MalformedCheckpoint, HasAnUnknownValueType) {
  for (const uint32_t type : {13u, 0x80000000u, UINT32_MAX}) {
    refuses({"the type of key 'k' " + std::to_string(type), "0 to 12"},
            GgufText().entry("k", MetaType(type), "12345678").text());
    refuses({"the element type of key 'k' " + std::to_string(type), "0 to 12"},
            GgufText().array("k", MetaType(type), 1, "12345678").text());
  }
}

TEST_F(MalformedCheckpoint, HasAnEmptyKey) { refuses({"at byte 24", "an empty key"}, GgufText().u32("", 1).text()); }

TEST_F(MalformedCheckpoint, HasAKeyTwice) {
  refuses({"key 'a' again", "at byte 24"}, GgufText().u32("a", 1).u32("b", 1).u32("a", 2).text());
}

TEST_F(MalformedCheckpoint, HidesAKeyBehindANul) {
  const std::string_view alias("general.architecture\0x", 22);
  refuses({"a NUL in key 'general.architecture\\x00x'"}, GgufText().string(alias, "llama").text());
}

TEST_F(MalformedCheckpoint, HasAnEndlessKey) {
  refuses({"a key of 65536 bytes", "at most 65535"}, GgufText().u32(std::string(65536, 'k'), 1).text());
}

TEST_F(MalformedCheckpoint, HasNoSuchAlignment) {
  for (const uint32_t alignment : {0u, 3u, 48u, 1u << 31, UINT32_MAX})
    refuses({"'general.alignment' of " + std::to_string(alignment), "a power of two"},
            sound().u32("general.alignment", alignment).text());
}

TEST_F(MalformedCheckpoint, HasAnAlignmentOfAnotherType) {
  refuses({"'general.alignment' of type string", "u32"}, sound().string("general.alignment", "32").text());
  refuses({"'general.alignment' of type i32", "u32"}, sound().i32("general.alignment", 32).text());
}

// Tensors.

TEST_F(MalformedCheckpoint, HasTooManyDimensions) {
  refuses_tensor({"tensor 't' of 5 dimensions", "at most 4"}, {"t", {1, 1, 1, 1, 1}});
  for (const uint32_t dims : {6u, 0x7FFFFFFFu, UINT32_MAX}) {
    std::string text = GgufText().tensor({"t", {1}}).text();
    std::memcpy(text.data() + 24 + 8 + 1, &dims, sizeof dims);
    refuses({"tensor 't' of " + std::to_string(dims) + " dimensions"}, text);
  }
}

TEST_F(MalformedCheckpoint, HasADimensionOfNothing) {
  refuses_tensor({"tensor 't' with dimension 0 of 0", "1 or more"}, {"t", {0}});
  refuses_tensor({"tensor 't' with dimension 1 of 0"}, {"t", {32, 0}, int(FormatId::Q4_0)});
  refuses_tensor({"tensor 't' with dimension 1 of -1"}, {"t", {32, -1}});
  refuses_tensor({"tensor 't' with dimension 0 of -9223372036854775808"}, {"t", {INT64_MIN}});
}

TEST_F(MalformedCheckpoint, HasDimensionsWhoseProductWraps) {
  const int64_t two32 = int64_t(1) << 32, odd = (int64_t(1) << 42) + 1;
  refuses_tensor({"tensor 't'", "2^63 - 1"}, {"t", {two32, two32}});
  refuses_tensor({"tensor 't'", "2^63 - 1"}, {"t", {odd, odd}});
  refuses_tensor({"tensor 't'", "2^63 - 1"}, {"t", {two32, two32 / 2}});
  refuses_tensor({"tensor 't'", "2^63 - 1"}, {"t", {two32, two32, two32, two32}, int(FormatId::Q4_K)});
}

TEST_F(MalformedCheckpoint, HasASizeThatWraps) {
  // 2^62 elements fit a signed 64-bit integer, their bytes an unsigned one only for the smaller types.
  refuses_tensor({"tensor 't' of 2^64 bytes or more"}, {"t", {int64_t(1) << 62}});
  refuses_tensor({"tensor 't' of 9223372036854775808 bytes", "cut short"},
                 {"t", {int64_t(1) << 62}, int(FormatId::F16)});
}

TEST_F(MalformedCheckpoint, HasSizesWhoseSumWraps) {
  // Each size fits; the third would end where a wrapped sum is small again.
  GgufText file;
  const int64_t bytes = int64_t(1) << 62;
  const auto offset = [](uint64_t n) { return std::optional(n << 62); };
  for (const uint64_t i : {0, 1, 2, 3}) file.tensor({"t" + std::to_string(i), {bytes}, 24, "", offset(i)});
  file.tensor({"small", {4}, 24, "", 0});
  refuses({"tensor 't3'", "2^64"}, file.text());
}

TEST_F(MalformedCheckpoint, HasPaddingThatWraps) {
  GgufText file;
  const int64_t half = INT64_MAX;
  file.tensor({"a", {half}, 24, "", 0}).tensor({"b", {half}, 24, "", uint64_t(1) << 63});
  refuses({"tensor 'b'", "2^64"}, file.text());
}

TEST_F(MalformedCheckpoint, HasNoSuchTensorType) {
  for (const int type : {4, 5, 31, 33, 36, 38, 43, 255, -1, INT32_MIN})
    refuses<FormatError>({"tensor 't' is of type " + std::to_string(type), "GGUF has no such type", "Q4_K"},
                         GgufText().tensor({"t", {32}, type, "data"}).text());
}

TEST_F(MalformedCheckpoint, HasRowsThatNoBlockDivides) {
  refuses_tensor({"tensor 't' of type Q4_K with 96 columns", "divisible by 256"}, {"t", {96, 8}, int(FormatId::Q4_K)});
  refuses_tensor({"tensor 't' of type Q8_0 with 1 columns", "divisible by 32"}, {"t", {1, 32}, int(FormatId::Q8_0)});
  refuses_tensor({"tensor 't' of type Q4_0 with 1 columns", "divisible by 32"}, {"t", {}, int(FormatId::Q4_0)});
}

TEST_F(MalformedCheckpoint, HasOffsetsThatAreNotTheRunningSum) {
  for (const uint64_t offset : {uint64_t(0), uint64_t(16), uint64_t(64), uint64_t(1) << 40, UINT64_MAX - 31}) {
    GgufText file = GgufText().tensor({"a", {8}}).tensor({"b", {8}});
    file.tensors[1].offset = offset;
    refuses({"tensor 'b' at offset " + std::to_string(offset), "offset 32"}, file.text());
  }
  GgufText late = GgufText().tensor({"a", {8}});
  late.tensors[0].offset = 32;
  refuses({"tensor 'a' at offset 32", "offset 0"}, late.text());
}

TEST_F(MalformedCheckpoint, HasATensorTwice) {
  refuses({"tensor 'a' again"}, GgufText().tensor({"a", {8}}).tensor({"b", {8}}).tensor({"a", {8}}).text());
}

TEST_F(MalformedCheckpoint, HasUnusableNames) {
  refuses_tensor({"no name for tensor 0"}, {"", {8}});
  refuses_tensor({"a name of 64 bytes", "at most 63"}, {std::string(64, 'x'), {8}});
  refuses_tensor({"a NUL in the name of tensor 'a\\x00b'"}, {std::string("a\0b", 3), {8}});
}

TEST_F(MalformedCheckpoint, EscapesWhatItQuotes) {
  refuses_tensor({"tensor '*/\\x0a#include %s\\x1b[0m\\xff'"}, {"*/\n#include %s\x1b[0m\xff", {0}});
  refuses({"key '\\xe2\\x80\\xaekey' again"}, GgufText().u32("\u202Ekey", 1).u32("\u202Ekey", 1).text());
}

TEST_F(MalformedCheckpoint, EndsInsideATensor) {
  std::string text = sound().text();
  const size_t data = sound().header_bytes();
  refuses({"tensor 'token_embd.weight'", "cut short"}, text.substr(0, text.size() - 32));
  refuses({"tensor 'output_norm.weight'", "cut short"}, text.substr(0, data));
}

}  // namespace
}  // namespace lane
