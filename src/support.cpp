#include "lane/support.h"

#include <fmt/format.h>

#include <set>

#include "lane/compile.h"
#include "lane/error.h"

namespace lane {
namespace {

using Use = Support::Tensor::Use;

/// What `check` throws, as a reason.
template <class Check>
void add_reason(Support& result, Check check) {
  try {
    check();
  } catch (const InternalError&) {
    throw;
  } catch (const Error& refusal) {
    result.reasons.emplace_back(refusal.what());
  }
}

using Names = std::set<std::string, std::less<>>;

Use use_of(const TensorInfo& tensor, const Survey& survey, const Names& left_out) {
  if (survey.read.contains(tensor.name)) return Use::Read;
  if (left_out.contains(tensor.name)) return Use::LeftOut;
  return survey.whole ? Use::Unread : Use::Unknown;
}

std::string_view text(const Support::Tensor& tensor) {
  switch (tensor.use) {
    case Use::Read:
      return tensor.computed ? "read" : "refused: lanec does not compute with this type";
    case Use::LeftOut:
      return "left out: not part of a text step";
    case Use::Unread:
      return "refused: the architecture does not use it";
    case Use::Unknown:
      return tensor.computed ? "not known" : "refused: lanec does not compute with this type";
  }
  return "";
}

}  // namespace

Support support(const std::filesystem::path& path, const Options& options) {
  const Checkpoint checkpoint = read_checkpoint(path);
  const Survey survey = survey_model(checkpoint, options);
  Support result{.tensors = {}, .reasons = survey.refusals, .whole = survey.whole};
  const Names left_out(survey.left_out.begin(), survey.left_out.end());
  for (const TensorInfo& t : checkpoint.tensors) {
    const Use use = use_of(t, survey, left_out);
    result.tensors.push_back({std::string(t.name), t.format->name, use, t.format->supported()});
    // A type that lanec does not compute with is a reason also where it is not known what reads the tensor.
    if (use == Use::Read || use == Use::Unknown) add_reason(result, [&] { check_format(t); });
  }
  add_reason(result, [&] { read_vocabulary(checkpoint, describe_vocabulary(checkpoint, options.pre)); });
  if (result.reasons.empty()) add_reason(result, [&] { compile(path, options); });
  return result;
}

std::string to_text(const Support& support) {
  std::string out;
  for (const Support::Tensor& t : support.tensors)
    out += fmt::format("tensor {}: {}, {}\n", printable(t.name), t.format, text(t));
  for (const std::string& reason : support.reasons) out += fmt::format("reason: {}\n", reason);
  if (support.reasons.empty()) return out + "compiles\n";
  const size_t count = support.reasons.size();
  out += fmt::format("does not compile: {} reason{}", count, count == 1 ? "" : "s");
  return out + (support.whole ? "\n" : "; what the refused parts read is not known\n");
}

std::string left_out_text(const Checkpoint& checkpoint) {
  std::string out;
  for (const std::string& name : survey_model(checkpoint, {}).left_out)
    out += fmt::format("left out of the step: {}\n", printable(name));
  return out;
}

}  // namespace lane
