// The command line of lanec: exit codes, messages, and that output files appear whole or not at all.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "process.h"
#include "support/golden_comparison.h"
#include "support/recipe.h"

namespace lane::test {
namespace {

namespace fs = std::filesystem;

class Lanec : public ::testing::Test {
 protected:
  TempFolder folder_;
  std::string model_ = folder_ / "m.gguf", output_ = folder_ / "m.cu", sidecar_ = folder_ / "m.lane";

  void SetUp() override { write_checkpoint(load_case("llama-f32").recipe, model_); }

  static Outcome lanec(std::vector<std::string> words, const Path& in = {}) {
    words.insert(words.begin(), LANEC);
    return run_process(words, in);
  }
  Outcome compile(std::vector<std::string> more, const Path& in = {}) const {
    std::vector<std::string> words = {"compile", model_, "-o", output_, "--chip", "host"};
    words.insert(words.end(), more.begin(), more.end());
    return lanec(words, in);
  }

  /// The exit code, one line that names the refusal and each part, and no file but the checkpoint.
  void expect_refusal(const Outcome& outcome, int code, std::initializer_list<std::string_view> parts) const {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("lanec: ", 0), 0u) << outcome.err;
    for (std::string_view part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
      EXPECT_TRUE(entry.path() == model_ || entry.path().extension() == ".txt") << entry.path();
    }
  }
};

TEST_F(Lanec, CompileWritesProgramAndSidecar) {
  const Outcome outcome = compile({});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(read_file(output_).rfind("// Written by lanec ", 0), 0u);
  EXPECT_EQ(read_file(sidecar_).rfind("lanecar1", 0), 0u);
}

TEST_F(Lanec, TheSameBytesFromAnotherFolder) {
  ASSERT_EQ(compile({}).code, 0);
  const std::string program = read_file(output_), sidecar = read_file(sidecar_);
  const TempFolder other;
  ASSERT_EQ(compile({}, other.path()).code, 0);
  EXPECT_EQ(read_file(output_), program);
  EXPECT_EQ(read_file(sidecar_), sidecar);
  EXPECT_EQ(program.find(folder_.path().string()), std::string::npos);
}

TEST_F(Lanec, OutputToAPipe) {
  const Outcome outcome = lanec({"compile", model_, "-o", "-", "--chip", "host", "--sidecar", sidecar_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("// Written by lanec ", 0), 0u);
  EXPECT_TRUE(fs::exists(sidecar_));
}

TEST_F(Lanec, EveryStageIsPrinted) {
  for (const char* stage :
       {"gguf", "spec", "logos", "graph", "weights", "plan", "branches", "arena", "residence", "cu"}) {
    const Outcome outcome = lanec({"compile", model_, "--chip", "host", "--emit", stage});
    EXPECT_EQ(outcome.code, 0) << stage << ": " << outcome.err;
    EXPECT_GT(outcome.out.size(), 20u) << stage;
  }
}

TEST_F(Lanec, AWrittenStepCompilesAsTheAuthoredOne) {
  const std::string text = lanec({"compile", model_, "--chip", "host", "--emit", "logos"}).out;
  const std::string file = folder_ / "step.txt";
  write_file(file, text);
  const auto plan = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"compile", model_, "--chip", "host", "--emit", "plan"};
    words.insert(words.end(), more.begin(), more.end());
    return lanec(words);
  };
  const Outcome written = plan({"--from-logos", file});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out, plan({}).out);
}

TEST_F(Lanec, RefusalsOfAWrittenStepAreUsage) {
  const std::string file = folder_ / "step.txt";
  write_file(file, "## Main\nLet x be the nonsense of y.\n");
  expect_refusal(compile({"--from-logos", file}), 2, {"nonsense"});
  write_file(file, "## Mian\n");
  expect_refusal(compile({"--from-logos", file}), 2, {"Parse: line 1"});
  write_file(file, "");
  expect_refusal(compile({"--from-logos", file}), 2, {"empty"});
  expect_refusal(compile({"--from-logos", folder_ / "none.txt"}), 5, {"none.txt"});
}

TEST_F(Lanec, DryRunWritesNothing) {
  const Outcome outcome = lanec({"compile", model_, "--chip", "host", "--dry-run"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("needed "), std::string::npos);
  const Outcome small = lanec({"compile", model_, "--chip", "host", "--dry-run", "--mem-bytes", "1000"});
  expect_refusal(small, 5, {"Memory: needs", "has 1000"});
  // Before the batch's text of 300 MB is made: of its carried state alone.
  expect_refusal(compile({"--batch", "65535"}), 5, {"Memory: needs", "has 16000000000: carried state"});
}

TEST_F(Lanec, StreamsOnChipsThatCan) {
  const auto plan = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"compile", model_, "--emit", "plan"};
    words.insert(words.end(), more.begin(), more.end());
    return lanec(words);
  };
  const auto streams = [&](std::vector<std::string> more) {
    const Outcome outcome = plan(std::move(more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out.find(" streamed_") != std::string::npos || outcome.out.find("\nstreamed_") != std::string::npos;
  };
  write_checkpoint(load_case("llama-q4_k_m").recipe, model_);
  EXPECT_TRUE(streams({"--chip", "sm_90"}));
  EXPECT_TRUE(streams({"--chip", "host", "--stream"}));
  EXPECT_FALSE(streams({"--chip", "sm_90", "--no-stream"}));
  EXPECT_FALSE(streams({"--chip", "sm_90", "--activations", "f32"}));
  EXPECT_FALSE(streams({"--chip", "sm_80"}));
  EXPECT_FALSE(streams({"--chip", "host"}));
  expect_refusal(plan({"--chip", "sm_80", "--stream"}), 2, {"--stream", "sm_80", "bulk copies"});
}

TEST_F(Lanec, TheOutputMayNotBeTheInput) {
  const std::string before = read_file(model_);
  expect_refusal(lanec({"compile", model_, "-o", model_, "--chip", "host"}), 2, {"the input itself"});
  expect_refusal(lanec({"compile", model_, "-o", output_, "--sidecar", model_, "--chip", "host"}), 2, {"itself"});
  EXPECT_EQ(read_file(model_), before);
}

TEST_F(Lanec, AnyCheckpointAndTheWrittenStepAreNotWrittenOver) {
  const std::string other = folder_ / "other.txt", step = folder_ / "step.txt";
  write_file(other, read_file(model_));
  write_file(step, "## Main\n");
  expect_refusal(lanec({"compile", model_, "-o", other, "--chip", "host"}), 2, {"is a checkpoint"});
  expect_refusal(lanec({"compile", model_, "-o", step, "--chip", "host", "--from-logos", step}), 2,
                 {"the input itself"});
  EXPECT_EQ(read_file(other), read_file(model_));
  EXPECT_EQ(read_file(step), "## Main\n");
}

TEST_F(Lanec, APipeIsNotReplacedByAFile) {
  const std::string pipe = folder_ / "pipe.txt";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refusal(lanec({"compile", model_, "-o", pipe, "--chip", "host"}), 5, {"no regular file"});
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Lanec, LogitsAreNotWrittenOverACheckpoint) {
  const std::string before = read_file(model_);
  const Outcome outcome = lanec({"run", model_, "--tokens", "5", "-n", "1", "--dump-logits", model_});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("lanec: Usage: ", 0), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find("would be written over"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_file(model_), before);
}

TEST_F(Lanec, AFolderIsNoWrittenStep) { expect_refusal(compile({"--from-logos", folder_.path()}), 5, {"is a folder"}); }

TEST_F(Lanec, AMissingOutputFolderIsSaidBeforeAnyWork) {
  const Outcome outcome = lanec({"compile", folder_ / "absent.gguf", "-o", folder_ / "no/m.cu"});
  expect_refusal(outcome, 5, {"no such folder"});
}

TEST_F(Lanec, UsageIsExitTwo) {
  expect_refusal(lanec({}), 2, {"subcommand"});
  expect_refusal(lanec({"compile"}), 2, {"model"});
  expect_refusal(lanec({"compile", model_}), 2, {"-o FILE"});
  expect_refusal(lanec({"frobnicate"}), 2, {"frobnicate"});
  expect_refusal(compile({"--nonsense"}), 2, {"--nonsense"});
  expect_refusal(compile({"--ctx", "-3"}), 2, {"--ctx"});
  expect_refusal(compile({"--ctx", "x"}), 2, {"--ctx"});
  expect_refusal(compile({"--kv", "f8"}), 2, {"--kv"});
  expect_refusal(compile({"--activations", "int4"}), 2, {"--activations"});
  expect_refusal(compile({"--prefill", "3"}), 2, {"Chunk", "3 rows"});
  expect_refusal(compile({"--prefill", "-2"}), 2, {"Chunk"});
  expect_refusal(compile({"--prefill", "0"}), 2, {"Chunk", "0 rows"});
  expect_refusal(compile({"--prefill", "1024"}), 2, {"Chunk", "1024 rows", "context 2048", "up to 512"});
  expect_refusal(compile({"--prefill", "32", "--ctx", "24"}), 2, {"Chunk", "32 rows", "context 24", "up to 16"});
  expect_refusal(compile({"--batch", "0"}), 2, {"Batch"});
  expect_refusal(compile({"--batch", "1"}), 2, {"Batch", "a batch of 1"});
  expect_refusal(compile({"--batch", "65536"}), 2, {"Batch", "a batch of 65536", "2 to 65535"});
  expect_refusal(compile({"--batch", "x"}), 2, {"--batch 'x': expected an integer\n"});
  expect_refusal(compile({"--ctx", "0"}), 2, {"--ctx '0': expected an integer from 1\n"});
  expect_refusal(compile({"--mem-bytes", "0"}), 2, {"--mem-bytes '0': expected a number of bytes from 1"});
  expect_refusal(lanec({"compile", model_, "--emit", "ast"}), 2, {"stage 'ast'", "residence"});
  expect_refusal(lanec({"compile", model_, "--chip", "host", "--emit", "plan", "--batch", "3", "--form", "b9"}), 2,
                 {"form 'b9'; this compile makes 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, b3\n"});
  for (const char* stage : {"arena", "residence", "cu"})
    expect_refusal(lanec({"compile", model_, "--chip", "host", "--emit", stage, "--form", ""}), 2, {"form ''"});
  expect_refusal(compile({"--form", "1"}), 2, {"--form requires --emit"});
  expect_refusal(lanec({"compile", model_, "-o", output_, "--chip", "sm_42"}), 2, {"sm_42", "sm_90", "host"});
}

TEST_F(Lanec, SymbolPrefixesAreIdentifiers) {
  for (const char* bad : {"", "1st", "a b", "a-b", "_x", "a__b", "int", "std", "caf\xc3\xa9"}) {
    expect_refusal(compile({std::string("--symbol-prefix=") + bad}), 2, {"symbol"});
  }
  EXPECT_EQ(compile({"--symbol-prefix", "tiny_2"}).code, 0);
  EXPECT_NE(read_file(output_).find("int tiny_2_open("), std::string::npos);
}

TEST_F(Lanec, BadCheckpoints) {
  const auto refused = [&](const std::string& bytes, int code, std::initializer_list<std::string_view> parts) {
    write_file(model_, bytes);
    expect_refusal(compile({}), code, parts);
  };
  const std::string sound = read_file(model_);
  refused("", 3, {"m.gguf"});
  refused(sound.substr(0, 100), 3, {"m.gguf", "at byte"});
  refused(sound.substr(0, sound.size() - 1), 3, {"m.gguf"});
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", 3, {"LFS"});
  fs::remove(model_);
  expect_refusal(compile({}), 5, {"m.gguf"});
}

TEST_F(Lanec, UnknownArchitecture) {
  nlohmann::json recipe = load_case("llama-f32").recipe;
  recipe["architecture"] = "tortoise";
  write_checkpoint(recipe, model_);
  expect_refusal(compile({}), 4, {"NotYet", "tortoise", "llama"});
}

TEST_F(Lanec, InspectAndTokenize) {
  const Outcome text = lanec({"inspect", model_});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("general.architecture"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(lanec({"inspect", model_, "--json"}).out).contains("metadata"));
  const Outcome ids = lanec({"tokenize", model_, "-p", "a b"});
  EXPECT_EQ(ids.code, 0) << ids.err;
  EXPECT_TRUE(nlohmann::json::parse(ids.out).is_array());
  expect_refusal(lanec({"tokenize", model_}), 2, {"-p"});
  expect_refusal(lanec({"inspect", folder_ / "absent"}), 5, {"absent"});
}

TEST_F(Lanec, RunContinuesAsTheGoldenDoes) {
  const GoldenCase golden = load_case("llama-f32");
  const std::string prompt = fmt::format("{}", fmt::join(golden.prompt_ids, ","));
  const std::string count = std::to_string(golden.greedy_ids.size());
  for (const bool f64 : {false, true}) {
    std::vector<std::string> words = {"run", model_, "--tokens", prompt, "-n", count, "--kv", "f32", "--json"};
    if (f64) words.push_back("--f64");
    const Outcome outcome = lanec(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_GT(compare_answer(golden, outcome.out, GoldenBounds().tie), 0);
  }
}

TEST_F(Lanec, SupportExitsWithTheVerdict) {
  const Outcome sound = lanec({"inspect", model_, "--support"});
  EXPECT_EQ(sound.code, 0) << sound.err;
  nlohmann::json recipe = load_case("llama-f32").recipe;
  recipe["architecture"] = "tortoise";
  write_checkpoint(recipe, model_);
  const Outcome unknown = lanec({"inspect", model_, "--support"});
  EXPECT_EQ(unknown.code, 4) << unknown.err;
  EXPECT_NE(unknown.out.find("tortoise"), std::string::npos) << unknown.out;
  write_file(model_, "GGUF");
  expect_refusal(lanec({"inspect", model_, "--support"}), 3, {"m.gguf"});
  expect_refusal(lanec({"inspect", model_, "--support", "--json"}), 2, {"--support"});
}

TEST_F(Lanec, AFullDiskIsNoSuccess) {
  for (const char* words :
       {"--help", "--version", "compile --help", "run --help", "tokenize --help", "inspect $M", "tokenize $M -p x",
        "run $M --tokens 5 -n 1", "run $M --tokens 5 -n 1 --json", "compile $M --chip host --emit plan"}) {
    const std::string command = fmt::format("M='{}'; '{}' {} >/dev/full", model_, LANEC, words);
    const Outcome outcome = run_process({"/bin/sh", "-c", command});
    expect_refusal(outcome, 5, {"lanec: Io: standard output", "No space left"});
  }
}

TEST_F(Lanec, RunRefusesAsAProgramDoes) {
  expect_refusal(lanec({"run", model_}), 2, {"no prompt"});
  expect_refusal(lanec({"run", model_, "--tokens", "1", "--nonsense"}), 2, {"--nonsense"});
  expect_refusal(lanec({"run", model_, "--tokens", "1,2,3", "--ctx", "2"}), 2, {"3 tokens"});
  expect_refusal(lanec({"run", model_, "--tokens", "99999"}), 2, {"99999"});
  expect_refusal(lanec({"run", folder_ / "absent", "--tokens", "1"}), 5, {"absent"});
  write_file(folder_ / "prompts", "{\"tokens\": [1], \"n\": 0.5}\n");
  const Outcome refused = lanec({"run", model_, "--prompts", folder_ / "prompts"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "{\"error\": \"Usage: n '0.5': expected an integer from 0 to 2147483647\"}\n");
}

TEST_F(Lanec, Version) {
  const Outcome outcome = lanec({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.rfind("lanec 0.", 0), 0u);
}

TEST_F(Lanec, BuildSaysWhatItRunsAndFailsWithTheCompiler) {
  const Outcome outcome =
      run_process({"/usr/bin/env", "CXX=/bin/false", LANEC, "build", model_, "-o", folder_ / "m", "--chip", "host"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_NE(outcome.err.find("lanec: /bin/false -std=c++17"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(" -ffp-contract=off "), std::string::npos) << "bits depend on it";
  EXPECT_NE(outcome.err.find("/bin/false failed (status 1)"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(folder_ / "m"));
}

}  // namespace
}  // namespace lane::test
