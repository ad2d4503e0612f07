#include "lane/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "lane/compile.h"
#include "lane/error.h"

namespace lane {
namespace {

using Use = Support::Tensor::Use;
using Shape = Support::Tensor::Shape;

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

Shape shape_of(const TensorInfo& tensor, const Survey& survey) {
  if (survey.misshapen.contains(tensor.name)) return Shape::Another;
  return survey.unshaped.contains(tensor.name) ? Shape::Unknown : Shape::Sound;
}

using Parts = std::map<std::string_view, LeftOut::Part>;

Support::Tensor tensor_of(const TensorInfo& tensor, const Survey& survey, const Parts& left_out) {
  Support::Tensor result{.name = std::string(tensor.name),
                         .format = tensor.format->name,
                         .computed = tensor.format->supported(),
                         .shape = shape_of(tensor, survey)};
  if (!survey.known) return result;
  const auto part = left_out.find(tensor.name);
  if (part != left_out.end()) result.part = part->second;
  result.use = part != left_out.end() ? Use::LeftOut : survey.read.contains(tensor.name) ? Use::Read : Use::Unread;
  return result;
}

std::string_view text(LeftOut::Part part) {
  return part == LeftOut::Part::Nextn ? "of a nextn block, which predicts further tokens" : "of a vision tower";
}

std::string text(const Support::Tensor& tensor) {
  if (tensor.use == Use::LeftOut) return fmt::format("left out: {}", text(tensor.part));
  std::vector<std::string_view> faults;
  if (tensor.use == Use::Unread) faults.push_back("the architecture does not use it");
  if (!tensor.computed) faults.push_back("lanec does not compute with this type");
  if (tensor.shape == Shape::Another) faults.push_back("the metadata gives it another shape");
  if (!faults.empty()) return fmt::format("refused: {}", fmt::join(faults, "; "));
  if (tensor.shape == Shape::Unknown) return "not known: a key that says its shape is refused";
  return tensor.use == Use::Read ? "read" : "not known";
}

// Empty where there are none.
std::string nextn_text(int64_t blocks) {
  if (blocks == 0) return "";
  return fmt::format("left out: {} nextn block{} at the end, for multi-token prediction\n", blocks,
                     blocks == 1 ? "" : "s");
}

}  // namespace

Support support(const std::filesystem::path& path, const Options& options) {
  const Checkpoint checkpoint = read_checkpoint(path);
  const Survey survey = survey_model(checkpoint, options);
  Support result{.tensors = {}, .nextn_blocks = survey.nextn_blocks, .reasons = survey.refusals, .whole = survey.known};
  Parts left_out;
  for (const LeftOut& tensor : survey.left_out) left_out.emplace(tensor.tensor, tensor.part);
  for (const TensorInfo& t : checkpoint.tensors) {
    result.tensors.push_back(tensor_of(t, survey, left_out));
    const Use use = result.tensors.back().use;
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
  out += nextn_text(support.nextn_blocks);
  for (const std::string& reason : support.reasons) out += fmt::format("reason: {}\n", reason);
  if (support.reasons.empty()) return out + "compiles\n";
  const size_t count = support.reasons.size();
  out += fmt::format("does not compile: {} reason{}", count, count == 1 ? "" : "s");
  return out + (support.whole ? "\n" : "; what reads the tensors is not known\n");
}

std::string left_out_text(const Checkpoint& checkpoint) {
  const Survey survey = survey_model(checkpoint, {});
  std::string out = nextn_text(survey.nextn_blocks);
  for (const LeftOut& left_out : survey.left_out)
    out += fmt::format("left out: {}, {}\n", printable(left_out.tensor), text(left_out.part));
  return out;
}

}  // namespace lane
