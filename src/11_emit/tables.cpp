#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lane/error.h"
#include "parts.h"

namespace lane {
namespace {

std::string load_name(const Placement& p) {
  if (p.layout == DeviceLayout::RotaryTable) return "RotaryTable";
  if (p.layout == DeviceLayout::AsStored) return "Bytes";
  if (p.layout == DeviceLayout::Repacked) return "Repacked";
  switch (FormatId(p.format->id)) {
    case FormatId::F32:
      return "Float32";
    case FormatId::F16:
      return "Float16";
    case FormatId::BF16:
      return "BFloat16";
    default:
      throw InternalError(fmt::format("emit: vector '{}' is {}", p.name, p.format->name));
  }
}

std::string shards_table(const Lane& lane) {
  std::string text = "constexpr ShardInfo kShards[] = {\n    // file bytes, data start, digest of header, of data\n";
  for (const ShardIdentity& id : identify(lane.checkpoint)) {
    text += fmt::format("    {{{}, {}, {:#x}u, {:#x}u}},\n", id.file_bytes, id.data_start, id.header_digest,
                        id.data_digest);
  }
  return text + "};\n";
}

/// What looks for weights that are no numbers, by how they lie when it does: a vector is floats by then.
std::string finite_kernel(const Placement& p) {
  if (p.layout == DeviceLayout::RotaryTable) return "nullptr";
  return fmt::format("first_not_finite<{}>", p.is_matrix() ? p.format->name : "F32");
}

std::string placements_table(const Lane& lane) {
  std::string text =
      "constexpr PlacementInfo kPlacements[] = {\n"
      "    // name; shard, offset, bytes in the file; offset and bytes on the device; how it is loaded, rows, "
      "columns\n";
  for (size_t i = 0; i < lane.weights.placements.size(); ++i) {
    const Placement& p = lane.weights.placements[i];
    const std::string repack =
        p.layout == DeviceLayout::Repacked ? fmt::format("repack<{}>", find_repacked(*p.format)->name) : "nullptr";
    text += fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, Load::{}, {}, {}, {}, {}, {}}},  // {}\n",
                        p.tensor.empty() ? p.name : p.tensor,
                        p.in_sidecar ? std::string("kSidecar") : std::to_string(p.shard), p.offset, p.bytes,
                        lane.residence.weight_offset[i], p.device_bytes, load_name(p), p.shape.rows * p.shape.experts,
                        p.shape.columns, p.magnitude, finite_kernel(p), repack, i);
  }
  return text + "};\n";
}

/// Empty where nothing was folded: C++ has no empty arrays.
std::string folded_table(const Lane& lane) {
  if (lane.weights.folded.empty()) return "";
  std::string text = "constexpr FoldedInfo kFolded[] = {\n    // tensor; shard, offset, bytes; digest\n";
  for (const FoldedTensor& f : lane.weights.folded)
    text += fmt::format("    {{\"{}\", {}, {}, {}, {:#x}u}},\n", f.name, f.shard, f.offset, f.bytes, f.digest);
  return text + "};\n\n";
}

std::string leaving_tables(const Residence& r) {
  std::string matrices = "constexpr int kLeavingMatrices[] = {\n",
              sets =
                  "constexpr LeavingInfo kLeaving[] = {\n"
                  "    // matrices, how read; with these away: bytes of each buffer, of the weights\n";
  for (const Leaving& set : r.leaving) {
    matrices += fmt::format("    {},\n", fmt::join(set.matrices, ", "));
    sets += fmt::format("    {{{}, Away::{}, {}, {}}},\n", set.matrices.size(),
                        set.away == Away::Copied ? "Copied" : "Read", set.buffer_bytes, set.weight_bytes);
  }
  return matrices + "};\n" + sets + "};\n";
}

std::string forms_table(const Lane& lane) {
  std::string text = "constexpr FormInfo kForms[] = {\n    // tag, sequences, rows, events, step, head\n";
  for (const Form& form : lane.forms) {
    text += fmt::format("    {{\"{}\", {}, {}, {}, {}, {}}},\n", form.cut.tag(), form.schedule.sequences,
                        form.schedule.rows_per_sequence, event_count(form), step_name(form), head_name(form));
  }
  return text + "};\n";
}

uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

std::string program_info(const Lane& lane) {
  const Residence& r = lane.residence;
  int64_t sequences = 1, tokens = 1;
  for (const Form& form : lane.forms) {
    sequences = std::max(sequences, form.schedule.sequences);
    tokens = std::max(tokens, form.schedule.sequences * form.schedule.rows_per_sequence);
  }
  std::string text = "constexpr ProgramInfo kModel = {\n";
  auto field = [&](const std::string& value, const char* what) {
    text += fmt::format("    {},  // {}\n", value, what);
  };
  auto number = [&](auto value, const char* what) { field(fmt::format("{}", value), what); };
  field(fmt::format("kShards, {}", lane.checkpoint.shards.size()), "files of the checkpoint");
  number(lane.weights.payload.size(), "bytes of the sidecar's payload");
  field(fmt::format("{:#x}u", payload_digest(lane.weights)), "its digest");
  const size_t folded = lane.weights.folded.size();
  field(folded == 0 ? "nullptr, 0" : fmt::format("kFolded, {}", folded), "tensors computed into it");
  field(fmt::format("kPlacements, {}", lane.weights.placements.size()), "constants");
  field(fmt::format("kForms, {}", lane.forms.size()), "steps");
  number(lane.forms[0].cut.identity.ctx, "context");
  number(lane.forms[0].schedule.vocabulary, "rows of logits");
  number(sequences, "sequences");
  number(r.weight_bytes, "weights, bytes");
  number(r.fixed_weight_bytes, "of them vectors and tables");
  number(r.state_bytes, "carried state, bytes");
  number(r.arena_bytes, "arena, bytes");
  number(r.logits_bytes, "logits, bytes");
  number(r.io_bytes, "inputs, bytes");
  field(fmt::format("kLeaving, {}, kLeavingMatrices", r.leaving.size()), "what leaves when memory is short");
  number(lane.options.chip == "host" ? 0 : kContextReserve, "kept free, bytes");
  number(aligned(uint64_t(tokens) * 4), "of the inputs: tokens, bytes");
  number(aligned(uint64_t(sequences) * 4), "of the inputs: each other array, bytes");
  field(lane.options.cuda_graphs ? "true" : "false", "steps are captured");
  field("prepare, &kVocabulary", "functions and tables");
  return text + "};\n";
}

}  // namespace

std::string program_tables(const Lane& lane) {
  return shards_table(lane) + "\n" + folded_table(lane) + placements_table(lane) + "\n" +
         leaving_tables(lane.residence) + "\n" + forms_table(lane) + "\n" + program_info(lane);
}

}  // namespace lane
