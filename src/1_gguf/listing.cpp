// The checkpoint as text: metadata, tensors, totals by type.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "parts.h"

namespace lane {
namespace {

constexpr uint64_t kShownElements = 8;

std::string real_text(double value) {
  // A value that a float holds is printed as the shortest that gives this float back: 0.1, not 0.10000000149.
  return double(float(value)) == value ? fmt::format("{}", float(value)) : fmt::format("{}", value);
}

std::string text(const MetaValue& value);

std::string array_text(const MetaArray& array) {
  if (array.element == MetaType::Array) return fmt::format("{} arrays", array.count);
  std::string out = "[";
  Cursor in("", array.bytes);
  for (uint64_t i = 0; i < std::min(array.count, kShownElements); i++) {
    if (i) out += ", ";
    out += array.element == MetaType::String
               ? text(in.take_string("a string"))
               : text(array_element(array.element, in.take_bytes(fixed_size(array.element), "an element")));
  }
  return out + (array.count > kShownElements ? fmt::format(", … {} in all]", array.count) : "]");
}

std::string text(const MetaValue& value) {
  struct {
    std::string operator()(uint64_t v) const { return std::to_string(v); }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return real_text(v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::string_view v) const { return '"' + printable(v) + '"'; }
    std::string operator()(const MetaArray& v) const { return array_text(v); }
  } as_text;
  return std::visit(as_text, value);
}

std::string shape_text(const TensorInfo& t) {
  std::string out = "scalar";
  for (int i = 0; i < t.dims; i++) out = i ? fmt::format("{} x {}", out, t.ne[i]) : std::to_string(t.ne[i]);
  return out;
}

struct Total {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::string totals_text(const Checkpoint& checkpoint) {
  std::map<int32_t, Total> totals;
  for (const TensorInfo& t : checkpoint.tensors) {
    Total& total = totals[t.format->id];
    total.tensors++;
    total.elements += t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3];
    total.bytes += t.bytes;
  }
  std::string out;
  for (const auto& [id, total] : totals)
    out += fmt::format("total {}: {} tensors, {} elements, {} bytes\n", find_format(id)->name, total.tensors,
                       total.elements, total.bytes);
  return out;
}

}  // namespace

std::string to_text(const Checkpoint& checkpoint) {
  std::string out;
  for (const Shard& shard : checkpoint.shards)
    out += fmt::format("gguf version {}: {} bytes, data from {}, alignment {}\n", shard.version, shard.file_bytes,
                       shard.data_start, shard.alignment);
  for (const MetaEntry& entry : checkpoint.metadata)
    out += fmt::format("{}: {} = {}\n", printable(entry.key), type_name(entry), text(entry.value));
  for (const TensorInfo& t : checkpoint.tensors)
    out += fmt::format("tensor {}: {} {}, {} bytes at {} of shard {}\n", printable(t.name), t.format->name,
                       shape_text(t), t.bytes, t.offset, t.shard);
  return out + totals_text(checkpoint);
}

}  // namespace lane
