// What an emitted program refuses, and that it says so before it loads anything.
#include <cstring>
#include <filesystem>

#include "program.h"

namespace lane::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kShort = {"--tokens", "5,6,7", "-n", "2"};

class ProgramErrors : public ::testing::Test {
 protected:
  TempFolder folder_;
  std::string checkpoint_ = folder_ / "m.gguf", sidecar_ = folder_ / "m.lane";

  void SetUp() override {
    fs::copy_file(program_path("llama.gguf"), checkpoint_);
    fs::copy_file(program_path("llama.lane"), sidecar_);
  }

  Outcome run(std::vector<std::string> more = {}) const {
    std::vector<std::string> options = {"-m", checkpoint_, "--sidecar", sidecar_};
    options.insert(options.end(), kShort.begin(), kShort.end());
    options.insert(options.end(), more.begin(), more.end());
    return run_program("llama", options);
  }

  static void change_byte(const std::string& path, size_t at) {
    std::string bytes = read_file(path);
    bytes[at] = char(bytes[at] ^ 0x10);
    write_file(path, bytes);
  }

  /// One line of message, nothing on standard output, the exit code.
  static void expect_refusal(const Outcome& outcome, int code, std::initializer_list<std::string_view> parts) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (std::string_view part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
    }
  }
};

TEST_F(ProgramErrors, TheCopiesRun) { EXPECT_EQ(run().code, 0) << run().err; }

TEST_F(ProgramErrors, MissingCheckpoint) {
  fs::remove(checkpoint_);
  expect_refusal(run(), 5, {checkpoint_, "No such file"});
}

TEST_F(ProgramErrors, AFolderIsNoCheckpoint) {
  fs::remove(checkpoint_);
  fs::create_directory(checkpoint_);
  expect_refusal(run(), 5, {"not a regular file"});
}

TEST_F(ProgramErrors, TruncatedCheckpoint) {
  const uint64_t bytes = fs::file_size(checkpoint_);
  fs::resize_file(checkpoint_, bytes - 1);
  expect_refusal(run(), 3, {checkpoint_, std::to_string(bytes - 1), std::to_string(bytes)});
}

TEST_F(ProgramErrors, AnotherCheckpoint) {
  fs::remove(checkpoint_);
  fs::copy_file(program_path("qwen2.gguf"), checkpoint_);
  expect_refusal(run(), 3, {checkpoint_});
}

TEST_F(ProgramErrors, AnotherHeaderIsRefusedEvenWhereWeightsMayChange) {
  change_byte(checkpoint_, 100);
  expect_refusal(run({"--allow-weights-change"}), 3, {"header"});
}

TEST_F(ProgramErrors, OtherWeightsAreRefusedUnlessAllowed) {
  change_byte(checkpoint_, fs::file_size(checkpoint_) - 300);
  expect_refusal(run(), 3, {"other weights", "--allow-weights-change"});
  EXPECT_EQ(run({"--allow-weights-change"}).code, 0);
}

TEST_F(ProgramErrors, ChangedSidecar) {
  change_byte(sidecar_, 40);
  expect_refusal(run(), 3, {sidecar_, "changed"});
}

TEST_F(ProgramErrors, TruncatedSidecar) {
  fs::resize_file(sidecar_, 20);
  expect_refusal(run(), 3, {sidecar_, "not made with this program"});
}

TEST_F(ProgramErrors, AnotherProgramsSidecar) {
  fs::remove(sidecar_);
  fs::copy_file(program_path("gemma3.lane"), sidecar_);
  expect_refusal(run(), 3, {sidecar_, "not made with this program"});
}

TEST_F(ProgramErrors, ASidecarWithoutAPathAndNoCheckpointNamed) {
  constexpr size_t kHeader = 32, kPayloadBytes = 8, kPathBytes = 24;
  std::string bytes = read_file(sidecar_);
  uint64_t payload = 0;
  std::memcpy(&payload, &bytes[kPayloadBytes], sizeof payload);
  std::memset(&bytes[kPathBytes], 0, sizeof payload);
  write_file(sidecar_, bytes.substr(0, kHeader + payload));
  EXPECT_EQ(run().code, 0) << run().err;
  expect_refusal(run_process({program_path("llama"), "--sidecar", sidecar_, "--tokens", "5", "-n", "1"}), 2,
                 {"Usage: no checkpoint's path is known", "-m FILE"});
}

TEST_F(ProgramErrors, MissingSidecar) {
  fs::remove(sidecar_);
  expect_refusal(run(), 5, {sidecar_, "No such file"});
}

TEST_F(ProgramErrors, TooLittleMemory) {
  expect_refusal(run({"--mem-bytes", "1000"}), 5, {"Memory: needs", "has 1000", "weights", "carried state"});
}

TEST_F(ProgramErrors, UsageIsExitTwo) {
  expect_refusal(run({"--ctx", "1000000"}), 2, {"--ctx"});
  expect_refusal(run_program("llama", {"--tokens", "5", "-p", "x"}), 2, {"--tokens"});
  expect_refusal(run_program("llama", {"--tokens", "99999"}), 2, {"99999"});
  expect_refusal(run_program("llama", {"--nonsense"}), 2, {"--nonsense"});
  expect_refusal(run_program("llama", {}), 2, {"no prompt"});
}

TEST_F(ProgramErrors, APromptLongerThanTheContext) { expect_refusal(run({"--ctx", "2"}), 2, {"3 tokens", "2"}); }

TEST_F(ProgramErrors, TheCheckpointCompiledFromIsTheDefault) {
  std::vector<std::string> line{program_path("llama")};
  line.insert(line.end(), kShort.begin(), kShort.end());
  const Outcome outcome = run_process(line);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace lane::test
