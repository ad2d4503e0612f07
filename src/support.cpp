#include "lane/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

Use use_of(const TensorInfo& tensor, const Survey& survey, const Survey::Names& left_out) {
  if (!survey.known) return Use::Unknown;
  if (survey.read.contains(tensor.name)) return Use::Read;
  return left_out.contains(tensor.name) ? Use::LeftOut : Use::Unread;
}

std::string text(const Support::Tensor& tensor) {
  if (tensor.use == Use::LeftOut) return "left out: not part of a text step";
  std::vector<std::string_view> faults;
  if (tensor.use == Use::Unread) faults.push_back("the architecture does not use it");
  if (!tensor.computed) faults.push_back("lanec does not compute with this type");
  if (!tensor.shaped) faults.push_back("the metadata gives it another shape");
  if (!faults.empty()) return fmt::format("refused: {}", fmt::join(faults, "; "));
  return tensor.use == Use::Read ? "read" : "not known";
}

}  // namespace

Support support(const std::filesystem::path& path, const Options& options) {
  const Checkpoint checkpoint = read_checkpoint(path);
  const Survey survey = survey_model(checkpoint, options);
  Support result{.tensors = {}, .reasons = survey.refusals, .whole = survey.known};
  const Survey::Names left_out(survey.left_out.begin(), survey.left_out.end());
  for (const TensorInfo& t : checkpoint.tensors) {
    const Use use = use_of(t, survey, left_out);
    result.tensors.push_back({.name = std::string(t.name),
                              .format = t.format->name,
                              .use = use,
                              .computed = t.format->supported(),
                              .shaped = !survey.misshapen.contains(t.name)});
    // A type that lanec does not compute with is a reason also where it is not known what reads the tensor.
    if (use == Use::Read || use == Use::Unknown) add_reason(result, [&] { check_format(t); });
  }
  if (result.reasons.empty()) add_reason(result, [&] { compile(path, options); });
  for (std::string& reason : survey_vocabulary(checkpoint, options.pre)) result.reasons.push_back(std::move(reason));
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
  return out + (support.whole ? "\n" : "; what reads the tensors is not known\n");
}

std::string left_out_text(const Checkpoint& checkpoint) {
  std::string out;
  for (const std::string& name : survey_model(checkpoint, {}).left_out)
    out += fmt::format("left out of the step: {}\n", printable(name));
  return out;
}

}  // namespace lane
