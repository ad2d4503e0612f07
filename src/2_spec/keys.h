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

  // Absent: nullopt. Another type, or out of range: refused with CheckpointError, and where refusals are kept nullopt.
  std::optional<int64_t> integer(std::string_view key, Range range = {});
  std::optional<double> real(std::string_view key);
  /// The same of a key that only makes sense over zero.
  std::optional<double> positive(std::string_view key);
  /// Or of zero, which says that there is none.
  std::optional<double> not_negative(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string_view> string(std::string_view key);
  /// A number for each layer, from an array or from one number for all.
  std::optional<std::vector<int64_t>> by_layer(std::string_view key, int64_t layers, Range range = {});

  // Absent: refused with CheckpointError. Where refusals are kept, the range's low end, or 1, stands for what is
  // missing.
  int64_t required_integer(std::string_view key, Range range = {});
  std::vector<int64_t> required_by_layer(std::string_view key, int64_t layers, Range range = {});
  double required_positive(std::string_view key);

  bool has(std::string_view key) const { return checkpoint_.find(full(key)) != nullptr; }
  bool is_array(std::string_view key) const;
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  /// Reads nothing of the key: it is known not to matter.
  void ignore(std::string_view key) { asked_.insert(full(key)); }

  /// Refuses with NotYetError the keys of the architecture that nobody asked for.
  void refuse_the_rest() const;

  /// CheckpointError at the key: the value found (whatever it is where the key is missing), and what is accepted.
  void refuse(std::string_view key, const std::string& found, const std::string& expected) const;
  /// The same of a number that other numbers contradict, and that sizes arrays or chooses parts: says nothing where
  /// those are doubted.
  void refuse_size(std::string_view key, const std::string& found, const std::string& expected) const;

  /// Refuses with NotYetError what a key says that the architecture's row does not read, and that its models are not.
  void refuse_unread(std::string_view key, const std::string& found) const;

 private:
  bool in_range(std::string_view key, int64_t value, Range range) const;
  /// Refuses where the file has no such key; one that is there has been refused for what it holds.
  void refuse_missing(std::string_view key, const std::string& expected) const;

  const Checkpoint& checkpoint_;
  std::string prefix_;
  Refusals& refusals_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace lane
