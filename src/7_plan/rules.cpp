#include "7_plan/rules.h"

#include <fmt/format.h>

#include <set>

namespace lane {
namespace {

/// "decode", "prefill of 4 rows", "batch of 2 sequences".
std::string form_name(const Schedule& s) {
  switch (s.kind) {
    case FormKind::Decode:
      return "decode";
    case FormKind::Prefill:
      return fmt::format("prefill of {} rows", s.rows_per_sequence);
    case FormKind::Batch:
      return fmt::format("batch of {} sequences", s.sequences);
  }
  return "";
}

std::string fired_text(std::string_view rule, const std::vector<const Schedule*>& schedules) {
  std::string text;
  for (const Schedule* s : schedules)
    for (const Fired& f : s->fired)
      if (f.rule == rule)
        text +=
            fmt::format("  fired {} times in {}: {} launches, {} bytes\n", f.times, form_name(*s), f.launches, f.bytes);
  return text.empty() ? "  fired nowhere\n" : text;
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> rows;
    for (const auto group : {product_rules(), attention_rules(), expert_rules(), recurrent_rules()})
      rows.insert(rows.end(), group.begin(), group.end());
    return rows;
  }();
  return all;
}

std::string rules_text(const std::vector<const Schedule*>& schedules) {
  std::string text;
  std::set<std::string_view> told;
  for (const Rule& rule : rules()) {
    if (!told.insert(rule.name).second) continue;
    text += fmt::format("rule {}{}\n", rule.name, rule.asked ? fmt::format(", where --fuse '{}' asks", rule.name) : "");
    for (const Rule& row : rules())
      if (row.name == rule.name) text += fmt::format("  {}\n    by {}; saves {}\n", row.pattern, row.kernel, row.saves);
    text += fired_text(rule.name, schedules);
  }
  for (const Schedule* s : schedules) text += fmt::format("{}: {} launches\n", form_name(*s), s->launches.size());
  return text;
}

}  // namespace lane
