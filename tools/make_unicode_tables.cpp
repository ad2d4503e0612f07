// Writes kernels' runtime/unicode_tables.h: the class of every code point, as runs, from utf8proc's data. Run by the
// build.
#include <utf8proc.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

// The numbers are those of CharClass in runtime/unicode.h.
int class_of(utf8proc_int32_t c) {
  if ((c >= 0x9 && c <= 0xD) || c == 0x85) return 10;  // the control characters that Unicode calls white space
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
      return 1;
    case UTF8PROC_CATEGORY_LL:
      return 2;
    case UTF8PROC_CATEGORY_LT:
      return 3;
    case UTF8PROC_CATEGORY_LM:
      return 4;
    case UTF8PROC_CATEGORY_LO:
      return 5;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return 6;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return 7;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return 8;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return 9;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return 10;
    default:
      return 0;
  }
}

std::vector<uint32_t> class_runs() {
  std::vector<uint32_t> runs;
  int last = -1;
  for (utf8proc_int32_t c = 0; c <= 0x10FFFF; ++c) {
    const int now = class_of(c);
    if (now != last) runs.push_back(static_cast<uint32_t>(c) << 4 | static_cast<uint32_t>(now));
    last = now;
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* out = argc == 2 ? std::fopen(argv[1], "w") : nullptr;
  if (out == nullptr) {
    std::fprintf(stderr, "usage: make_unicode_tables FILE\n");
    return 2;
  }
  std::fprintf(out, "// Made by tools/make_unicode_tables.cpp from Unicode %s.\n", utf8proc_unicode_version());
  std::fprintf(out,
               "#pragma once\n#include <cstdint>\n\n#include \"base/namespace.h\"\n\nnamespace LANE_NAMESPACE {\n\n");
  std::fprintf(out, "// Each run of code points of one class: its first code point * 16 + the class. Ascending.\n");
  std::fprintf(out, "constexpr uint32_t kClassRuns[] = {");
  int column = 0;
  for (uint32_t run : class_runs()) std::fprintf(out, "%s0x%x,", column++ % 14 == 0 ? "\n    " : "", run);
  std::fprintf(out, "\n};\n\n}  // namespace LANE_NAMESPACE\n");
  return std::fclose(out) == 0 ? 0 : 5;
}
