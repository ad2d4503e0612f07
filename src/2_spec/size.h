// A size of the model as its metadata says it, or the want of one: where the key is refused nothing is known of it, nor
// of what is computed from it. A compile knows all sizes, since it stops at a refusal; a survey goes on without some.
#pragma once
#include <cstdint>

namespace lane {

class Size {
 public:
  Size(int64_t value) : value_(value) {}  // NOLINT: numbers are sizes
  /// Nothing is refused for what follows from `stand_in`.
  static Size unknown(int64_t stand_in = 1) {
    Size size(stand_in);
    size.known_ = false;
    return size;
  }

  bool known() const { return known_; }
  /// Known, and this number.
  bool is(int64_t number) const { return known_ && value_ == number; }
  /// A stand-in where it is not known.
  int64_t value() const { return value_; }

  friend Size operator+(Size a, Size b) { return of(a.value_ + b.value_, a, b); }
  friend Size operator-(Size a, Size b) { return of(a.value_ - b.value_, a, b); }
  /// `b` is not 0, and neither is a stand-in.
  friend Size operator/(Size a, Size b) { return of(a.value_ / b.value_, a, b); }

 private:
  static Size of(int64_t value, Size a, Size b) { return a.known_ && b.known_ ? Size(value) : unknown(); }

  int64_t value_;
  bool known_ = true;
};

/// All of them.
template <class... Sizes>
bool known(Sizes... sizes) {
  return (sizes.known() && ...);
}

}  // namespace lane
