// Small changes to a recipe: a sound checkpoint made unlike itself in one place.
#pragma once
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace lane::test {

inline nlohmann::json& tensor(nlohmann::json& recipe, const std::string& name) {
  for (auto& entry : recipe["tensors"])
    if (entry["name"] == name) return entry;
  throw std::runtime_error(name);
}

inline void drop_tensor(nlohmann::json& recipe, const std::string& name) {
  const nlohmann::json& entry = tensor(recipe, name);
  auto& all = recipe["tensors"].get_ref<nlohmann::json::array_t&>();
  all.erase(all.begin() + (&entry - all.data()));
}

/// Values of a normal weight: around `mean`.
inline void add_tensor(nlohmann::json& recipe, const std::string& name, const nlohmann::json& shape, double mean = 0) {
  const nlohmann::json fill = {{"kind", "uniform"}, {"mean", mean}, {"sd", 0.1}};
  recipe["tensors"].push_back({{"name", name}, {"shape", shape}, {"type", "F32"}, {"fill", fill}});
}

inline void rename_tensor(nlohmann::json& recipe, const std::string& from, const std::string& to) {
  tensor(recipe, from)["name"] = to;
}

inline void drop_key(nlohmann::json& recipe, const std::string& key) {
  auto& all = recipe["metadata"].get_ref<nlohmann::json::array_t&>();
  for (auto entry = all.begin(); entry != all.end(); ++entry)
    if ((*entry)[0] == key) return void(all.erase(entry));
  throw std::runtime_error(key);
}

inline void set_key(nlohmann::json& recipe, const std::string& key, const std::string& type,
                    const nlohmann::json& value) {
  for (auto& entry : recipe["metadata"])
    if (entry[0] == key) return void(entry = {key, type, value});
  recipe["metadata"].push_back({key, type, value});
}

/// The same checkpoint under another architecture's name: its keys move with it.
inline void set_architecture(nlohmann::json& recipe, const std::string& name) {
  const std::string from = recipe["architecture"].get<std::string>() + ".";
  for (auto& entry : recipe["metadata"]) {
    const std::string key = entry[0];
    if (key.starts_with(from)) entry[0] = name + "." + key.substr(from.size());
  }
  recipe["architecture"] = name;
}

}  // namespace lane::test
