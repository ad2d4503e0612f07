#include "support/recipe.h"

#include <bit>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/gguf_builder.h"

namespace lane::test {
namespace {

using Json = nlohmann::json;
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

/// The numbers that a tensor's name and the seed determine.
class Sequence {
 public:
  Sequence(std::string_view name, uint64_t seed) {
    uint64_t hash = 0xCBF29CE484222325;
    for (const char c : name) hash = (hash ^ uint8_t(c)) * 0x100000001B3;
    start_ = hash ^ (seed * kGolden);
  }
  uint64_t integer(uint64_t i) const {
    uint64_t x = start_ + (i + 1) * kGolden;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  /// In (-1, 1), exact.
  double real(uint64_t i) const { return (double(integer(i) >> 40) - 8388608.0 + 0.5) / 8388608.0; }

 private:
  uint64_t start_;
};

std::function<double(uint64_t)> values_of(const Json& fill, const Sequence& sequence) {
  const std::string kind = fill.at("kind");
  if (kind == "uniform") {
    const double mean = fill.at("mean"), width = fill.at("sd").get<double>() * std::sqrt(3.0);
    return [=](uint64_t i) { return mean + width * sequence.real(i); };
  }
  if (kind == "negexp") {
    const double lo = fill.at("lo"), hi = fill.at("hi");
    return [=](uint64_t i) { return -std::exp(lo + (hi - lo) * (sequence.real(i) + 1) / 2); };
  }
  if (kind == "values") return [values = fill.at("v").get<std::vector<double>>()](uint64_t i) { return values.at(i); };
  throw std::runtime_error("unknown fill " + kind);
}

void put_rounded(Bytes& out, FormatId type, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (type == FormatId::F32)
    out.put(bits);
  else if (type == FormatId::F16)
    out.put(half_bits(value));
  else if (type == FormatId::BF16)
    out.put(uint16_t((uint64_t(bits) + 0x7FFF + ((bits >> 16) & 1)) >> 16));
  else
    throw std::runtime_error("a fill of values for a quantized tensor");
}

std::string float_data(const Json& fill, const Sequence& sequence, FormatId type, uint64_t elements) {
  const auto value = values_of(fill, sequence);
  Bytes out;
  for (uint64_t i = 0; i < elements; i++) put_rounded(out, type, float(value(i)));
  return out.text();
}

std::string block_data(const Json& fill, const Sequence& sequence, const Format& format, uint64_t elements) {
  const auto block = size_t(format.block_bytes);
  std::string data(format.row_bytes(elements), '\0');
  for (size_t j = 0; j < data.size(); j++) data[j] = char(sequence.integer(j) >> 56);
  for (size_t k = 0; k < data.size() / block; k++) {
    char* bytes = data.data() + k * block;
    const double factor = 1 + sequence.real((uint64_t(1) << 40) + k) / 2;
    for (const Json& scale : fill.at("scales")) {
      const uint16_t half = half_bits(scale.at(1).get<double>() * factor);
      std::memcpy(bytes + scale.at(0).get<size_t>(), &half, sizeof half);
    }
    for (const Json& scale : fill.value("one_byte_scales", Json::array()))
      bytes[scale.at(0).get<size_t>()] = char(scale.at(1).get<int>());
  }
  return data;
}

TensorText tensor_text(const Json& tensor, uint64_t seed) {
  const Format* format = find_format(tensor.at("type").get<std::string>());
  if (!format) throw std::runtime_error("unknown tensor type " + tensor.at("type").dump());
  TensorText out;
  out.name = tensor.at("name");
  out.type = format->id;
  const std::vector<int64_t> shape = tensor.at("shape");
  out.ne.assign(shape.rbegin(), shape.rend());
  uint64_t elements = 1;
  for (const int64_t extent : shape) elements *= uint64_t(extent);
  const Sequence sequence(out.name, seed);
  const Json& fill = tensor.at("fill");
  out.data = fill.at("kind") == "blocks" ? block_data(fill, sequence, *format, elements)
                                         : float_data(fill, sequence, FormatId(format->id), elements);
  return out;
}

struct ValueText {
  MetaType type;
  std::string bytes;
};

ValueText value_text(std::string_view type, const Json& value) {
  if (type == "u32") return {MetaType::U32, Bytes().put(value.get<uint32_t>()).text()};
  if (type == "i32") return {MetaType::I32, Bytes().put(value.get<int32_t>()).text()};
  if (type == "f32") return {MetaType::F32, Bytes().put(float(value.get<double>())).text()};
  if (type == "bool") return {MetaType::Bool, Bytes().put(char(value.get<bool>())).text()};
  if (type == "str") return {MetaType::String, Bytes().string(value.get<std::string>()).text()};
  throw std::runtime_error("unknown metadata type " + std::string(type));
}

void add_entry(GgufText& file, const Json& entry) {
  const std::string key = entry.at(0), type = entry.at(1);
  const Json& value = entry.at(2);
  if (!type.starts_with("arr_")) {
    const ValueText text = value_text(type, value);
    file.entry(key, text.type, text.bytes);
    return;
  }
  MetaType element = MetaType::U32;
  std::string elements;
  for (const Json& item : value) {
    const ValueText text = value_text(type.substr(4), item);
    element = text.type;
    elements += text.bytes;
  }
  file.array(key, element, value.size(), elements);
}

}  // namespace

uint16_t half_bits(double value) {
  const auto sign = uint16_t(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return sign | 0x7E00;
  const double size = std::fabs(value);
  if (size >= 65520) return sign | 0x7C00;
  // Steps of 2^(e-10) at exponent e; below 2^-14 they stay 2^-24, which makes the subnormals.
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto steps = uint16_t(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // A normal's leading one counts as one exponent, and a carry out of the fraction as one more.
  return uint16_t(sign | (steps + ((exponent + 14) << 10)));
}

std::string checkpoint_bytes(const Json& recipe) {
  GgufText file;
  file.string("general.architecture", recipe.at("architecture").get<std::string>());
  for (const Json& entry : recipe.at("metadata")) add_entry(file, entry);
  for (const Json& tensor : recipe.at("tensors")) file.tensor(tensor_text(tensor, recipe.at("seed")));
  return file.text();
}

void write_checkpoint(const Json& recipe, const Path& path) { write_file(path, checkpoint_bytes(recipe)); }

}  // namespace lane::test
