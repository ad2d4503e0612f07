#include "support/golden_case.h"

#include <algorithm>

#include "support/recipe.h"

namespace lane::test {

std::vector<std::string> case_names(std::string_view prefix) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(test_path("golden/cases"))) {
    const std::string name = file.path().stem().string();
    if (file.path().extension() == ".json" && name.starts_with(prefix)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

GoldenCase load_case(const std::string& name) { return read_case(test_path("golden/cases/" + name + ".json")); }

GoldenCase read_case(const Path& path) {
  const auto json = nlohmann::json::parse(read_file(path));
  const bool tiny = json.contains("checkpoint");
  GoldenCase golden;
  golden.name = path.stem().string();
  if (tiny) golden.recipe = json.at("checkpoint");
  golden.prompt_ids = json.at("prompt_ids").get<std::vector<int>>();
  golden.greedy_ids = json.at("greedy_ids").get<std::vector<int>>();
  for (const auto& top : json.at(tiny ? "top8" : "top16"))
    golden.top8.push_back({top.at("ids").get<std::vector<int>>(), top.at("logits").get<std::vector<double>>(),
                           top.at("logsumexp").get<double>()});
  if (!tiny) return golden;
  for (const auto& [position, logits] : json.at("full_logits").items())
    golden.full_logits[std::stoi(position)] = logits.get<std::vector<double>>();
  return golden;
}

Path write_case(const GoldenCase& golden, const Path& folder) {
  const Path path = folder / (golden.name + ".gguf");
  write_checkpoint(golden.recipe, path);
  return path;
}

}  // namespace lane::test
