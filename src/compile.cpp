#include "lane/compile.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "lane/error.h"

namespace lane {
namespace {

/// Verifies a product, shows it to whoever watches, and passes it on. `context`: what its verify and to_text take
/// besides.
class Stages {
 public:
  explicit Stages(const StageHook& hook) : hook_(hook) {}

  template <class Product, class... Context>
  Product operator()(std::string_view stage, std::string_view tag, Product product, const Context&... context) const {
    verify(product, context...);
    show(stage, tag, [&] { return text_of(product, context...); });
    return product;
  }
  void show(std::string_view stage, std::string_view tag, const std::function<std::string()>& text) const {
    if (hook_) hook_(stage, tag, text);
  }

 private:
  static std::string text_of(const auto& product, const auto&... context) {
    if constexpr (requires { to_text(product, context...); }) {
      return to_text(product, context...);
    } else {
      return to_text(product);
    }
  }

  const StageHook& hook_;
};

const Chip& chip_named(const std::string& name) {
  if (const Chip* chip = find_chip(name)) return *chip;
  std::string names;
  for (const Chip& chip : chips()) names += (names.empty() ? "" : ", ") + std::string(chip.name);
  throw UsageError(fmt::format("chip '{}'; accepted are {}", printable(name), names));
}

/// The host chip runs the streamed kernels' portable bodies: slowly, so that is asked for.
void check_stream(const Options& options, const Chip& chip) {
  if (!options.stream.value_or(false) || chip.bulk_copy || chip.capability == 0) return;
  throw UsageError(fmt::format("--stream on {}, which has no bulk copies", chip.name));
}

/// The prefix becomes a namespace and the beginning of function names.
void check_prefix(const std::string& prefix) {
  auto letter = [](char c) { return c == '_' || std::isalpha(static_cast<unsigned char>(c)); };
  auto word = [&](char c) { return letter(c) || std::isdigit(static_cast<unsigned char>(c)); };
  // Names that a C++ compiler or its libraries have taken, among those a person might choose.
  static const std::set<std::string> kTaken = {
      "alignas",   "asm",     "auto",     "bool",    "break",   "case",      "catch",    "char",     "class",
      "const",     "default", "delete",   "do",      "double",  "else",      "enum",     "explicit", "export",
      "extern",    "false",   "float",    "for",     "friend",  "goto",      "if",       "inline",   "int",
      "linux",     "long",    "main",     "mutable", "new",     "namespace", "noexcept", "operator", "private",
      "protected", "public",  "register", "return",  "short",   "signed",    "sizeof",   "static",   "std",
      "struct",    "switch",  "template", "this",    "throw",   "true",      "try",      "typedef",  "typename",
      "union",     "unix",    "unsigned", "using",   "virtual", "void",      "volatile", "while",    "host_chip"};
  const bool sound = !prefix.empty() && letter(prefix[0]) && std::all_of(prefix.begin(), prefix.end(), word) &&
                     prefix.find("__") == std::string::npos && prefix[0] != '_';
  if (sound && !kTaken.contains(prefix)) return;
  throw UsageError(
      fmt::format("symbol prefix '{}'; accepted are letters, digits and single underscores, a letter first, "
                  "and no word of C++",
                  printable(prefix)));
}

/// The model's own program: that it lifts is our promise, so a refusal is a fault of ours.
StepGraph lift_authored(const Cut& cut) {
  try {
    return lift(parse_logos(cut.text));
  } catch (const Error& e) {
    throw InternalError(fmt::format("the authored step {} does not lift: {}", cut.tag(), e.what()));
  }
}

/// A batch's text says every sequence's statements. A long one is not begun where the chip cannot hold the sequences.
void check_batch_memory(const Cut& decode, int64_t sequences, const Lane& lane, const Chip& chip) {
  constexpr int64_t kLongText = 16 << 20;
  if (sequences > kMaxBatch || sequences * int64_t(decode.text.size()) < kLongText) return;
  const StepGraph graph = lift_authored(decode);
  const Weights weights = place_weights({&graph}, lane.checkpoint, lane.options);
  check_state_bytes(plan(decode, graph, weights, lane.options, chip), sequences, lane.options, chip);
}

/// The steps that the options ask for, the decode step first.
std::vector<Cut> cuts(const ModelProgram& program, const Lane& lane, const Chip& chip) {
  const Options& options = lane.options;
  std::vector<Cut> all{cut(program, FormKind::Decode, 1)};
  const int64_t longest = longest_chunk(program.spec.ctx), most = options.prefill.value_or(longest);
  if (most < 1) throw ChunkError(most, program.spec.ctx, longest);
  for (int64_t rows = most; rows > 1; rows /= 2) all.push_back(cut(program, FormKind::Prefill, rows));
  if (options.batch) {
    check_batch_memory(all.front(), *options.batch, lane, chip);
    all.push_back(cut(program, FormKind::Batch, *options.batch));
  }
  return all;
}

std::string digest_of(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// A decode step in a person's own words: the text is the whole program and its only cut.
Form written_form(const std::string& logos_text, int64_t ctx, const Stages& stage) {
  const SyntaxTree tree = parse_logos(logos_text);
  Form form;
  form.cut.text = to_text(tree);
  const std::string digest = digest_of(form.cut.text);
  form.cut.identity = {FormKind::Decode, 1, ctx, digest, digest};
  stage.show("logos", form.cut.tag(), [&] { return form.cut.text; });
  form.graph = stage("graph", form.cut.tag(), lift(tree));
  return form;
}

Form authored_form(const Cut& cut, const ModelProgram& program, const Stages& stage) {
  Form form;
  form.cut = stage("logos", cut.tag(), cut, program);
  form.graph = stage("graph", cut.tag(), lift_authored(cut));
  return form;
}

std::vector<Form> make_forms(const Lane& lane, const std::string& logos_text, const Chip& chip, const Stages& stage) {
  if (!logos_text.empty()) {
    std::vector<Form> forms;
    forms.push_back(written_form(logos_text, lane.options.ctx, stage));
    return forms;
  }
  const ModelProgram program = author(lane.spec);
  std::vector<Form> forms;
  for (const Cut& c : cuts(program, lane, chip)) forms.push_back(authored_form(c, program, stage));
  return forms;
}

template <class T>
std::vector<const T*> each(const std::vector<Form>& forms, T Form::*member) {
  std::vector<const T*> list;
  for (const Form& form : forms) list.push_back(&(form.*member));
  return list;
}

}  // namespace

Lane compile(const std::filesystem::path& checkpoint, const Options& options, const std::string& logos_text,
             const StageHook& hook) {
  const Stages stage(hook);
  const Chip& chip = chip_named(options.chip);
  check_stream(options, chip);
  check_prefix(options.symbol_prefix);
  Lane lane;
  lane.options = options;
  lane.checkpoint = stage("gguf", "", read_checkpoint(checkpoint));
  lane.spec = stage("spec", "", describe_model(lane.checkpoint, options));
  lane.options.ctx = lane.spec.ctx;
  lane.forms = make_forms(lane, logos_text, chip, stage);
  // From here on the architecture is no longer known: only ops are.
  lane.weights = stage("weights", "", place_weights(each(lane.forms, &Form::graph), lane.checkpoint, lane.options),
                       lane.checkpoint);
  for (Form& form : lane.forms) {
    const std::string tag = form.cut.tag();
    form.schedule = stage("plan", tag, plan(form.cut, form.graph, lane.weights, lane.options, chip), lane.weights);
    form.branches = stage("branches", tag, branch(form.schedule, lane.options, chip), form.schedule);
    form.arena = allocate(form.schedule, form.branches);
    verify(form.arena, form.schedule, form.branches);
    stage.show("arena", tag, [&] { return to_text(form.arena, form.schedule); });
  }
  stage.show("rules", "", [&] { return rules_text(each(lane.forms, &Form::schedule)); });
  lane.residence =
      stage("residence", "",
            reside(each(lane.forms, &Form::schedule), each(lane.forms, &Form::arena), lane.weights, lane.options, chip),
            lane.weights);
  return lane;
}

}  // namespace lane
