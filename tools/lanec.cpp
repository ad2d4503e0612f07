// The command line of lanec: what each option means, and the only place that catches.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <new>
#include <sstream>

#include "commands.h"
#include "lane/error.h"
#include "runtime/command_line.h"
#include "runtime_status.h"

namespace lane::tools {

namespace rt = LANE_NAMESPACE;

namespace {

const std::map<std::string, Activations> kActivations = {
    {"f32", Activations::F32}, {"int8x2", Activations::Int8x2}, {"int8", Activations::Int8}};
const std::map<std::string, KvType> kKvTypes = {{"f16", KvType::F16}, {"f32", KvType::F32}, {"q8_0", KvType::Q8_0}};

/// One word of a fixed list, mapped to its value.
template <class T>
void add_choice(CLI::App* command, const char* name, const std::map<std::string, T>& choices, T& value,
                const std::string& what) {
  std::vector<std::string> words;
  for (const auto& [word, ignored] : choices) words.push_back(word);
  command
      ->add_option_function<std::string>(
          name, [&](const std::string& word) { value = choices.at(word); }, what)
      ->check(CLI::IsMember(words));
}

/// An integer from `low`, spelled and refused as a program's own options are.
template <class T>
void add_integer(CLI::App* command, const std::string& name, int64_t low, T& value, const std::string& what) {
  command->add_option_function<std::string>(
      name,
      [&value, name, low](const std::string& word) {
        int64_t number = 0;
        check(rt::command_line_detail::parse_integer(name, printable(word), low, INT64_MAX, &number));
        value = number;
      },
      what);
}

void add_compile_options(CLI::App* command, CompileArguments& a) {
  Options& o = a.options;
  command->add_option("model", a.model, "GGUF checkpoint; of a split one, its first file")->required();
  command->add_option("-o,--output", a.output, "file to write");
  command->add_option("--sidecar", a.sidecar, "where the sidecar goes (default: beside the output, .lane)");
  command->add_option("--from-logos", a.from_logos, "a decode step written by hand, instead of the model's own");
  command->add_option("--chip", o.chip, "chip to plan for (default sm_90); 'host' is the CPU");
  add_integer(command, "--ctx", 1, o.ctx, "positions of the context (default: the smaller of the model's and 4096)");
  add_integer(command, "--prefill", INT64_MIN, o.prefill,
              "longest prompt chunk, a power of two up to 512 and the context (default: the longest); 1: none");
  add_integer(command, "--batch", INT64_MIN, o.batch, "sequences of the batch step, 2 to 65535 (default: none)");
  add_choice(command, "--activations", kActivations, o.activations, "how projections are computed (default int8x2)");
  add_choice(command, "--kv", kKvTypes, o.kv, "type of the attention caches (default f16)");
  command->add_option("--hold", o.hold, "a fusion rule not to apply; 'all'")->take_all();
  command->add_option("--fuse", o.fuse, "a fusion rule to apply that is not applied by itself: 'chain matrices'")
      ->take_all();
  command->add_flag_function(
      "--no-stream{false},--stream{true}", [&o](int64_t given) { o.stream = given > 0; },
      "repack matrices while loading, for kernels that stream them (default: on chips that can)");
  command->add_flag("--no-fuse-quant{false},--fuse-quant{true}", o.fuse_quant, "quantize activations apart");
  command->add_flag("--no-branches{false},--branches{true}", o.branches, "one launch after the other");
  command->add_flag("--no-cuda-graphs{false},--cuda-graphs{true}", o.cuda_graphs, "launch each step directly");
  command->add_option("--symbol-prefix", o.symbol_prefix, "namespace and C names of the program");
  command->add_option_function<std::string>(
      "--mem-bytes",
      [&](const std::string& word) {
        check(rt::command_line_detail::parse_bytes("--mem-bytes", printable(word), &o.mem_bytes));
      },
      "memory to plan for, instead of the chip's: bytes, or as in 512M, 80G");
  command->add_option("--pre", o.pre, "pre-tokenizer, instead of the checkpoint's tokenizer.ggml.pre");
}

CLI::App* add_compile(CLI::App& app, CompileArguments& a) {
  CLI::App* command = app.add_subcommand("compile", "write a checkpoint's program: model.cu and model.lane");
  add_compile_options(command, a);
  CLI::Option* emit = command->add_option("--emit", a.emit,
                                          "print a stage's product: gguf, spec, logos, graph, weights, plan, branches, "
                                          "arena, rules, residence or cu");
  command->add_option("--form", a.form, "the form whose product is printed: 1 is the decode step (default 1)")
      ->needs(emit);
  command->add_flag("--dry-run", a.dry_run, "write nothing; print what the program needs on the device");
  command->final_callback([&a] { compile_command(a); });
  return command;
}

CLI::App* add_build(CLI::App& app, CompileArguments& a) {
  CLI::App* command = app.add_subcommand("build", "compile a checkpoint and build its program");
  add_compile_options(command, a);
  command->final_callback([&a] { build_command(a); });
  return command;
}

void add_inspect(CLI::App& app, InspectArguments& a, int& exit_code) {
  CLI::App* command = app.add_subcommand("inspect", "print a checkpoint's metadata and tensors");
  command->add_option("model", a.model, "GGUF checkpoint")->required();
  CLI::Option* json = command->add_flag("--json", a.json, "as one JSON object");
  CLI::Option* support = command->add_flag("--support", a.support, "say whether it compiles, and all that it lacks");
  support->excludes(json);
  command->add_option("--pre", a.pre, "pre-tokenizer, instead of the checkpoint's tokenizer.ggml.pre")->needs(support);
  command->final_callback([&] { exit_code = inspect_command(a); });
}

/// These two have the command line of the programs themselves, which the runtime reads.
bool dispatch(int argc, char** argv) {
  if (argc < 2) return false;
  const std::string command = argv[1];
  const std::vector<std::string> words(argv + 2, argv + argc);
  if (command == "run") return run_command(words), true;
  if (command == "tokenize") return tokenize_command(words), true;
  return false;
}

void check_command(const CLI::App& app, const std::string& word) {
  if (word.empty() || word[0] == '-') return;
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  throw UsageError("command '" + printable(word) + "'; accepted are " + names);
}

int run(int argc, char** argv) {
  CLI::App app("lanec: an ahead-of-time compiler from GGUF checkpoints to CUDA programs", "lanec");
  app.set_version_flag("--version", std::string("lanec ") + LANE_VERSION);
  app.require_subcommand(1);
  CompileArguments compile_arguments, build_arguments;
  InspectArguments inspect_arguments;
  int exit_code = 0;
  add_compile(app, compile_arguments);
  add_build(app, build_arguments);
  add_inspect(app, inspect_arguments, exit_code);
  app.add_subcommand("run", "continue a prompt by the interpreter, without a GPU");
  app.add_subcommand("tokenize", "print a text's token ids as a JSON list");
  check_command(app, argc > 1 ? argv[1] : "");
  if (dispatch(argc, argv)) return 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) throw UsageError(e.what());
    std::ostringstream text;  // of --help and --version
    app.exit(e, text, text);
    print(text.str());
  }
  return exit_code;
}

}  // namespace
}  // namespace lane::tools

int main(int argc, char** argv) {
  try {
    return lane::tools::run(argc, argv);
  } catch (const lane::Error& e) {
    std::cerr << "lanec: " << e.what() << '\n';
    return static_cast<int>(e.exit_code());
  } catch (const std::bad_alloc&) {
    std::cerr << "lanec: Internal: out of memory\n";
  } catch (const std::exception& e) {
    std::cerr << "lanec: Internal: " << e.what() << '\n';
  } catch (...) {
    std::cerr << "lanec: Internal: an unknown exception\n";
  }
  return static_cast<int>(lane::ExitCode::Internal);
}
