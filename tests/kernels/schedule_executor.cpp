#include "kernels/schedule_executor.h"

#include <cstring>
#include <map>
#include <stdexcept>

#include "kernels/device_array.h"
#include "kernels/kernel_registry.h"
#include "layout/all.cuh"
#include "layout/repack.cuh"
#include "ops/position.cuh"
#include "ops/shown.cuh"
#include "ops/widen.cuh"

namespace lane::test {
namespace {

using Bytes = std::unique_ptr<DeviceArray<uint8_t>>;
constexpr unsigned kThreads = 256;

Bytes bytes_of(const void* data, size_t size) {
  const auto* first = static_cast<const uint8_t*>(data);
  return std::make_unique<DeviceArray<uint8_t>>(std::vector<uint8_t>(first, first + size));
}

dim3 blocks_of(uint64_t count) { return dim3(unsigned((count + kThreads - 1) / kThreads)); }

const std::byte* stored(const Placement& placement, const Checkpoint& checkpoint, const Weights& weights) {
  if (placement.in_sidecar) return weights.payload.data() + placement.offset;
  return checkpoint.shards[size_t(placement.shard)].bytes.data() + placement.offset;
}

using Repack = void (*)(uint8_t*, const uint8_t*, int, int, int, int);
Repack repack_kernel(const Format& format) {
  namespace program = LANE_NAMESPACE;
  static const std::map<std::string_view, Repack> kernels = {
      {"F16", program::repack<program::RepackedF16>},      {"BF16", program::repack<program::RepackedBF16>},
      {"Q3_K", program::repack<program::RepackedQ3_K>},    {"Q4_0", program::repack<program::RepackedQ4_0>},
      {"Q4_1", program::repack<program::RepackedQ4_1>},    {"Q4_K", program::repack<program::RepackedQ4_K>},
      {"Q5_0", program::repack<program::RepackedQ5_0>},    {"Q5_1", program::repack<program::RepackedQ5_1>},
      {"Q5_K", program::repack<program::RepackedQ5_K>},    {"Q6_K", program::repack<program::RepackedQ6_K>},
      {"Q8_0", program::repack<program::RepackedQ8_0>},    {"IQ4_NL", program::repack<program::RepackedIQ4_NL>},
      {"IQ4_XS", program::repack<program::RepackedIQ4_XS>}};
  return kernels.at(format.name);
}

/// What the program's loader makes of a placement, on the device.
Bytes load(const Placement& placement, const std::byte* data) {
  namespace program = LANE_NAMESPACE;
  Bytes raw = bytes_of(data, placement.bytes);
  if (placement.layout == DeviceLayout::AsStored) return raw;
  Bytes result = std::make_unique<DeviceArray<uint8_t>>(placement.device_bytes);
  auto* out = reinterpret_cast<float*>(result->data());
  const auto count = uint64_t(placement.shape.elements());
  if (placement.layout == DeviceLayout::Repacked) {
    const int rows = int(placement.shape.rows), columns = int(placement.shape.columns);
    expect_success(program::launch(nullptr, blocks_of(count / 32), dim3(kThreads), 0, repack_kernel(*placement.format),
                                   result->data(), raw->data(), 0, rows, rows, columns));
  } else if (placement.layout == DeviceLayout::RotaryTable) {
    const int pairs = int(placement.shape.columns / 2), entries = int(count / 2);
    expect_success(program::launch(nullptr, blocks_of(count), dim3(kThreads), 0, program::rotary_table, out,
                                   reinterpret_cast<const double*>(raw->data()), entries, pairs, placement.magnitude));
  } else if (placement.format->name == "F16") {
    expect_success(program::launch(nullptr, blocks_of(count), dim3(kThreads), 0, program::widen_f16, out,
                                   reinterpret_cast<const __half*>(raw->data()), int64_t(count)));
  } else if (placement.format->name == "BF16") {
    expect_success(program::launch(nullptr, blocks_of(count), dim3(kThreads), 0, program::widen_bf16, out,
                                   reinterpret_cast<const __nv_bfloat16*>(raw->data()), int64_t(count)));
  } else {
    return raw;
  }
  expect_success(cudaDeviceSynchronize());
  return result;
}

std::string registered_name(const Launch& launch) {
  std::string name(launch.kernel->name);
  for (size_t i = 0; i < launch.template_arguments.size(); i++) name += (i ? ", " : "<") + launch.template_arguments[i];
  return launch.template_arguments.empty() ? name : name + ">";
}

}  // namespace

struct ScheduleExecutor::Memory {
  std::vector<Bytes> weights;
  uint64_t state_stride = 0;
  Bytes state;
  std::vector<State> links;
  std::vector<int> next_tokens, next_positions;
};

namespace {

/// The arrays of one step.
struct StepMemory {
  std::vector<Bytes> buffers;
  DeviceArray<float> logits;
  DeviceArray<int> tokens, positions, slots, next, turns, shown;

  StepMemory(const Schedule& schedule, const std::vector<int>& tokens_, const std::vector<int>& positions_,
             const std::vector<int>& slots_)
      : logits(size_t(schedule.logit_rows * schedule.vocabulary)),
        tokens(tokens_),
        positions(positions_),
        slots(slots_),
        next(size_t(schedule.logit_rows)),
        turns(std::vector<int>(positions_.size())),
        shown(positions_.size() * LANE_NAMESPACE::kShownSteps) {
    for (const Buffer& buffer : schedule.buffers)
      buffers.push_back(std::make_unique<DeviceArray<uint8_t>>(buffer.bytes));
  }

  int* io(Io which) const {
    switch (which) {
      case Io::Tokens:
        return tokens.data();
      case Io::Positions:
        return positions.data();
      case Io::Slots:
        return slots.data();
      case Io::Next:
        return next.data();
      case Io::Turns:
        return turns.data();
      case Io::Shown:
        return shown.data();
    }
    return nullptr;
  }
};

struct ValueOf {
  const Schedule& schedule;
  const StepMemory& step;
  const std::vector<Bytes>& weights;
  uint8_t* state;

  KernelValue operator()(const BufferArg& a) const {
    return {.pointer = step.buffers[size_t(a.buffer)]->data() + a.byte_offset};
  }
  KernelValue operator()(const WeightArg& a) const { return {.pointer = weights[size_t(a.placement)]->data()}; }
  KernelValue operator()(const StateArg& a) const {
    return {.pointer = state + schedule.states[size_t(a.state)].offset};
  }
  KernelValue operator()(const IoArg& a) const { return {.pointer = step.io(a.io)}; }
  KernelValue operator()(const LogitsArg& a) const {
    return {.pointer = step.logits.data() + a.byte_offset / sizeof(float)};
  }
  KernelValue operator()(const NullArg&) const { return {}; }
  KernelValue operator()(int64_t value) const { return {.integer = value}; }
  KernelValue operator()(double value) const { return {.real = value}; }
};

}  // namespace

const Chip& device_chip() {
  std::string name = "host";
#if defined(__CUDACC__)
  cudaDeviceProp properties;
  expect_success(cudaGetDeviceProperties(&properties, 0));
  name = "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
#endif
  const Chip* chip = find_chip(name);
  if (!chip) throw std::runtime_error("no chip " + name);
  return *chip;
}

ScheduleExecutor::ScheduleExecutor(const Checkpoint& checkpoint, const Weights& weights, uint64_t state_stride,
                                   int slots)
    : memory_(std::make_unique<Memory>()) {
  for (const Placement& placement : weights.placements)
    memory_->weights.push_back(load(placement, stored(placement, checkpoint, weights)));
  const std::vector<uint8_t> zeros(std::max<uint64_t>(state_stride, 1) * uint64_t(slots));
  memory_->state_stride = state_stride;
  memory_->state = bytes_of(zeros.data(), zeros.size());
}

ScheduleExecutor::~ScheduleExecutor() = default;

ScheduleExecutor::Outcome ScheduleExecutor::run(const Schedule& schedule, const std::vector<int>& tokens,
                                                const std::vector<int>& positions, const std::vector<int>& slots) {
  if (schedule.state_stride != memory_->state_stride) throw std::runtime_error("the schedule has another state");
  if (tokens.size() != size_t(schedule.sequences * schedule.rows_per_sequence)) throw std::runtime_error("token count");
  memory_->links.clear();
  for (const State& state : schedule.states)
    if (state.name.starts_with("link_")) memory_->links.push_back(state);
  const StepMemory step(schedule, tokens, positions, slots);
  const ValueOf value_of{schedule, step, memory_->weights, memory_->state->data()};
  for (const Launch& launch : schedule.launches) {
    std::vector<KernelValue> values;
    for (const Arg& arg : launch.args) values.push_back(std::visit(value_of, arg));
    registered_kernel(registered_name(launch)).launch(launch.grid, launch.block, launch.shared_bytes, values.data());
  }
  expect_success(cudaDeviceSynchronize());
  memory_->next_tokens = step.tokens.values();
  memory_->next_positions = step.positions.values();
  return {step.logits.values(), step.next.values()};
}

const std::vector<int>& ScheduleExecutor::next_tokens() const { return memory_->next_tokens; }
const std::vector<int>& ScheduleExecutor::next_positions() const { return memory_->next_positions; }

std::vector<uint8_t> ScheduleExecutor::state(int slot) const {
  const std::vector<uint8_t> all = memory_->state->values();
  const auto first = all.begin() + ptrdiff_t(uint64_t(slot) * memory_->state_stride);
  std::vector<uint8_t> state(first, first + ptrdiff_t(memory_->state_stride));
  for (const State& link : memory_->links) std::fill_n(state.begin() + ptrdiff_t(link.offset), link.bytes, uint8_t(0));
  return state;
}

}  // namespace lane::test
