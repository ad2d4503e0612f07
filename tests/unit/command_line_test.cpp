#include "runtime/command_line.h"

#include <gtest/gtest.h>

#include "runtime/escapes.h"

namespace lane::test {
namespace {

using namespace LANE_NAMESPACE;

RunOptions parsed(const std::vector<std::string>& args, CommandLine tool = kProgram) {
  RunOptions options;
  const Status status = parse_command_line(args, tool, &options);
  EXPECT_TRUE(status.ok()) << status.message;
  return options;
}

std::string refused(const std::vector<std::string>& args, CommandLine tool = kProgram) {
  RunOptions options;
  const Status status = parse_command_line(args, tool, &options);
  EXPECT_EQ(status.code, kExitUsage);
  return status.message;
}

TEST(CommandLine, TakesEveryOption) {
  const RunOptions o = parsed({"-m",
                               "model.gguf",
                               "--sidecar",
                               "model.lane",
                               "-p",
                               "-x",
                               "-n",
                               "0",
                               "--ctx=64",
                               "--temp",
                               "0.5",
                               "--top-k",
                               "3",
                               "--top-p=.9",
                               "--min-p",
                               "0.1",
                               "--seed",
                               "18446744073709551615",
                               "--json",
                               "--force",
                               "4,5",
                               "--dump-logits",
                               "rows",
                               "--no-special",
                               "--no-bos",
                               "--no-escape",
                               "--allow-weights-change",
                               "--no-cuda-graphs",
                               "--mem-bytes",
                               "1000"});
  EXPECT_EQ(o.model, "model.gguf");
  EXPECT_EQ(o.sidecar, "model.lane");
  EXPECT_EQ(o.prompt_kind, PromptKind::Text);
  EXPECT_EQ(o.prompt, "-x");
  EXPECT_EQ(o.wanted(), 0);
  EXPECT_EQ(o.ctx, 64);
  EXPECT_EQ(o.sampler.temperature, 0.5);
  EXPECT_EQ(o.sampler.top_k, 3);
  EXPECT_EQ(o.sampler.top_p, 0.9);
  EXPECT_EQ(o.sampler.min_p, 0.1);
  EXPECT_EQ(o.sampler.seed, ~uint64_t{0});
  EXPECT_EQ(o.forced, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(o.dump_logits, "rows");
  EXPECT_TRUE(o.json && o.allow_weights_change);
  EXPECT_FALSE(o.specials || o.bos || o.escapes || *o.cuda_graphs);
  EXPECT_FALSE(parsed({"-p", "a"}).cuda_graphs.has_value());
  EXPECT_TRUE(*parsed({"-p", "a", "--cuda-graphs"}).cuda_graphs);
  EXPECT_EQ(o.mem_bytes, 1000);
}

TEST(CommandLine, IsGreedyUnlessAskedToSample) {
  EXPECT_EQ(parsed({"-p", "a"}).sampler.temperature, 0);
  EXPECT_EQ(parsed({"-p", "a", "--seed", "4"}).sampler.temperature, 0);
  EXPECT_EQ(parsed({"-p", "a", "--top-p", "0.9"}).sampler.temperature, 1);
  EXPECT_EQ(parsed({"-p", "a", "--top-p", "0.9", "--temp", "0"}).sampler.temperature, 0);
}

TEST(CommandLine, TakesBytesInUnits) {
  EXPECT_EQ(parsed({"-p", "a", "--mem-bytes", "3K"}).mem_bytes, 3 << 10);
  EXPECT_EQ(parsed({"-p", "a", "--mem-bytes", "512M"}).mem_bytes, 512 << 20);
  EXPECT_EQ(parsed({"-p", "a", "--mem-bytes", "80G"}).mem_bytes, int64_t{80} << 30);
  EXPECT_EQ(parsed({"-p", "a", "--mem-bytes", "2T"}).mem_bytes, int64_t{2} << 40);
}

TEST(CommandLine, CountsWhatIsWanted) {
  EXPECT_EQ(parsed({"-p", "a"}).wanted(), 128);
  EXPECT_EQ(parsed({"-p", "a", "--force", "1,2,3"}).wanted(), 3);
  EXPECT_EQ(parsed({"-p", "a", "--force", "1,2,3", "-n", "5"}).wanted(), 5);
}

TEST(CommandLine, TakesThePromptOnce) {
  EXPECT_EQ(parsed({"--tokens", "1,0,30"}).prompt_ids, (std::vector<int32_t>{1, 0, 30}));
  EXPECT_EQ(parsed({"-f", "-"}).prompt_kind, PromptKind::File);
  EXPECT_EQ(refused({}), "Usage: no prompt given: expected -p, -f, --tokens or --prompts");
  EXPECT_EQ(refused({"-p", "a", "-f", "b"}), "Usage: only one of -p, -f, --tokens and --prompts gives the prompt");
  EXPECT_EQ(refused({"-p"}), "Usage: -p needs a value: TEXT");
}

TEST(CommandLine, LanecTakesTheModelByPosition) {
  const RunOptions run = parsed({"model.gguf", "-p", "a", "--f64", "--kv", "f32", "--pre", "qwen2"}, kLanecRun);
  EXPECT_EQ(run.model, "model.gguf");
  EXPECT_TRUE(run.f64);
  EXPECT_EQ(run.kv, "f32");
  EXPECT_EQ(run.pre, "qwen2");
  EXPECT_EQ(refused({"-p", "a"}, kLanecRun), "Usage: no MODEL given");
  EXPECT_EQ(refused({"a", "b", "-p", "c"}, kLanecRun), "Usage: stray argument 'b' (-h lists the options)");
  EXPECT_EQ(refused({"model.gguf"}, kLanecTokenize), "Usage: no text given: expected -p or -f");
  EXPECT_EQ(refused({"model.gguf", "-p", "a", "-n", "3"}, kLanecTokenize),
            "Usage: unknown option '-n' (-h lists the options)");
  EXPECT_EQ(refused({"model.gguf", "-p", "a"}), "Usage: stray argument 'model.gguf' (-h lists the options)");
  EXPECT_EQ(refused({"-p", "a", "--f64"}), "Usage: unknown option '--f64' (-h lists the options)");
}

TEST(CommandLine, RefusesValuesByName) {
  const std::string ids = "': expected token ids with commas between, as in 1,2,3";
  for (const char* bad : {"", "1,", ",1", "1,,2", "a", "-1", "1 2", "2147483648", "0x10"}) {
    EXPECT_EQ(refused({"--tokens", bad}), std::string("Usage: --tokens '") + bad + ids);
    EXPECT_EQ(refused({"-p", "a", "--force", bad}), std::string("Usage: --force '") + bad + ids);
  }
  for (const char* bad : {"", "-1", "1.5", "x", " 1", "+1", "99999999999999999999"}) {
    EXPECT_EQ(refused({"-p", "a", "-n", bad}),
              std::string("Usage: -n '") + bad + "': expected an integer from 0 to 2147483647");
  }
  EXPECT_EQ(refused({"-p", "a", "--ctx", "0"}), "Usage: --ctx '0': expected an integer from 1 to 2147483647");
  for (const char* bad : {"", "-0.1", "nan", "inf", "1e999", "0.5x"}) {
    EXPECT_EQ(refused({"-p", "a", "--temp", bad}),
              std::string("Usage: --temp '") + bad + "': expected a number from 0");
    EXPECT_EQ(refused({"-p", "a", "--top-p", bad}),
              std::string("Usage: --top-p '") + bad + "': expected a number from 0 to 1");
  }
  EXPECT_EQ(refused({"-p", "a", "--min-p", "1.01"}), "Usage: --min-p '1.01': expected a number from 0 to 1");
  for (const char* bad : {"", "0", "0M", "-1", "1.5G", "M", "1KB", "1k", "9999999T"}) {
    EXPECT_EQ(refused({"-p", "a", "--mem-bytes", bad}),
              std::string("Usage: --mem-bytes '") + bad + "': expected a number of bytes from 1, or of K, M, G or T");
  }
  EXPECT_EQ(refused({"-p", "a", "--seed", "-1"}),
            "Usage: --seed '-1': expected an integer from 0 to 18446744073709551615");
  EXPECT_EQ(refused({"a", "-p", "a", "--kv", "q9"}, kLanecRun), "Usage: --kv 'q9': expected f16, f32 or q8_0");
  EXPECT_EQ(refused({"--json=1", "-p", "a"}), "Usage: --json takes no value");
  EXPECT_EQ(refused({"--tepm", "1"}), "Usage: unknown option '--tepm' (-h lists the options)");
}

TEST(CommandLine, HelpNamesEveryOptionOfItsProgram) {
  EXPECT_TRUE(parsed({"-h"}).help);
  EXPECT_TRUE(parsed({"--help"}, kLanecRun).help);
  EXPECT_EQ(usage_text("./model", kProgram)
                .rfind("Usage: ./model (-p TEXT | -f FILE | --tokens IDS | --prompts FILE) [options]\n", 0),
            0u);
  for (const char* name : {"-m FILE", "--dump-logits FILE", "--min-p P"})
    EXPECT_NE(usage_text("x", kProgram).find(name), std::string::npos);
  EXPECT_EQ(usage_text("x", kProgram).find("--f64"), std::string::npos);
}

TEST(Escapes, StandForTheirBytes) {
  EXPECT_EQ(replace_escapes(R"(a\nb\tc\r\"\'\\n)"), "a\nb\tc\r\"'\\n");
  EXPECT_EQ(replace_escapes(R"(\x41\xFf\u0041\q\)"), "A\xFF\\u0041\\q\\");
  EXPECT_EQ(replace_escapes(R"(\x4)"), "\\x4");
  EXPECT_EQ(replace_escapes(std::string("\\\0a", 3)), std::string("\\\0a", 3));
}

TEST(Json, StringsAreAlwaysUtf8) {
  EXPECT_EQ(json_string("a\"\\\n\t\x01\x7F"), R"("a\"\\\n\u0009\u0001\u007f")");
  EXPECT_EQ(json_string("\xF0\x9F\xA6\x99\xF0\x9F"), "\"\xF0\x9F\xA6\x99\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace lane::test
