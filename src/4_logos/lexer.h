// Characters to tokens, for the code lines of `## Main`. Private to this pass.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "lane/error.h"

namespace lane::logos {

/// A line of code and its 1-based number. Prose and headers are left out.
struct Line {
  std::string_view text;
  int number = 0;
};

/// The lines of `## Main`. Throws ParseError at a header that is misspelled, repeated, absent or outside the subset.
std::vector<Line> main_lines(std::string_view text);

struct Token {
  enum class Kind { Word, Integer, Float, Mark, End } kind = Kind::End;
  std::string_view text;  // a Mark is one of . , ( ) [ ] + -
  int line = 0, column = 0;
};

/// The tokens up to the end or the first mistake, then one of kind End. Comments are left out.
struct Lexed {
  std::vector<Token> tokens;
  std::optional<ParseError> mistake;  // stands where the End token does; a mistake of the parser may come before it
};
Lexed lex(const std::vector<Line>& lines);

/// Words that shape a statement, and words that LOGOS reads as numbers: neither can be a name.
bool is_keyword(std::string_view word);
bool is_number_word(std::string_view word);
/// A letter, then letters, digits and underscores; not a keyword or a number word.
bool is_name(std::string_view text);

}  // namespace lane::logos
