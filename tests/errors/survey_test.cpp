// Faults in every key and every tensor of every golden checkpoint: of one a survey says that one and no other, as a
// compile does; of three at once, all three.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "1_gguf/parts.h"
#include "lane/error.h"
#include "lane/spec.h"
#include "support/golden_case.h"

namespace lane::test {
namespace {

std::string refusal_of(const Checkpoint& checkpoint) {
  try {
    describe_model(checkpoint, {});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A change to one key, whose name its refusal says.
struct KeyFault {
  std::string key, kind;
  std::function<void(Checkpoint&)> apply;
};

MetaEntry& entry_of(Checkpoint& checkpoint, const std::string& key) {
  return *std::ranges::find(checkpoint.metadata, key, &MetaEntry::key);
}

void set_value(Checkpoint& checkpoint, const std::string& key, MetaType type, MetaValue value) {
  entry_of(checkpoint, key).type = type;
  entry_of(checkpoint, key).value = value;
}

void set_another_type(Checkpoint& checkpoint, const std::string& key) {
  const bool text = entry_of(checkpoint, key).type == MetaType::String;
  set_value(checkpoint, key, text ? MetaType::Bool : MetaType::String, text ? MetaValue(true) : MetaValue("another"));
}

void remove(Checkpoint& checkpoint, const std::string& key) {
  auto index = std::make_shared<Checkpoint::Index>(*checkpoint.index);
  index->metadata.erase(key);
  checkpoint.index = index;
  entry_of(checkpoint, key).key = "general.removed";
}

/// A value of its type that no model has.
MetaValue absurd(MetaType type) {
  static constexpr std::byte kOne[] = {std::byte{1}};
  if (type == MetaType::F32 || type == MetaType::F64) return std::numeric_limits<double>::infinity();
  if (type == MetaType::String) return "absurd";
  if (type == MetaType::Bool) return true;
  if (type == MetaType::Array) return MetaArray{.element = MetaType::U8, .count = 1, .bytes = kOne};
  return uint64_t{1} << 40;
}

MetaValue zero(MetaType type) {
  if (type == MetaType::F32 || type == MetaType::F64) return 0.0;
  if (type == MetaType::String) return "";
  if (type == MetaType::Bool) return false;
  if (type == MetaType::Array) return MetaArray{};
  return uint64_t{0};
}

bool is_model_key(std::string_view key) { return !key.starts_with("general.") && !key.starts_with("tokenizer."); }

std::vector<KeyFault> key_faults(const Checkpoint& sound) {
  std::vector<KeyFault> faults;
  for (const MetaEntry& entry : sound.metadata) {
    if (!is_model_key(entry.key)) continue;
    const std::string key(entry.key);
    const MetaType type = entry.type;
    faults.push_back({key, "missing", [=](Checkpoint& damaged) { remove(damaged, key); }});
    faults.push_back({key, "zero", [=](Checkpoint& damaged) { set_value(damaged, key, type, zero(type)); }});
    faults.push_back({key, "type", [=](Checkpoint& damaged) { set_another_type(damaged, key); }});
    faults.push_back({key, "absurd", [=](Checkpoint& damaged) { set_value(damaged, key, type, absurd(type)); }});
  }
  return faults;
}

/// Tensors whose shape, or whose use, other values of the key would change.
Survey::Names tensors_of(const Checkpoint& sound, const std::string& key) {
  Survey::Names names;
  const auto look = [&](const std::function<void(Checkpoint&)>& change) {
    Checkpoint other = sound;
    change(other);
    const Survey survey = survey_model(other, {});
    names.insert(survey.misshapen.begin(), survey.misshapen.end());
    for (const TensorInfo& tensor : sound.tensors)
      if (!survey.read.contains(tensor.name)) names.emplace(tensor.name);
  };
  look([&](Checkpoint& other) { remove(other, key); });
  const auto* value = std::get_if<uint64_t>(&sound.find(key)->value);
  if (value == nullptr) return names;
  for (uint64_t other : {uint64_t{1}, *value / 2, *value + 2, 2 * *value, uint64_t{0}})
    look([&](Checkpoint& changed) { set_value(changed, key, MetaType::U32, other); });
  return names;
}

bool names(const std::string& refusal, const std::string& name) {
  return refusal.find("'" + name + "'") != std::string::npos;
}

bool any_names(const std::vector<std::string>& refusals, const std::string& name) {
  return std::ranges::any_of(refusals, [&](const std::string& refusal) { return names(refusal, name); });
}

class SurveyCase : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    sound_ = read_checkpoint(write_case(load_case(GetParam()), folder_.path()));
    for (const LeftOut& left_out : survey_model(sound_, {}).left_out) left_out_.insert(left_out.tensor);
  }

  /// The survey of `damaged` has one refusal at most, the compiler's, and it has `part`. Whether it has one.
  static bool expect_alone(const Checkpoint& damaged, std::string_view part) {
    const std::vector<std::string> found = survey_model(damaged, {}).refusals;
    EXPECT_EQ(found.empty() ? "" : found.front(), refusal_of(damaged));
    if (found.empty()) return false;
    EXPECT_EQ(found.size(), 1u) << part << "\n" << found.front() << "\n" << found.back();
    EXPECT_NE(found.front().find(part), std::string::npos) << part << " in " << found.front();
    return true;
  }

  /// Those that are refused, each for its own key.
  std::vector<KeyFault> refused_faults() const {
    std::vector<KeyFault> faults = key_faults(sound_);
    std::erase_if(faults, [&](const KeyFault& fault) {
      Checkpoint damaged = sound_;
      fault.apply(damaged);
      return !any_names(survey_model(damaged, {}).refusals, fault.key);
    });
    return faults;
  }

  /// A tensor, and one of its dimensions; the embedding table may have any number of rows.
  std::pair<size_t, int> random_size(std::mt19937& random) const {
    for (;;) {
      const size_t tensor = random() % sound_.tensors.size();
      const std::string_view name = sound_.tensors[tensor].name;
      if (!left_out_.contains(name)) return {tensor, name == "token_embd.weight" ? 0 : int(random() % 2)};
    }
  }

  const Survey::Names& tensors_of_key(const std::string& key) {
    const auto [at, missing] = tensors_of_.try_emplace(key);
    if (missing) at->second = tensors_of(sound_, key);
    return at->second;
  }

  void expect_all_told(const KeyFault& one, const KeyFault& other, std::pair<size_t, int> size) {
    Checkpoint damaged = sound_;
    one.apply(damaged);
    other.apply(damaged);
    damaged.tensors[size.first].ne[size.second] += 1;
    const std::string name(damaged.tensors[size.first].name);
    const Survey survey = survey_model(damaged, {});
    std::string all = one.key + " " + one.kind + ", " + other.key + " " + other.kind + ", " + name + ":\n";
    for (const std::string& refusal : survey.refusals) all += refusal + "\n";
    EXPECT_TRUE(any_names(survey.refusals, one.key)) << all;
    EXPECT_TRUE(any_names(survey.refusals, other.key)) << all;
    if (any_names(survey.refusals, name)) return;
    EXPECT_TRUE(survey.unshaped.contains(name)) << all;
    EXPECT_TRUE(tensors_of_key(one.key).contains(name) || tensors_of_key(other.key).contains(name)) << all;
  }

  TempFolder folder_;
  Checkpoint sound_;
  Survey::Names left_out_;
  std::map<std::string, Survey::Names> tensors_of_;
};

TEST_P(SurveyCase, AKeyOfAnotherType) {
  int refused = 0;
  for (const MetaEntry& entry : sound_.metadata) {
    if (!is_model_key(entry.key)) continue;
    Checkpoint damaged = sound_;
    set_another_type(damaged, std::string(entry.key));
    refused += expect_alone(damaged, entry.key);
  }
  EXPECT_GE(refused, 5);
}

TEST_P(SurveyCase, ATensorOfAnotherShape) {
  for (size_t i = 0; i < sound_.tensors.size(); ++i) {
    if (left_out_.contains(sound_.tensors[i].name)) continue;
    Checkpoint damaged = sound_;
    damaged.tensors[i].ne[0] += 1;
    EXPECT_TRUE(expect_alone(damaged, damaged.tensors[i].name)) << damaged.tensors[i].name;
  }
}

/// Every fault of a key that is refused alone, with some of the others and a tensor of another shape.
TEST_P(SurveyCase, TwoKeysAndATensorAtOnce) {
  constexpr int kDraws = 6;
  const std::vector<KeyFault> faults = refused_faults();
  ASSERT_GE(faults.size(), 15u);
  std::mt19937 random(1);
  for (const KeyFault& one : faults) {
    for (int draw = 0; draw < kDraws; ++draw) {
      const KeyFault& other = faults[random() % faults.size()];
      if (other.key != one.key) expect_all_told(one, other, random_size(random));
    }
  }
}

std::vector<std::string> float_cases() {
  std::vector<std::string> names = case_names();
  std::erase_if(names, [](const std::string& name) { return !name.ends_with("-f32"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Golden, SurveyCase, testing::ValuesIn(float_cases()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace lane::test
