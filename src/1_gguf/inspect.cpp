// The checkpoint as JSON.
#include "lane/inspect.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "parts.h"
#include "totals.h"

namespace lane {
namespace {

using Json = nlohmann::ordered_json;
constexpr uint64_t kShownElements = 64;

Json json(MetaType type, const MetaValue& value) {
  struct {
    MetaType type;
    Json operator()(uint64_t v) const { return v; }
    Json operator()(int64_t v) const { return v; }
    Json operator()(double v) const { return type == MetaType::F32 ? shortest_real(v) : v; }
    Json operator()(bool v) const { return v; }
    Json operator()(std::string_view v) const { return v; }
    Json operator()(const MetaArray& v) const {
      Json elements = Json::array();
      for (const MetaValue& element : first_elements(v, kShownElements)) elements.push_back(json(v.element, element));
      return elements;
    }
  } as_json{type};
  return std::visit(as_json, value);
}

Json json(const MetaEntry& entry) {
  Json out = {{"type", type_name(entry)}};
  if (const auto* array = std::get_if<MetaArray>(&entry.value)) out["count"] = array->count;
  out["value"] = json(entry.type, entry.value);
  return out;
}

Json json(const TensorInfo& t) {
  return {{"name", t.name},   {"type", t.format->name}, {"shape", std::vector(t.ne, t.ne + t.dims)},
          {"shard", t.shard}, {"offset", t.offset},     {"bytes", t.bytes}};
}

Json json(const Shard& shard) {
  return {{"version", shard.version},
          {"bytes", shard.file_bytes},
          {"data_start", shard.data_start},
          {"alignment", shard.alignment}};
}

template <class Items>
Json list(const Items& items) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(json(item));
  return out;
}

}  // namespace

std::string inspect_json(const Checkpoint& checkpoint) {
  Json out;
  out["files"] = list(checkpoint.shards);
  // Keys come from a list of pairs: looking each up in an object that keeps its order would take quadratic time.
  Json::object_t metadata;
  for (const MetaEntry& entry : checkpoint.metadata)
    metadata.Container::emplace_back(std::string(entry.key), json(entry));
  out["metadata"] = std::move(metadata);
  out["tensors"] = list(checkpoint.tensors);
  Json& sums = out["totals"] = Json::object();
  for (const auto& [id, total] : totals(checkpoint))
    sums[std::string(find_format(id)->name)] = {
        {"tensors", total.tensors}, {"elements", total.elements}, {"bytes", total.bytes}};
  // ASCII alone: a name may hold what a terminal obeys.
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace lane
