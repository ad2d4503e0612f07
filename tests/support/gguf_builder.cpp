#include "support/gguf_builder.h"

namespace lane::test {
namespace {

uint64_t padded(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

/// Bytes of a tensor's data: as given, or what its shape and type need. A shape that no file could hold has none.
uint64_t data_bytes(const TensorText& tensor) {
  const Format* format = find_format(tensor.type);
  if (!tensor.data.empty() || !format) return tensor.data.size();
  uint64_t elements = 1;
  for (const int64_t extent : tensor.ne)
    if (extent < 0 || __builtin_mul_overflow(elements, uint64_t(extent), &elements)) return 0;
  constexpr uint64_t kMost = uint64_t(1) << 30;
  return elements < kMost ? format->row_bytes(elements) : 0;
}

}  // namespace

GgufText& GgufText::entry(std::string_view key, MetaType type, std::string_view value) {
  entries.push_back(Bytes().string(key).put(uint32_t(type)).raw(value).text());
  return *this;
}

GgufText& GgufText::u16(std::string_view key, uint16_t value) {
  return entry(key, MetaType::U16, Bytes().put(value).text());
}

GgufText& GgufText::u32(std::string_view key, uint32_t value) {
  return entry(key, MetaType::U32, Bytes().put(value).text());
}

GgufText& GgufText::i32(std::string_view key, int32_t value) {
  return entry(key, MetaType::I32, Bytes().put(value).text());
}

GgufText& GgufText::string(std::string_view key, std::string_view value) {
  return entry(key, MetaType::String, Bytes().string(value).text());
}

GgufText& GgufText::array(std::string_view key, MetaType element, uint64_t count, std::string_view elements) {
  return entry(key, MetaType::Array, Bytes().put(uint32_t(element)).put(count).raw(elements).text());
}

GgufText& GgufText::tensor(TensorText tensor) {
  tensors.push_back(std::move(tensor));
  return *this;
}

std::string GgufText::header() const {
  Bytes out;
  out.raw(magic).put(version);
  out.put(tensor_count.value_or(tensors.size())).put(entry_count.value_or(entries.size()));
  for (const std::string& text : entries) out.raw(text);
  uint64_t offset = 0;
  for (const TensorText& tensor : tensors) {
    out.string(tensor.name).put(uint32_t(tensor.ne.size()));
    for (const int64_t extent : tensor.ne) out.put(extent);
    out.put(tensor.type).put(tensor.offset.value_or(offset));
    offset += padded(data_bytes(tensor), alignment);
  }
  return out.text();
}

std::string GgufText::text() const {
  std::string out = header();
  if (tensors.empty()) return out;
  out.resize(padded(out.size(), alignment));
  for (const TensorText& tensor : tensors) {
    const size_t end = out.size() + data_bytes(tensor);
    out += tensor.data;
    const bool pad = pad_end || &tensor != &tensors.back();
    out.resize(pad ? padded(end, alignment) : end);
  }
  return out;
}

}  // namespace lane::test
