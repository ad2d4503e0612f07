#include "commands.h"
#include "lane/error.h"
#include "lane/inspect.h"
#include "lane/support.h"
#include "lane/vocabulary.h"
#include "runtime/command_line.h"
#include "runtime/generate.h"
#include "runtime_status.h"

namespace lane::tools {

namespace rt = LANE_NAMESPACE;

int inspect_command(const InspectArguments& arguments) {
  if (arguments.support) {
    Options options;
    options.pre = arguments.pre;
    const Support found = support(arguments.model, options);
    print(to_text(found));
    return found.reasons.empty() ? 0 : int(ExitCode::NotSupported);
  }
  const Checkpoint checkpoint = read_checkpoint(arguments.model);
  print(arguments.json ? inspect_json(checkpoint) : to_text(checkpoint) + left_out_text(checkpoint));
  return 0;
}

void tokenize_command(const std::vector<std::string>& words) {
  rt::RunOptions options;
  check(rt::parse_command_line(words, rt::kLanecTokenize, &options));
  if (options.help) return print(rt::usage_text("lanec tokenize", rt::kLanecTokenize));
  std::string text;
  check(rt::prompt_text(options, &text));
  const Checkpoint checkpoint = read_checkpoint(options.model);
  const Vocabulary vocabulary = read_vocabulary(checkpoint, describe_vocabulary(checkpoint, options.pre));
  print(tokenize_json(vocabulary, text, options.bos, options.specials) + "\n");
}

}  // namespace lane::tools
