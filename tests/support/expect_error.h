// Refusals: which type, and what the message names.
#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "lane/error.h"

namespace lane::test {

/// Expects `run` to throw an E whose message is one line and contains every part.
template <class E, class Run>
void expect_error(std::initializer_list<std::string_view> parts, Run run) {
  try {
    run();
    ADD_FAILURE() << "nothing was refused";
  } catch (const E& error) {
    const std::string message = error.what();
    for (const std::string_view part : parts)
      EXPECT_NE(message.find(part), message.npos) << "'" << part << "' is not in: " << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another refusal: " << error.what();
  }
}
template <class E, class Run>
void expect_error(std::string_view part, Run run) {
  expect_error<E>({part}, run);
}

}  // namespace lane::test
