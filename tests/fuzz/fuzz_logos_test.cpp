// Thousands of damaged step texts, the same ones in every run: each is lifted or refused with its line, and what is
// accepted is sound and prints to a text that says the same.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "lane/error.h"
#include "lane/graph.h"
#include "support/files.h"

namespace lane::test {
namespace {

/// One byte, or one word exchanged for another of the text, or a piece cut out or doubled.
std::string damaged(std::string text, std::mt19937_64& random) {
  const auto any = [&](size_t below) { return size_t(random() % below); };
  const size_t at = any(text.size()), length = std::min(text.size() - at, any(40));
  const auto word_at = [&](size_t place) {
    const size_t begin = text.find(' ', place), end = text.find(' ', begin + 1);
    return begin == text.npos || end == text.npos ? std::string_view{}
                                                  : std::string_view(text).substr(begin + 1, end - begin - 1);
  };
  switch (any(5)) {
    case 0:
      text[at] = char(any(256));
      break;
    case 1:
      text[at] = "0123456789().,[]#-+ \n"[any(21)];
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(at, text.substr(at, length));
      break;
    default: {
      const std::string_view from = word_at(at);
      const std::string to(word_at(any(text.size())));
      if (!from.empty() && !to.empty()) text.replace(size_t(from.data() - text.data()), from.size(), to);
    }
  }
  return text;
}

/// True where the text was accepted.
bool try_text(const std::string& text) {
  try {
    const SyntaxTree tree = parse_logos(text);
    verify(tree);
    const std::string canonical = to_text(tree);
    EXPECT_EQ(to_text(parse_logos(canonical)), canonical);
    const StepGraph graph = lift(tree);
    verify(graph);
    EXPECT_FALSE(to_text(graph).empty());
    return true;
  } catch (const ParseError& e) {
    EXPECT_TRUE(e.line >= 1 && e.column >= 1);
  } catch (const GraphError& e) {
    EXPECT_GE(e.line, 1);
  } catch (const ShapeError&) {
  }  // anything else fails the test
  return false;
}

TEST(FuzzLogos, DamagedTextsAreLiftedOrRefused) {
  std::mt19937_64 random(20);
  int accepted = 0, refused = 0;
  for (const char* name :
       {"golden/logos/qwen2.lg", "golden/logos/qwen2_b2.lg", "golden/logos/qwen2_4.lg", "golden/logos/gemma3.lg"}) {
    const std::string text = read_file(test_path(name));
    ASSERT_TRUE(try_text(text)) << name;
    for (int i = 0; i < 600; ++i) {
      std::string bad = text;
      for (size_t n = 1 + random() % 3; n > 0; --n) bad = damaged(bad, random);
      ++(try_text(bad) ? accepted : refused);
    }
  }
  // Damage to prose, comments and numbers may leave a sound text: both happen, or the damage is no test.
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace lane::test
