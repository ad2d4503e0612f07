// The `##` headers of a LOGOS text: which lines are code.
#include <algorithm>
#include <array>
#include <string>

#include "lane/error.h"
#include "lexer.h"

namespace lane::logos {
namespace {

constexpr std::string_view kSpace = " \t";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string lowered(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return out;
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. Both are short.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = int(i + j);
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

bool is_near(std::string_view word, std::string_view header) {
  return word.size() <= 8 && edit_distance(lowered(word), lowered(header)) <= 1;
}

enum class Section { None, Note, Main };

/// What the header `## TITLE` opens. Other titles are prose, as in LOGOS, unless they are code there or a slip of ours.
Section section_of(std::string_view title, int line, int column) {
  if (title == "Main") return Section::Main;
  if (title == "Note") return Section::Note;
  const std::string_view word = title.substr(0, title.find_first_of(kSpace));
  for (std::string_view header : {"Main", "Note"})
    if (word == title ? is_near(word, header) : word == header)
      throw ParseError(line, column,
                       "header '## " + printable(title) + "'; did you mean '## " + std::string(header) + "'?");
  constexpr std::array kCode = {"To", "A", "An", "No", "Requires", "Definition", "Theorem", "Proof", "Policy"};
  if (std::find(kCode.begin(), kCode.end(), word) != kCode.end())
    throw ParseError(
        line, column,
        "header '## " + printable(title) + "' is not part of a step; accepted are '## Note' and '## Main'");
  return Section::Note;
}

std::string_view next_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::vector<Line> main_lines(std::string_view text) {
  std::vector<Line> code;
  Section section = Section::None;
  bool main_seen = false;
  int number = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::string_view body = trim(line);
    const int column = body.empty() ? 1 : int(body.data() - line.data()) + 1;
    ++number;
    if (body.starts_with("##")) {
      const std::string_view title = trim(body.substr(2));
      if (body.size() == 2 || kSpace.find(body[2]) == kSpace.npos)
        throw ParseError(number, column, "header '" + printable(body) + "'; write '## Main' or '## Note'");
      section = section_of(title, number, column);
      if (section == Section::Main && main_seen) throw ParseError(number, column, "a second '## Main'");
      main_seen |= section == Section::Main;
    } else if (section == Section::Main) {
      code.push_back({line, number});
    } else if (section == Section::None && !body.empty() && body[0] != '#') {
      throw ParseError(number, column,
                       "found '" + printable(body, 24) + "' before any header; a step starts with '## Main'");
    }
  }
  if (!main_seen) throw ParseError(number + 1, 1, "the text ends without a '## Main'");
  return code;
}

}  // namespace lane::logos
