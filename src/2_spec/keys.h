// The metadata of one architecture. Look-ups go by what follows "<architecture>.", and are remembered: a key that
// nobody asked for is refused in the end, since it may change the mathematics.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lane/gguf.h"
#include "lane/refusals.h"
#include "size.h"

namespace lane {

struct Range {
  int64_t low = 1, high = int64_t{1} << 30;
};

class Keys {
 public:
  Keys(const Checkpoint& checkpoint, std::string_view architecture, Refusals& refusals)
      : checkpoint_(checkpoint), prefix_(architecture), refusals_(refusals) {
    prefix_ += '.';
  }

  // Absent: nullopt. Another type, or out of range: refused with CheckpointError; where refusals are kept, a size that
  // is not known, and nullopt of the other kinds.
  std::optional<Size> integer(std::string_view key, Range range = {});
  std::optional<double> real(std::string_view key);
  /// The same of a key that only makes sense over zero.
  std::optional<double> positive(std::string_view key);
  /// Or of zero, which says that there is none.
  std::optional<double> not_negative(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string_view> string(std::string_view key);
  /// A number for each layer, from an array or from one number for all.
  std::optional<std::vector<Size>> by_layer(std::string_view key, Size layers, Range range = {});
  /// From an array alone. Absent: nullopt.
  std::optional<std::vector<Size>> array(std::string_view key, Size count, Range range = {});

  // Absent: refused with CheckpointError. Where refusals are kept, sizes that are not known, and 1 for a real.
  Size required_integer(std::string_view key, Range range = {});
  std::vector<Size> required_by_layer(std::string_view key, Size layers, Range range = {});
  double required_positive(std::string_view key);

  bool has(std::string_view key) const { return checkpoint_.find(full(key)) != nullptr; }
  bool is_array(std::string_view key) const;
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  /// Reads nothing of the key: it is known not to matter.
  void ignore(std::string_view key) { asked_.insert(full(key)); }

  /// Refuses with NotYetError the keys of the architecture that nobody asked for.
  void refuse_the_rest() const;

  /// Whether the key is there and `value`, what was read of it, was refused.
  template <class Value>
  bool refused(std::string_view key, const std::optional<Value>& value) const {
    return !value && has(key);
  }

  /// CheckpointError at the key: the value found (whatever it is where the key is missing), and what is accepted.
  void refuse(std::string_view key, const std::string& found, const std::string& expected) const;
  /// The same of a number that another contradicts: from then on it is not known.
  Size refuse_size(std::string_view key, const std::string& found, const std::string& expected) const;
  /// The same where the file has no such key; one that is there has been refused for what it holds.
  Size refuse_missing(std::string_view key, const std::string& expected) const;

  /// Refuses with NotYetError what a key says that the architecture's row does not read, and that its models are not.
  void refuse_unread(std::string_view key, const std::string& found) const;
  /// NotYetError at a key that is there: what its value asks for.
  void refuse_meaning(std::string_view key, const std::string& meaning) const;

 private:
  bool in_range(std::string_view key, int64_t value, Range range) const;

  const Checkpoint& checkpoint_;
  std::string prefix_;
  Refusals& refusals_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace lane
