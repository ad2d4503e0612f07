// Reading sound checkpoints: what stands in the file is what the product says.
#include "lane/gguf.h"

#include <gtest/gtest.h>

#include "lane/inspect.h"
#include "support/expect_error.h"
#include "support/files.h"
#include "support/gguf_builder.h"
#include "support/golden_case.h"
#include "support/golden_text.h"

namespace lane {
namespace {

using test::Bytes;
using test::expect_error;
using test::GgufText;
using test::TempFolder;

template <class T>
std::string packed(T value) {
  return Bytes().put(value).text();
}

/// A file with every type of value, and tensors of every number of dimensions.
GgufText every_kind() {
  GgufText file;
  file.entry("u8", MetaType::U8, packed<uint8_t>(200)).entry("i8", MetaType::I8, packed<int8_t>(-100));
  file.u16("u16", 60000).entry("i16", MetaType::I16, packed<int16_t>(-30000));
  file.u32("u32", 4000000000).i32("i32", -2000000000);
  file.entry("u64", MetaType::U64, packed<uint64_t>(UINT64_MAX))
      .entry("i64", MetaType::I64, packed<int64_t>(INT64_MIN));
  file.entry("f32", MetaType::F32, packed(0.1f)).entry("f64", MetaType::F64, packed(0.1));
  file.entry("yes", MetaType::Bool, packed<uint8_t>(2)).entry("no", MetaType::Bool, packed<uint8_t>(0));
  file.string("text", "hello").string("odd", std::string("a\0\n\"\xff", 5)).string("empty", "");
  file.array("strings", MetaType::String, 2, Bytes().string("ab").string("").text());
  file.array("i32s", MetaType::I32, 3, Bytes().put<int32_t>(1).put<int32_t>(-2).put<int32_t>(3).text());
  file.array("bools", MetaType::Bool, 2, Bytes().put<uint8_t>(0).put<uint8_t>(7).text());
  file.array("f32s", MetaType::F32, 2, Bytes().put(0.5f).put(-1e-6f).text());
  file.array("none", MetaType::F64, 0, "");
  file.array("many", MetaType::U8, 100, std::string(100, '\x07'));
  const std::string inner = Bytes().put<uint32_t>(0).put<uint64_t>(3).raw("abc").text();
  file.array("nested", MetaType::Array, 2, inner + inner);
  file.tensor({"scalar", {}}).tensor({"vector", {5}}).tensor({"matrix", {32, 3}, int(FormatId::Q8_0)});
  file.tensor({"cube", {4, 3, 2}, int(FormatId::F16)}).tensor({"fourth", {2, 1, 3, 5}, int(FormatId::BF16)});
  file.tensor({"known by name", {8}, 26});
  return file;
}

class ReadCheckpoint : public testing::Test {
 protected:
  Checkpoint read(const std::string& text, std::string_view name = "model.gguf") {
    test::write_file(folder_ / name, text);
    return read_checkpoint(folder_ / name);
  }
  TempFolder folder_;
};

TEST_F(ReadCheckpoint, FindsMetadataOfEveryType) {
  const Checkpoint c = read(every_kind().text());
  EXPECT_EQ(c.integer("u8"), 200u);
  EXPECT_EQ(c.signed_integer("i8"), -100);
  EXPECT_EQ(c.integer("u16"), 60000u);
  EXPECT_EQ(c.signed_integer("i16"), -30000);
  EXPECT_EQ(c.integer("u32"), 4000000000u);
  EXPECT_EQ(c.signed_integer("i32"), -2000000000);
  EXPECT_EQ(c.integer("u64"), UINT64_MAX);
  EXPECT_EQ(c.signed_integer("i64"), INT64_MIN);
  EXPECT_EQ(c.real("f32"), double(0.1f));
  EXPECT_EQ(c.real("f64"), 0.1);
  EXPECT_EQ(c.boolean("yes"), true);
  EXPECT_EQ(c.boolean("no"), false);
  EXPECT_EQ(c.string("text"), "hello");
  EXPECT_EQ(c.string("odd"), std::string_view("a\0\n\"\xff", 5));
  EXPECT_EQ(c.string("empty"), "");
}

TEST_F(ReadCheckpoint, DecodesArrays) {
  const Checkpoint c = read(every_kind().text());
  EXPECT_EQ(c.strings("strings"), (std::vector<std::string_view>{"ab", ""}));
  EXPECT_EQ(c.integers("i32s"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(c.integers("bools"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(c.reals("f32s"), (std::vector<double>{0.5, double(-1e-6f)}));
  EXPECT_EQ(c.reals("none"), std::vector<double>());
  const auto& nested = std::get<MetaArray>(c.find("nested")->value);
  EXPECT_EQ(nested.element, MetaType::Array);
  EXPECT_EQ(nested.bytes.size(), 2 * 15u);
}

TEST_F(ReadCheckpoint, GivesNothingForAbsentNames) {
  const Checkpoint c = read(every_kind().text());
  EXPECT_EQ(c.find("absent"), nullptr);
  EXPECT_EQ(c.tensor("absent"), nullptr);
  EXPECT_EQ(c.integer("absent"), std::nullopt);
  EXPECT_EQ(c.signed_integer("absent"), std::nullopt);
  EXPECT_EQ(c.real("absent"), std::nullopt);
  EXPECT_EQ(c.boolean("absent"), std::nullopt);
  EXPECT_EQ(c.string("absent"), std::nullopt);
  EXPECT_EQ(c.integers("absent"), std::nullopt);
  EXPECT_EQ(c.reals("absent"), std::nullopt);
  EXPECT_EQ(c.strings("absent"), std::nullopt);
}

TEST_F(ReadCheckpoint, RefusesALookUpOfAnotherType) {
  const Checkpoint c = read(every_kind().text());
  expect_error<CheckpointError>({"model.gguf", "key 'text' of type string", "an integer"}, [&] { c.integer("text"); });
  expect_error<CheckpointError>({"key 'i8' of -100", "0 or more"}, [&] { c.integer("i8"); });
  expect_error<CheckpointError>({"key 'u64' of type u64", "below 2^63"}, [&] { c.signed_integer("u64"); });
  expect_error<CheckpointError>({"key 'u32' of type u32", "f32 or f64"}, [&] { c.real("u32"); });
  expect_error<CheckpointError>({"key 'u8' of type u8", "bool"}, [&] { c.boolean("u8"); });
  expect_error<CheckpointError>({"key 'f32' of type f32", "string"}, [&] { c.string("f32"); });
  expect_error<CheckpointError>({"key 'f32s' of type array of f32", "integers"}, [&] { c.integers("f32s"); });
  expect_error<CheckpointError>({"key 'many' of type array of u8", "f32 or f64"}, [&] { c.reals("many"); });
  expect_error<CheckpointError>({"key 'i32s' of type array of i32", "strings"}, [&] { c.strings("i32s"); });
  expect_error<CheckpointError>({"key 'nested' of type array of array", "integers"}, [&] { c.integers("nested"); });
}

TEST_F(ReadCheckpoint, PlacesTensorsWhereTheFileSays) {
  GgufText file = every_kind();
  file.tensors[1].data = Bytes().put(1.f).put(2.f).put(3.f).put(4.f).put(5.f).text();
  const Checkpoint c = read(file.text());
  const TensorInfo& vector = *c.tensor("vector");
  EXPECT_EQ(vector.offset, c.shards[0].data_start + 32);  // after the scalar's four bytes and their padding
  EXPECT_EQ(vector.bytes, 20u);
  float third;
  std::memcpy(&third, c.data(vector).data() + 8, 4);
  EXPECT_EQ(third, 3.f);
  const TensorInfo& matrix = *c.tensor("matrix");
  EXPECT_EQ(matrix.format->name, "Q8_0");
  EXPECT_EQ(matrix.columns(), 32u);
  EXPECT_EQ(matrix.rows(), 3u);
  EXPECT_EQ(matrix.bytes, 3 * 34u);
  EXPECT_EQ(c.tensor("cube")->experts(), 2u);
  EXPECT_EQ(c.tensor("scalar")->dims, 0);
  EXPECT_EQ(c.tensor("scalar")->bytes, 4u);
}

TEST_F(ReadCheckpoint, AcceptsVersionTwoAndOtherAlignments) {
  GgufText file;
  file.version = 2;
  file.alignment = 4096;
  file.u32("general.alignment", 4096).tensor({"a", {3}}).tensor({"b", {3}});
  const Checkpoint c = read(file.text());
  EXPECT_EQ(c.shards[0].version, 2u);
  EXPECT_EQ(c.tensor("b")->offset, 2 * 4096u);
}

TEST_F(ReadCheckpoint, AcceptsALastTensorWithoutPadding) {
  GgufText file;
  file.pad_end = false;
  EXPECT_EQ(read(file.tensor({"a", {3}}).text()).tensor("a")->bytes, 12u);
}

TEST_F(ReadCheckpoint, AcceptsAFileWithoutTensors) {
  const std::string text = GgufText().u32("n", 1).text();
  const Checkpoint c = read(text);
  EXPECT_TRUE(c.tensors.empty());
  EXPECT_EQ(c.shards[0].data_start, text.size());
  verify(c);
}

TEST_F(ReadCheckpoint, ReadsManyNamesInLinearTime) {
  // Quadratic search for duplicates would take minutes here.
  GgufText file;
  for (int i = 0; i < 200000; i++) file.u32("key." + std::to_string(i), uint32_t(i));
  const Checkpoint c = read(file.text());
  EXPECT_EQ(c.integer("key.199999"), 199999u);
}

TEST_F(ReadCheckpoint, NoticesThatTheFileHasBecomeShorter) {
  const Checkpoint c = read(every_kind().text());
  std::filesystem::resize_file(folder_ / "model.gguf", 100);
  expect_error<IoError>({"model.gguf", "changed", "100 bytes"}, [&] { c.data(c.tensors[0]); });
}

TEST_F(ReadCheckpoint, ReadsGoldenCheckpointsOfEveryFormat) {
  for (const std::string& name : test::case_names("llama-")) {
    const auto golden = test::load_case(name);
    const Checkpoint c = read_checkpoint(test::write_case(golden, folder_.path()));
    verify(c);
    EXPECT_EQ(c.tensors.size(), golden.recipe.at("tensors").size()) << name;
    EXPECT_EQ(c.string("general.architecture"), golden.recipe.at("architecture").get<std::string>()) << name;
    std::filesystem::remove(folder_ / (name + ".gguf"));
  }
}

TEST_F(ReadCheckpoint, ListingIsUnchanged) {
  const Checkpoint c = read(every_kind().text());
  test::expect_golden("gguf/every_kind.txt", to_text(c));
  test::expect_golden("gguf/every_kind.json", inspect_json(c));
}

TEST_F(ReadCheckpoint, ListingOfAGoldenCheckpointIsUnchanged) {
  const Checkpoint c = read_checkpoint(test::write_case(test::load_case("llama-q4_k_m"), folder_.path()));
  test::expect_golden("gguf/llama-q4_k_m.txt", to_text(c));
}

class SplitCheckpoint : public testing::Test {
 protected:
  /// Shard `number` of `count`, with one tensor and metadata as split files have them.
  static GgufText shard(uint16_t number, uint16_t count) {
    GgufText file;
    if (number == 0) file.string("general.architecture", "llama");
    file.u16("split.no", number).u16("split.count", count).i32("split.tensors.count", count);
    return file.tensor({"t" + std::to_string(number), {4}});
  }
  std::filesystem::path write(const GgufText& file, std::string_view name) {
    test::write_file(folder_ / name, file.text());
    return folder_ / name;
  }
  TempFolder folder_;
};

TEST_F(SplitCheckpoint, IsReadWholeFromItsFirstShard) {
  write(shard(1, 3), "m-00002-of-00003.gguf");
  write(shard(2, 3), "m-00003-of-00003.gguf");
  const Checkpoint c = read_checkpoint(write(shard(0, 3), "m-00001-of-00003.gguf"));
  verify(c);
  ASSERT_EQ(c.shards.size(), 3u);
  EXPECT_EQ(c.tensor("t0")->shard, 0);
  EXPECT_EQ(c.tensor("t2")->shard, 2);
  EXPECT_EQ(c.tensor("t2")->offset, c.shards[2].data_start);
  EXPECT_EQ(c.metadata.size(), 4u);
}

TEST_F(SplitCheckpoint, FirstShardMayHoldNoTensors) {
  GgufText first;
  first.u16("split.no", 0).u16("split.count", 2).i32("split.tensors.count", 1);
  write(shard(1, 2), "m-00002-of-00002.gguf");
  EXPECT_EQ(read_checkpoint(write(first, "m-00001-of-00002.gguf")).tensors.size(), 1u);
}

TEST_F(SplitCheckpoint, NamesTheMissingShard) {
  write(shard(2, 3), "m-00003-of-00003.gguf");
  const auto path = write(shard(0, 3), "m-00001-of-00003.gguf");
  expect_error<IoError>({"m-00002-of-00003.gguf", "no such file", "shard 2 of the 3"}, [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, RefusesSwappedShards) {
  write(shard(2, 3), "m-00002-of-00003.gguf");
  write(shard(1, 3), "m-00003-of-00003.gguf");
  const auto path = write(shard(0, 3), "m-00001-of-00003.gguf");
  expect_error<CheckpointError>({"m-00002-of-00003.gguf", "'split.no' of 2", "expected 1"},
                                [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, IsNotOpenedByALaterShard) {
  const auto path = write(shard(1, 3), "m-00002-of-00003.gguf");
  expect_error<CheckpointError>({"m-00002-of-00003.gguf", "'split.no' of 1", "NAME-00001-of-00003.gguf"},
                                [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, RefusesANameThatHidesTheOthers) {
  const auto path = write(shard(0, 3), "model.gguf");
  expect_error<CheckpointError>({"model.gguf", "first of 3 shards", "'-00001-of-00003.gguf'"},
                                [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, RefusesShardsOfAnotherSplit) {
  write(shard(1, 4), "m-00002-of-00002.gguf");
  const auto path = write(shard(0, 2), "m-00001-of-00002.gguf");
  expect_error<CheckpointError>({"m-00002-of-00002.gguf", "'split.count' of 4", "expected 2"},
                                [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, RefusesAMissingNumber) {
  write(GgufText().tensor({"t", {4}}), "m-00002-of-00002.gguf");
  const auto path = write(shard(0, 2), "m-00001-of-00002.gguf");
  expect_error<CheckpointError>({"m-00002-of-00002.gguf", "no key 'split.no'"}, [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, RefusesNumbersThatAreNone) {
  GgufText text, negative;
  text.string("split.count", "two");
  negative.i32("split.count", -2);
  const auto worded = write(text, "a.gguf"), below = write(negative, "b.gguf");
  expect_error<CheckpointError>({"'split.count' of type string", "integer"}, [&] { read_checkpoint(worded); });
  expect_error<CheckpointError>({"'split.count' of -2", "0 or more"}, [&] { read_checkpoint(below); });
}

TEST_F(SplitCheckpoint, RefusesAnotherNumberOfTensors) {
  GgufText second = shard(1, 2);
  write(second.tensor({"extra", {4}}), "m-00002-of-00002.gguf");
  const auto path = write(shard(0, 2), "m-00001-of-00002.gguf");
  expect_error<CheckpointError>({"m-00001-of-00002.gguf", "'split.tensors.count' of 2", "expected 3"},
                                [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, RefusesATensorOfTwoShards) {
  GgufText second = shard(1, 2);
  second.tensors[0].name = "t0";
  write(second, "m-00002-of-00002.gguf");
  const auto path = write(shard(0, 2), "m-00001-of-00002.gguf");
  expect_error<CheckpointError>({"m-00002-of-00002.gguf", "tensor 't0' again"}, [&] { read_checkpoint(path); });
}

TEST_F(SplitCheckpoint, ATruncatedLaterShardIsNamed) {
  const auto later = write(shard(1, 2), "m-00002-of-00002.gguf");
  std::filesystem::resize_file(later, shard(1, 2).header_bytes() - 1);
  const auto path = write(shard(0, 2), "m-00001-of-00002.gguf");
  expect_error<CheckpointError>({"m-00002-of-00002.gguf", "end of the file"}, [&] { read_checkpoint(path); });
}

class VerifyCheckpoint : public ReadCheckpoint {
 protected:
  void expect_damage(std::string_view part, void (*damage)(Checkpoint&)) {
    Checkpoint c = read(every_kind().text());
    verify(c);
    damage(c);
    expect_error<InternalError>(part, [&] { verify(c); });
  }
};

TEST_F(VerifyCheckpoint, FailsDamagedProducts) {
  expect_damage("no file", [](Checkpoint& c) { c.shards.clear(); });
  expect_damage("a shard's bytes", [](Checkpoint& c) { c.shards[0].file_bytes++; });
  expect_damage("alignment of 3", [](Checkpoint& c) { c.shards[0].alignment = 3; });
  expect_damage("'vector' has no format", [](Checkpoint& c) { c.tensors[1].format = nullptr; });
  expect_damage("'vector' is in no shard", [](Checkpoint& c) { c.tensors[1].shard = 1; });
  expect_damage("'known by name' lies outside", [](Checkpoint& c) { c.tensors.back().offset += 1 << 20; });
  expect_damage("'scalar' lies outside", [](Checkpoint& c) { c.tensors[0].offset -= 32; });
  expect_damage("'vector' is not aligned", [](Checkpoint& c) { c.tensors[1].offset += 4; });
  expect_damage("'vector' has another size", [](Checkpoint& c) { c.tensors[1].ne[0]++; });
  expect_damage("'matrix' overlaps", [](Checkpoint& c) { c.tensors[2].offset = c.tensors[1].offset; });
  expect_damage("'vector' is not what its name finds",
                [](Checkpoint& c) { std::swap(c.tensors[0].name, c.tensors[1].name); });
  expect_damage("key 'i8' is not what its name finds", [](Checkpoint& c) { c.metadata.erase(c.metadata.begin()); });
}

}  // namespace
}  // namespace lane
