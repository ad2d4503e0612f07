#include <charconv>
#include <cmath>

#include "lane/ops.h"

namespace lane {

std::string float_text(double value) {
  // Plain digits where a person would write them; beyond, an exponent. Both are the shortest that read back the same.
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-7 && size < 1e16);
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (const size_t e = text.find('e'); e != text.npos) {  // the grammar has no '+' and needs no padding: 1e-07 is 1e-7
    const bool negative = text[e + 1] == '-';
    const size_t digit = text.find_first_not_of("+-0", e + 1);
    return text.substr(0, e + 1) + (negative ? "-" : "") + text.substr(digit);
  }
  return text.find('.') == text.npos ? text + ".0" : text;
}

}  // namespace lane
