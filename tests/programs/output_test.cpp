// Output files appear together or not at all.
#include "output.h"

#include <gtest/gtest.h>

#include "lane/error.h"
#include "support/expect_error.h"
#include "support/files.h"

namespace lane::test {
namespace {

namespace fs = std::filesystem;
using tools::OutputFiles;

class Output : public ::testing::Test {
 protected:
  TempFolder folder_;
  std::string first_ = folder_ / "first", second_ = folder_ / "second";

  size_t files() const {
    return size_t(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  /// `second_` becomes a folder that holds a file, which nothing can be renamed to.
  void block_second() const {
    fs::create_directory(second_);
    write_file(second_ + "/inside", "kept");
  }
  void commit_both() const {
    OutputFiles files;
    files.add(first_, "new first");
    files.add(second_, "new second");
    files.commit();
  }
};

TEST_F(Output, BothAppear) {
  write_file(first_, "old first");
  commit_both();
  EXPECT_EQ(read_file(first_), "new first");
  EXPECT_EQ(read_file(second_), "new second");
  EXPECT_EQ(files(), 2u);
}

TEST_F(Output, NothingIsLeftWithoutACommit) {
  write_file(first_, "old first");
  {
    OutputFiles files;
    files.add(first_, "new first");
  }
  EXPECT_EQ(read_file(first_), "old first");
  EXPECT_EQ(files(), 1u);
}

TEST_F(Output, WhereOneCannotBeNoneIs) {
  block_second();
  expect_error<IoError>("second", [&] { commit_both(); });
  EXPECT_FALSE(fs::exists(first_));
  EXPECT_EQ(files(), 1u);
}

TEST_F(Output, WhatStoodThereIsPutBack) {
  block_second();
  write_file(first_, "old first");
  expect_error<IoError>("second", [&] { commit_both(); });
  EXPECT_EQ(read_file(first_), "old first");
  EXPECT_EQ(read_file(second_ + "/inside"), "kept");
  EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace lane::test
