// A line of --prompts: one JSON object that says a prompt and what to do with it.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/namespace.h"
#include "runtime/command_line.h"
#include "runtime/json.h"
#include "runtime/status.h"

namespace LANE_NAMESPACE {

namespace request_detail {

/// A key, the kind of its value, and the option of the command line that it stands for.
struct Key {
  const char* name;
  JsonKind kind;
  const char* option;
};

constexpr Key kKeys[] = {
    {"prompt", JsonKind::String, "-p"},
    {"tokens", JsonKind::Array, "--tokens"},
    {"n", JsonKind::Number, "-n"},
    {"temp", JsonKind::Number, "--temp"},
    {"temperature", JsonKind::Number, "--temp"},
    {"top_k", JsonKind::Number, "--top-k"},
    {"top_p", JsonKind::Number, "--top-p"},
    {"min_p", JsonKind::Number, "--min-p"},
    {"seed", JsonKind::Number, "--seed"},
    {"force", JsonKind::Array, "--force"},
};

inline std::string key_names() {
  std::string names;
  for (const Key& key : kKeys) names += std::string(names.empty() ? "" : ", ") + key.name;
  return names;
}

/// As the command line spells a value: an array's items with commas between.
inline Status option_text(const Key& key, const JsonValue& value, std::string* out) {
  constexpr const char* kKinds[] = {"a string", "a number", "a word", "an array of numbers"};
  bool fits = value.kind == key.kind;
  *out = value.text;
  for (const JsonValue& item : value.items) {
    fits = fits && item.kind == JsonKind::Number;
    *out += (out->empty() ? "" : ",") + item.text;
  }
  return fits ? Status{} : usage_error(std::string(key.name) + ": expected " + kKinds[static_cast<int>(key.kind)]);
}

/// The option's own check, whose message names the key.
inline Status set_option(const Key& key, const std::string& text, RunOptions* out) {
  const bool gives_prompt = key.kind == JsonKind::String || std::string_view(key.name) == "tokens";
  if (gives_prompt && out->prompt_kind != PromptKind::None)
    return usage_error("prompt and tokens: expected one of them");
  const Status status = command_line_detail::find_option(key.option, kProgram)->set(out, key.name, text);
  if (status.ok() || key.kind != JsonKind::Array) return status;
  return usage_error(std::string(key.name) + " [" + text + "]: expected an array of token ids");
}

/// `said`: the options that the line's keys have stood for so far, with the key that did.
inline Status set_key(const std::string& name, const JsonValue& value, std::map<std::string, std::string>* said,
                      RunOptions* out) {
  for (const Key& key : kKeys) {
    if (name != key.name) continue;
    const auto [first, is_new] = said->emplace(key.option, name);
    if (!is_new) return usage_error(first->second + " and " + name + ": expected one of them");
    std::string text;
    const Status status = option_text(key, value, &text);
    return status.ok() ? set_option(key, text, out) : status;
  }
  return usage_error("key " + json_string(name) + "; accepted are " + key_names());
}

}  // namespace request_detail

/// The options of a request: `defaults`, the command line's, and over them what the line says. Refuses (exit 2) what is
/// no JSON object, keys that are unknown or twice, values out of range, and a line without a prompt or with two. What
/// it says names the line's keys, not the options that they stand for.
inline Status parse_request(std::string_view line, const RunOptions& defaults, RunOptions* out) {
  *out = defaults;
  out->prompt_kind = PromptKind::None;
  JsonObject object;
  if (Status s = JsonReader(line).object(&object); !s.ok()) return s;
  std::map<std::string, std::string> said;
  for (const auto& [key, value] : object) {
    if (Status s = request_detail::set_key(key, value, &said, out); !s.ok()) return s;
  }
  if (out->prompt_kind == PromptKind::None) return usage_error("no prompt given: expected the key prompt or tokens");
  out->escapes = false;  // JSON has its own
  command_line_detail::choose_temperature(out);
  return {};
}

}  // namespace LANE_NAMESPACE
