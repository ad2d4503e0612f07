// The checkpoint as text: metadata, tensors, totals by type.
#include <fmt/format.h>

#include "parts.h"
#include "totals.h"

namespace lane {
namespace {

constexpr uint64_t kShownElements = 8;

std::string text(MetaType type, const MetaValue& value);

std::string array_text(const MetaArray& array) {
  const auto shown = first_elements(array, kShownElements);
  std::string out;
  for (const MetaValue& element : shown) out += (out.empty() ? "" : ", ") + text(array.element, element);
  if (shown.size() < array.count) out += fmt::format("{}… {} in all", out.empty() ? "" : ", ", array.count);
  return fmt::format("[{}]", out);
}

std::string text(MetaType type, const MetaValue& value) {
  struct {
    MetaType type;
    std::string operator()(uint64_t v) const { return std::to_string(v); }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{}", type == MetaType::F32 ? shortest_real(v) : v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::string_view v) const { return fmt::format("\"{}\"", printable(v)); }
    std::string operator()(const MetaArray& v) const { return array_text(v); }
  } as_text{type};
  return std::visit(as_text, value);
}

std::string shape_text(const TensorInfo& t) {
  std::string out = "scalar";
  for (int i = 0; i < t.dims; i++) out = i ? fmt::format("{} x {}", out, t.ne[i]) : std::to_string(t.ne[i]);
  return out;
}

std::string totals_text(const Checkpoint& checkpoint) {
  std::string out;
  for (const auto& [id, total] : totals(checkpoint))
    out += fmt::format("total {}: {} tensors, {} elements, {} bytes\n", find_format(id)->name, total.tensors,
                       total.elements, total.bytes);
  return out;
}

}  // namespace

std::string value_text(const MetaEntry& entry) { return text(entry.type, entry.value); }

std::string to_text(const Checkpoint& checkpoint) {
  std::string out;
  for (const Shard& shard : checkpoint.shards)
    out += fmt::format("gguf version {}: {} bytes, data from {}, alignment {}\n", shard.version, shard.file_bytes,
                       shard.data_start, shard.alignment);
  for (const MetaEntry& entry : checkpoint.metadata)
    out += fmt::format("{}: {} = {}\n", printable(entry.key), type_name(entry), value_text(entry));
  for (const TensorInfo& t : checkpoint.tensors)
    out += fmt::format("tensor {}: {} {}, {} bytes at {} of shard {}\n", printable(t.name), t.format->name,
                       shape_text(t), t.bytes, t.offset, t.shard);
  return out + totals_text(checkpoint);
}

}  // namespace lane
