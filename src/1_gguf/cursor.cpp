#include "cursor.h"

#include <fmt/format.h>

namespace lane {

std::span<const std::byte> Cursor::take_bytes(uint64_t count, std::string_view what) {
  if (count > left())
    fail(at_, fmt::format("the end of the file {} bytes on", left()), fmt::format("{} bytes of {}", count, what));
  const auto taken = bytes_.subspan(at_, count);
  at_ += count;
  return taken;
}

std::string_view Cursor::take_string(std::string_view what) {
  constexpr uint64_t kLongestString = uint64_t(1) << 30;
  const uint64_t start = at_, length = take<uint64_t>(what);
  if (length > kLongestString)
    fail(start, fmt::format("a length of {} for {}", length, what), fmt::format("at most {}", kLongestString));
  const auto text = take_bytes(length, what);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

}  // namespace lane
