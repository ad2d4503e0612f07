#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "commands.h"
#include "lane/error.h"
#include "lane/inspect.h"
#include "lane/vocabulary.h"

namespace lane::tools {

void inspect_command(const std::string& model, bool json) {
  const Checkpoint checkpoint = read_checkpoint(model);
  print(json ? inspect_json(checkpoint) : to_text(checkpoint));
}

void tokenize_command(const TokenizeArguments& arguments) {
  if (arguments.text_given == !arguments.file.empty()) throw UsageError("tokenize takes one of -p TEXT and -f FILE");
  std::string text = arguments.text;
  if (!arguments.file.empty()) {
    std::ifstream file(arguments.file, std::ios::binary);
    std::ostringstream bytes;
    if (file && file.peek() != std::ifstream::traits_type::eof()) bytes << file.rdbuf();
    if (!file.is_open() || file.bad() || bytes.bad()) {
      throw IoError(fmt::format("{}: cannot be read", printable(arguments.file)));
    }
    text = bytes.str();
  }
  const Checkpoint checkpoint = read_checkpoint(arguments.model);
  const VocabularySource source = describe_vocabulary(checkpoint, arguments.pre);
  const Vocabulary vocabulary = read_vocabulary(checkpoint, source);
  print(tokenize_json(vocabulary, text, !arguments.no_bos, !arguments.no_special) + "\n");
}

}  // namespace lane::tools
