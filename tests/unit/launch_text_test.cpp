// How an emitted program says its launches: src/11_emit/launch_text.h.
#include "11_emit/launch_text.h"

#include <gtest/gtest.h>

namespace lane {
namespace {

LaunchText product(int stream, const std::string& out, const std::string& matrix, const std::string& epsilon) {
  return {"launch", "product", "dim3(2), dim3(32), 0, product<F32>", stream, {out, matrix, "nullptr", epsilon, "640"}};
}

TEST(LaunchTexts, SayWhatDiffersAndNothingElse) {
  const LaunchTexts texts(
      {product(0, "m.arena(512)", "s.matrix(3)", "1e-05"), product(1, "m.arena(0)", "s.matrix(14)", "1e-05")});
  EXPECT_EQ(
      texts.definitions(),
      "  const auto product_1 = [&](int stream, uint64_t a0, int a1) {\n"
      "    s.launch(stream, dim3(2), dim3(32), 0, product<F32>, m.arena(a0), s.matrix(a1), nullptr, 1e-05, 640);\n"
      "  };\n");
  EXPECT_EQ(texts.call(0), "product_1(0, 512, 3);\n");
  EXPECT_EQ(texts.call(1), "product_1(1, 0, 14);\n");
}

TEST(LaunchTexts, WriteOutALaunchThatNoOtherIsLike) {
  const LaunchTexts texts({product(0, "m.arena(0)", "s.matrix(1)", "1e-05")});
  EXPECT_EQ(texts.definitions(), "");
  EXPECT_EQ(texts.call(0),
            "s.launch(0, dim3(2), dim3(32), 0, product<F32>, m.arena(0), s.matrix(1), nullptr, 1e-05, 640);\n");
}

/// Numbers with a fraction or an exponent, absent arguments, other memory, other geometry: none is a parameter.
TEST(LaunchTexts, ShareNothingWhereMoreThanIntegersDiffers) {
  LaunchText wider = product(0, "m.arena(0)", "s.matrix(1)", "1e-05");
  wider.fixed = "dim3(4), dim3(32), 0, product<F32>";
  const LaunchTexts texts(
      {product(0, "m.arena(0)", "s.matrix(1)", "1e-05"), product(0, "m.arena(0)", "s.matrix(1)", "1e-06"),
       product(0, "m.arena(0)", "m.weights(1)", "1e-05"), product(0, "nullptr", "s.matrix(1)", "1e-05"),
       product(0, "m.arena(0)", "s.matrix(1)", "0.5f"), wider});
  EXPECT_EQ(texts.definitions(), "");
}

TEST(LaunchTexts, NameEachKindOfAKernelsLaunches) {
  const LaunchTexts texts(
      {product(0, "m.arena(0)", "s.matrix(1)", "1e-05"), product(0, "nullptr", "s.matrix(1)", "1e-05"),
       product(0, "m.arena(0)", "s.matrix(1)", "1e-05"), product(0, "nullptr", "s.matrix(2)", "1e-05")});
  EXPECT_EQ(texts.call(0), "product_1();\n");
  EXPECT_EQ(texts.call(3), "product_2(2);\n");
}

}  // namespace
}  // namespace lane
