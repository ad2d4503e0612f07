// The parser and printer of LOGOS: what is accepted, what is refused and where, and that the two are inverse.
#include "lane/logos.h"

#include <gtest/gtest.h>

#include <limits>

#include "lane/error.h"
#include "lane/ops.h"

namespace lane {
namespace {

SyntaxTree parse_main(const std::string& body) { return parse_logos("## Main\n" + body); }

void expect_refused(const std::string& text, const std::string& message) {
  try {
    parse_logos(text);
    FAIL() << "accepted: " << text;
  } catch (const ParseError& e) {
    EXPECT_EQ(std::string(e.what()), "Parse: " + message) << text;
    EXPECT_EQ(e.exit_code(), ExitCode::Usage);
  }
}

TEST(ParseLogos, ReadsEveryStatement) {
  const SyntaxTree tree = parse_logos(
      "## Note\nAny prose: even (this) 1,2 \x01.\n\n## Main\n# constants\n"
      "Let w be a new Quantized with rows 256 and columns 64.\n"
      "Let mutable keys_0 be a new Carried with rows 32 and columns 32.  Let tok be a new Input. # two on a line\n"
      "\tLet x be item (tok + 1) of w.\r\n"
      "Let h be the rms norm of x with epsilon 1e-6.\n"
      "Set items (pos_s0 + 1) through (pos_s0 + 4) of keys_0 to h.\n"
      "Let r be [h, x].\nLet y be item 2 of r.\nShow y.\n");
  ASSERT_EQ(tree.statements.size(), 9u);
  EXPECT_EQ(tree.statements[1].line, 7);
  EXPECT_TRUE(tree.statements[1].is_mutable);
  EXPECT_EQ(tree.statements[3].line, 8);
  const Operand write{.name = "keys_0", .indexed = true, .from = {"pos_s0", 1}, .through = {"pos_s0", 4}};
  EXPECT_EQ(tree.statements[5].target, write);
  const auto& norm = std::get<PhraseValue>(tree.statements[4].value);
  EXPECT_EQ(norm.phrase, "rms norm");
  EXPECT_EQ(norm.options, (std::vector<OptionText>{{"epsilon", 1e-6, false}}));
  EXPECT_EQ(std::get<ListValue>(tree.statements[6].value).names, (std::vector<std::string>{"h", "x"}));
}

TEST(ParseLogos, CallAndPhraseGiveOneTree) {
  const std::pair<const char*, const char*> spellings[] = {
      {"rmsNorm(x_0, norm_a_0, 64, 0.000001)", "the rms norm of x_0 and norm_a_0 with width 64 and epsilon 0.000001"},
      {"rmsNorm(x_0, norm_a_0, 0.000001)", "the rms norm of x_0 and norm_a_0 with epsilon 0.000001"},
      {"rmsNorm(x_0, 0, 0.000001)", "the rms norm of x_0 with epsilon 0.000001"},
      {"matrixProduct(w, item 4 of x)", "the matrix product of w and item 4 of x"},
      {"attention(q, k, v, pos, 4, 2, 16, 0, 0.25, 16, 0)",
       "the attention of q and k and v and pos with scale 0.25 and window 16 and heads 4 and groups 2 and width 16"},
      {"headSlice(x, 1, 256, 65, 128)", "the head slice of x with heads 1 and width 256 and from 65 and through 128"},
  };
  for (const auto& [call, phrase] : spellings) {
    const Statement a = parse_main(std::string("Let y be ") + call + ".").statements.at(0);
    const Statement b = parse_main(std::string("Let y be ") + phrase + ".").statements.at(0);
    EXPECT_EQ(std::get<PhraseValue>(a.value), std::get<PhraseValue>(b.value)) << call;
  }
}

TEST(ParseLogos, EveryPhraseHasACall) {
  for (const OpRow& row : op_rows()) {
    EXPECT_EQ(&op_row(row.kind), &row);
    if (row.phrase.empty()) continue;
    std::string call = "Let y be " + std::string(row.call) + "(a0",
                phrase = "Let y be the " + std::string(row.phrase) + " of a0";
    for (int i = 1; i < row.min_operands; ++i) {
      call += ", a" + std::to_string(i);
      phrase += " and a" + std::to_string(i);
    }
    const char* word = " with ";
    for (OptionKey key : all_options(row)) {
      call += ", 7";
      phrase += word + std::string(option_name(key)) + " 7";
      word = " and ";
    }
    EXPECT_EQ(to_text(parse_main(call + ").")), "## Main\n" + phrase + ".\n");
    EXPECT_EQ(to_text(parse_main(phrase + ".")), "## Main\n" + phrase + ".\n");
  }
}

TEST(ParseLogos, RefusesHeaders) {
  expect_refused("## Mian\nShow x.\n", "line 1, column 1: header '## Mian'; did you mean '## Main'?");
  expect_refused("  ## main\n", "line 1, column 3: header '## main'; did you mean '## Main'?");
  expect_refused("## Nota\n## Main\n", "line 1, column 1: header '## Nota'; did you mean '## Note'?");
  expect_refused("##Main\n", "line 1, column 1: header '##Main'; write '## Main' or '## Note'");
  expect_refused("## Main x\n", "line 1, column 1: header '## Main x'; did you mean '## Main'?");
  expect_refused(
      "## To f (a: Int):\n",
      "line 1, column 1: header '## To f (a: Int):' is not part of a step; accepted are '## Note' and '## Main'");
  expect_refused("## Main\n## Main\n", "line 2, column 1: a second '## Main'");
  expect_refused("# only this\n", "line 2, column 1: the text ends without a '## Main'");
  expect_refused("", "line 1, column 1: the text ends without a '## Main'");
  expect_refused("Show x.\n## Main\n",
                 "line 1, column 1: found 'Show x.' before any header; a step starts with '## Main'");
}

TEST(ParseLogos, OtherHeadersAreProse) {
  EXPECT_EQ(parse_logos("## Background\nnot code (\n## Main\nShow x.\n## Afterword\nnor this\n").statements.size(), 1u);
}

TEST(ParseLogos, RefusesLexerTraps) {
  expect_refused("## Main\nLet y be softcap(x, 1,2).\n",
                 "line 2, column 21: '1,…' is one number to LOGOS; write a space after the comma");
  expect_refused("## Main\nLet y be item (tok-1) of x.\n",
                 "line 2, column 16: 'tok-…' is one word to LOGOS; put spaces around the operator");
  expect_refused("## Main\nLet y be item (tok -1) of x.\n", "line 2, column 20: expected '+' or '-', found '-1'");
  expect_refused("## Main\nLet y be item 1/2 of x.\n",
                 "line 2, column 15: '1/…' is one word to LOGOS; put spaces around the operator");
  expect_refused("## Main\nLet y be item 50ms of x.\n", "line 2, column 15: '50m…' is neither a number nor a name");
  expect_refused("## Main\nLet y be item 0xff of x.\n", "line 2, column 15: '0x…' is neither a number nor a name");
}

TEST(ParseLogos, RefusesStatements) {
  expect_refused("## Main\nRepeat for i from 1 to 3:\n",
                 "line 2, column 1: 'Repeat' starts no statement of a step; a statement is Let, Set or Show");
  expect_refused("## Main\nShow x\n", "line 2, column 7: expected '.', found the end");
  expect_refused(
      "## Main\nLet x be 5.\n",
      "line 2, column 10: expected a value: 'the <phrase> of …', a call, 'item … of …', '[…]' or a name, found '5'");
  expect_refused("## Main\nLet z be x + y.\n",
                 "line 2, column 12: '+' is LOGOS's own; arrays take phrases, as 'the elementwise sum of x and y'");
  expect_refused("## Main\n\n  Let of be x.\n",
                 "line 3, column 7: 'of' is a word of the language and cannot be a name");
  expect_refused("## Main\nLet omega_1 be x.\n",
                 "line 2, column 5: 'omega_1' is a number to LOGOS and cannot be a name");
  expect_refused("## Main\nLet y be item 0 of x.\n", "line 2, column 15: item 0: items count from 1");
  expect_refused("## Main\nLet y be item (tok * 2) of x.\n", "line 2, column 20: unexpected '*'");
  expect_refused("## Main\nLet y be item (tok) of x.\n", "line 2, column 19: expected '+' or '-', found ')'");
  expect_refused("## Main\nLet y be fooBar(x).\n", "line 2, column 10: unknown op 'fooBar'");
  expect_refused("## Main\nLet y be softcap(x).\n", "line 2, column 10: softcap takes 1 numbers (limit), found 0");
  expect_refused("## Main\nLet y be softcap(3, x).\n",
                 "line 2, column 21: expected a number: operands come first, found 'x'");
  expect_refused("## Main\nLet y be the softcap of x with limit.\n", "line 2, column 37: expected a number, found '.'");
  expect_refused("## Main\nLet y be [].\n", "line 2, column 11: expected a name, found ']'");
  expect_refused("## Main\nLet y be the of x.\n", "line 2, column 14: expected a phrase, found 'of'");
}

TEST(ParseLogos, ReportsTheFirstMistake) {
  expect_refused("## Main\nShow x\nLet y be item 50ms of x.\n", "line 3, column 1: expected '.', found 'Let'");
  expect_refused("## Main\nLet y be item 50ms of x.\nShow\n",
                 "line 2, column 15: '50m…' is neither a number nor a name");
}

TEST(ParseLogos, RefusesHostileText) {
  const std::string big(1 << 20, '(');
  expect_refused("## Main\nLet y be " + big,
                 "line 2, column 10: expected a value: 'the <phrase> of …', a call, 'item … of …', "
                 "'[…]' or a name, found '('");
  expect_refused("## Main\nLet y be item " + big, "line 2, column 16: expected a name, found '('");
  expect_refused(std::string("## Main\nShow x\0.", 17), "line 2, column 7: unexpected '\\x00'");
  expect_refused("## Main\nShow \xc3\xa9.", "line 2, column 6: unexpected '\\xc3'");
  expect_refused("## Main\nLet y be item 99999999999999999999 of x.",
                 "line 2, column 15: '99999999999999999999' is too large");
  expect_refused("## Main\nLet y be the softcap of x with limit 1e999.", "line 2, column 38: '1e999' is out of range");
  expect_refused("## Main\nLet y be the softcap of x with limit 9007199254740993.",
                 "line 2, column 38: '9007199254740993' is too large");
}

TEST(FloatText, IsTheShortestThatReadsBack) {
  const std::pair<double, const char*> cases[] = {
      {0.000001, "0.000001"}, {10000, "10000.0"}, {0.25, "0.25"}, {1e-9, "1e-9"},
      {1.5e20, "1.5e20"},     {-0.5, "-0.5"},     {0, "0.0"},     {1.0 / 3, "0.3333333333333333"},
      {1e16, "1e16"},         {5e-324, "5e-324"},
  };
  for (const auto& [value, text] : cases) {
    EXPECT_EQ(float_text(value), text);
    const SyntaxTree tree = parse_main("Let y be the softcap of x with limit " + float_text(value) + ".");
    EXPECT_EQ(std::get<PhraseValue>(tree.statements[0].value).options[0].value, value);
    EXPECT_FALSE(std::get<PhraseValue>(tree.statements[0].value).options[0].integer);
  }
}

TEST(LogosText, IsCanonical) {
  const SyntaxTree tree = parse_main(
      "Let   mutable k be a new Carried   with rows 4.\nLet x be item (t - 1) of w. Let z be items 1 through 2 of x.\n"
      "Set item (pos + 1) of k to x.\nLet v be item t of w.\nLet l be [x,  z].\nShow l.");
  const std::string text =
      "## Main\nLet mutable k be a new Carried with rows 4.\nLet x be item (t - 1) of w.\nLet z be items 1 through 2 "
      "of x.\n"
      "Set item (pos + 1) of k to x.\nLet v be item t of w.\nLet l be [x, z].\nShow l.\n";
  EXPECT_EQ(to_text(tree), text);
  EXPECT_EQ(to_text(parse_logos(text)), text);
  verify(tree);
}

TEST(VerifySyntaxTree, FindsDamage) {
  const SyntaxTree good = parse_main("Let y be the softcap of x with limit 30.0.\nShow y.");
  const auto damaged = [&](auto&& damage) {
    SyntaxTree tree = good;
    damage(tree);
    EXPECT_THROW(verify(tree), InternalError);
  };
  damaged([](SyntaxTree& t) { t.statements[0].target.name = "1x"; });
  damaged([](SyntaxTree& t) { t.statements[0].value = std::monostate{}; });
  damaged([](SyntaxTree& t) {
    std::get<PhraseValue>(t.statements[0].value).options[0].value = std::numeric_limits<double>::infinity();
  });
  damaged([](SyntaxTree& t) { std::get<PhraseValue>(t.statements[0].value).phrase = "soft of cap."; });
  damaged([](SyntaxTree& t) { t.statements[1].value = ListValue{{"x"}}; });
  damaged([](SyntaxTree& t) { t.statements[1].is_mutable = true; });
}

}  // namespace
}  // namespace lane
