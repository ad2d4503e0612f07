// A model on the device: what it holds, and steps run one after the other.
//
// note [steps in flight]
// A step reads its token and position from the device and leaves the next ones there, so the host may queue several and
// read each chosen token later. A ring of pinned entries holds what goes in and comes out; an entry is used again only
// after its step has ended. The host runs ahead only where it was told that every chosen token will be fed: a model
// with recurrent state cannot take a step back. In a batch, the row of a sequence that has ended meanwhile computes on
// until the steps ahead are asked for; nobody reads it, and its slot is cleared before another sequence gets it.
#pragma once
#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "ops/shown.cuh"
#include "runtime/generate.h"
#include "runtime/loader.cuh"
#include "runtime/matrices.cuh"

namespace LANE_NAMESPACE {

struct EngineOptions {
  std::string checkpoint;  // empty: the path kept in the sidecar
  std::string sidecar;
  bool allow_weights_change = false;
  std::optional<bool> cuda_graphs;  // absent: as compiled
  uint64_t mem_bytes = 0;           // stands for the device's free memory; 0: ask it
  int64_t context = 0;              // positions to use, fewer than compiled; 0: all
};

class Engine {
 public:
  explicit Engine(const ProgramInfo& program) : program_(program), matrices_(program) {}
  ~Engine() { release_graphs(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Finds the sidecar and the checkpoint, and knows them to be this program's.
  Status find(const EngineOptions& options) {
    options_ = options;
    wake_device();
    Status s = read_sidecar(options.sidecar, program_.sidecar_bytes, program_.sidecar_digest, &sidecar_);
    if (!s.ok()) return s;
    s = open_shards(program_, options.checkpoint.empty() ? sidecar_.checkpoint_path : options.checkpoint, &shards_);
    // Where weights may not change, loading finds whatever changed.
    return s.ok() && options.allow_weights_change ? check_folded(program_, shards_) : s;
  }

  /// After find(): the device first, the weights last.
  Status load() {
    device_awake_.wait();
    if (Status s = check_device(); !s.ok()) return s;
    if (Status s = check_memory(options_.mem_bytes); !s.ok()) return s;
    if (Status s = cuda_status(allocate(), "allocating the model's memory"); !s.ok()) return s;
    if (Status s = Loader(program_, matrices_).load(shards_, sidecar_, !options_.allow_weights_change); !s.ok()) {
      return s;
    }
    if (Status s = reset(); !s.ok()) return s;
    if (!options_.cuda_graphs.value_or(program_.cuda_graphs)) return {};
    return cuda_status(capture(), "capturing the steps");
  }

  int sequences() const { return program_.sequences; }
  int64_t context() const { return options_.context > 0 ? options_.context : program_.context; }
  int32_t vocabulary_rows() const { return program_.vocabulary_rows; }
  int position() const { return position_; }
  /// The checkpoint's bytes before its data, where vocabulary and merges lie.
  const std::vector<uint8_t>& header() const { return shards_.header; }
  const ProgramInfo& program() const { return program_; }
  /// What a person should know of where the weights lie; empty where they are all on the device.
  std::string residence() const { return matrices_.summary(); }

  /// Feeds `count` ids from the current position on, in the largest chunks that fit. A chunk leaves its last row's
  /// logits; for a sink its head makes the others'.
  Status prefill(const int32_t* ids, size_t count, LogitsSink* sink) {
    if (Status s = check_room(count); !s.ok()) return s;
    if (Status s = check_ids(ids, count); !s.ok()) return s;
    for (size_t fed = 0; fed < count;) {
      const int form = largest_chunk(count - fed);
      if (Status s = submit(form, ids + fed); !s.ok()) return s;
      fed += size_t(program_.forms[form].rows);
      if (Status s = sink ? show(form, sink) : Status{}; !s.ok()) return s;
    }
    return {};
  }

  /// Feeds one id. Where the host runs ahead, the device has fed its own choice already, and that is this id.
  Status decode(int32_t id) {
    if (Status s = check_room(1); !s.ok()) return s;
    if (Status s = check_ids(&id, 1); !s.ok()) return s;
    if (ahead_ == 0) return submit(0, &id);
    const Fed fed{slot_, id, position_};
    return take_ahead(&fed, 1);
  }

  /// A token each for several sequences, in one step: two and more in the batch's form, whose other rows compute into
  /// slots that are free. Row i of what it gives is fed[i]'s.
  Status step(const Fed* fed, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (Status s = check_ids(&fed[i].token, 1); !s.ok()) return s;
      if (fed[i].position >= context()) return internal_error("a step past the context");
    }
    if (ahead_ > 0) return take_ahead(fed, count);
    const int form = count == 1 ? 0 : batch_form();
    if (form < 0 || count > size_t(sequences())) return internal_error("more sequences than the program has room for");
    position_ = 0;
    for (size_t i = 0; i < count; ++i) position_ = std::max(position_, int(fed[i].position) + 1);
    return queue(form, [&](const Entry& entry) { return feed_each(entry, fed, count); });
  }

  /// A promise: the next `steps` calls of decode(), or the first of them, pass what greedy_next() gave; of step()
  /// likewise, for the sequences of the latest step or fewer.
  void run_ahead(int64_t steps) { promised_ = std::clamp<int64_t>(steps, 0, context() - position_); }
  /// Steps queued and not asked for yet. Until there are none, step() takes no other sequences.
  int ahead() const { return ahead_; }

  /// The id with the greatest logit in a row of the latest step (the lowest of equals).
  Status greedy_next(int32_t* id, int row) {
    while (ahead_ < std::min<int64_t>(promised_, kAhead)) {
      if (Status s = submit_ahead(); !s.ok()) return s;
    }
    if (Status s = wait(); !s.ok()) return s;
    *id = latest().chosen[rows_[size_t(row)]];
    if (*id >= 0 && *id < vocabulary_rows()) return {};
    return internal_error("a step chose id " + std::to_string(*id) + "; its logits hold no greatest number");
  }

  /// Until the step that was asked for last is done.
  Status wait() { return cuda_status(cudaEventSynchronize(latest().done.get()), "a step"); }

  /// A row of logits of the latest step: vocabulary_rows() numbers, until the next call.
  Status logits(const float** values, int row) {
    if (ahead_ > 0) return internal_error("logits of a step that others have followed");
    const uint64_t bytes = uint64_t(vocabulary_rows()) * sizeof(float);
    const Address from = memory_.logits(uint64_t(rows_[size_t(row)]) * bytes);
    cudaError_t error = cudaMemcpyAsync(logits_.data(), from, bytes, cudaMemcpyDeviceToHost, main_stream());
    if (error == cudaSuccess) error = cudaStreamSynchronize(main_stream());
    *values = reinterpret_cast<const float*>(logits_.data());
    return cuda_status(error, "a step");
  }

  /// Back to position 0 with the state of a new sequence, in the first slot.
  Status reset() { return start(0); }

  /// The same in any slot: prefill() and decode() go there from now on.
  Status start(int slot) {
    slot_ = slot;
    position_ = ahead_ = 0;
    promised_ = 0;
    const uint64_t bytes = program_.state_bytes / uint64_t(program_.sequences);
    cudaError_t error = cudaMemsetAsync(memory_.state(uint64_t(slot) * bytes), 0, bytes, main_stream());
    if (error == cudaSuccess) error = cudaStreamSynchronize(main_stream());
    return cuda_status(error, "clearing the state");
  }

 private:
  static constexpr int kAhead = 2;  // steps queued beyond the one whose token is awaited
  static constexpr int kEntries = kAhead + 2;
  static_assert(unsigned(kEntries) <= kShownSteps, "a step's choice is read before it is written over");

  /// Pinned: what one step is fed, and what it chose.
  struct Entry {
    PinnedBlock block;
    int tokens = 0, sequences = 0;  // of the largest form
    Event done;
    int* in_tokens() const { return reinterpret_cast<int*>(block.data()); }
    int* in_positions() const { return in_tokens() + tokens; }
    int* in_slots() const { return in_positions() + sequences; }
    const int* chosen = nullptr;  // a row of shown_
  };

  static const char* advice() {
    return "; compile the checkpoint with the --chip of this GPU, and build the program as its first lines say";
  }

  /// Making the device's context takes longer than all that is read before anything is loaded, and needs none of it.
  /// What goes wrong check_device() meets again.
  void wake_device() {
    device_awake_ = std::async(std::launch::async | std::launch::deferred, [] { (void)cudaFree(nullptr); });
  }

  /// A program holds code for the architectures it was built for: say so before anything is loaded.
  Status check_device() {
    int devices = 0;
    if (Status s = cuda_status(cudaGetDeviceCount(&devices), "looking for a GPU"); !s.ok()) return s;
    if (devices == 0) return {kExitEnvironment, "Cuda: found no GPU"};
    const cudaError_t error = program_.prepare();
    if (error == cudaSuccess) return {};
    cudaDeviceProp device{};
    (void)cudaGetLastError();
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) return cuda_status(error, "asking the GPU");
    return {kExitEnvironment, std::string("Cuda: this program does not run on the GPU found, ") + device.name +
                                  " (sm_" + std::to_string(device.major) + std::to_string(device.minor) +
                                  "): " + cudaGetErrorString(error) + advice()};
  }

  Status check_memory(uint64_t mem_bytes) {
    size_t free = 0, total = 0;
    if (Status s = cuda_status(cudaMemGetInfo(&free, &total), "asking for free memory"); !s.ok()) return s;
    if (mem_bytes) free = mem_bytes;
    return matrices_.choose(free > program_.reserve_bytes ? free - program_.reserve_bytes : 0);
  }

  cudaError_t allocate() {
    LANE_TRY(matrices_.allocate());
    LANE_TRY(state_.allocate(program_.state_bytes));
    LANE_TRY(arena_.allocate(program_.arena_bytes));
    LANE_TRY(device_logits_.allocate(program_.logits_bytes));
    LANE_TRY(io_.allocate(program_.io_bytes));
    LANE_TRY(logits_.allocate(program_.logits_bytes));
    LANE_TRY(shown_.allocate(kShownSteps * size_t(1 + program_.sequences) * sizeof(int)));
    LANE_TRY(cudaMemset(io_.data(), 0, program_.io_bytes));
    const Region io{io_.data()};
    const uint64_t sequences = program_.io_tokens_bytes, each = program_.io_sequence_bytes;
    memory_ = {matrices_.fixed(), {state_.data()},      {arena_.data()},         {device_logits_.data()}, io(0),
               io(sequences),     io(sequences + each), io(sequences + 2 * each)};
    int* shown = reinterpret_cast<int*>(shown_.data());
    memory_.turns = io(sequences + 3 * each), memory_.shown = shown;
    memory_.batch_turns = io(sequences + 4 * each), memory_.batch_shown = shown + kShownSteps;
    LANE_TRY(make_entries());
    return make_streams();
  }

  cudaError_t make_entries() {
    for (Entry& entry : entries_) {
      for (int f = 0; f < program_.form_count; ++f) {
        const FormInfo& form = program_.forms[f];
        entry.tokens = std::max(entry.tokens, form.sequences * form.rows);
        entry.sequences = std::max(entry.sequences, form.sequences);
      }
      LANE_TRY(entry.block.allocate(size_t(entry.tokens + 2 * entry.sequences) * sizeof(int)));
      LANE_TRY(entry.done.create());
    }
    return cudaSuccess;
  }

  cudaError_t make_streams() {
    int events = 0;
    for (int f = 0; f < program_.form_count; ++f) events = std::max(events, program_.forms[f].events);
    events_.resize(size_t(events));
    for (Event& event : events_) {
      LANE_TRY(event.create());
      event_handles_.push_back(event.get());
    }
    for (int i = 0; i < Streams::kMost; ++i) {
      LANE_TRY(step_streams_[size_t(i)].create());
      streams_.stream[i] = step_streams_[size_t(i)].get();
    }
    streams_.events = event_handles_.data();
    return cudaSuccess;
  }

  cudaError_t capture() {
    graphs_.resize(size_t(program_.form_count), nullptr);
    for (int f = 0; f < program_.form_count; ++f) {
      cudaGraph_t graph = nullptr;
      LANE_TRY(cudaStreamBeginCapture(main_stream(), cudaStreamCaptureModeThreadLocal));
      const cudaError_t recorded = launch_step(f);
      const cudaError_t ended = cudaStreamEndCapture(main_stream(), &graph);
      cudaError_t error = recorded != cudaSuccess ? recorded : ended;
      if (error == cudaSuccess) error = cudaGraphInstantiate(&graphs_[size_t(f)], graph, 0);
      if (graph) (void)cudaGraphDestroy(graph);
      LANE_TRY(error);
    }
    return cudaSuccess;
  }

  void release_graphs() {
    for (cudaGraphExec_t graph : graphs_) {
      if (graph) (void)cudaGraphExecDestroy(graph);
    }
  }

  Status check_room(size_t count) const {
    if (count <= size_t(context() - position_)) return {};
    return usage_error(std::to_string(count) + " tokens at position " + std::to_string(position_) +
                       ": the context has room for " + std::to_string(context()));
  }

  Status check_ids(const int32_t* ids, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (ids[i] >= 0 && ids[i] < vocabulary_rows()) continue;
      return usage_error("token id " + std::to_string(ids[i]) + "; accepted are 0 to " +
                         std::to_string(vocabulary_rows() - 1));
    }
    return {};
  }

  /// The entry of the step that the caller asked for last.
  const Entry& latest() const { return entries_[size_t((steps_ - uint64_t(ahead_) - 1) % kEntries)]; }

  /// The form with the most rows that `count` tokens fill. Forms that take batches are passed over.
  int largest_chunk(size_t count) const {
    int best = 0;
    for (int f = 1; f < program_.form_count; ++f) {
      const FormInfo& form = program_.forms[f];
      if (form.sequences == 1 && size_t(form.rows) <= count && form.rows > program_.forms[best].rows) best = f;
    }
    return best;
  }

  /// The form that takes several sequences; -1 where there is none.
  int batch_form() const {
    for (int f = 1; f < program_.form_count; ++f) {
      if (program_.forms[f].sequences > 1) return f;
    }
    return -1;
  }

  /// Gives `sink` every row of the latest step, one of `form`. The last row's head runs again and leaves what it left.
  Status show(int form, LogitsSink* sink) {
    const FormInfo& info = program_.forms[form];
    if (info.rows > 1 && !info.head) return internal_error("a chunk without a head");
    for (int r = 0; r < info.rows; ++r) {
      Step step(streams_, matrices_.copies());
      if (info.head) info.head(step, memory_, uint64_t(r));
      if (Status s = cuda_status(step.error(), "a chunk's head"); !s.ok()) return s;
      const float* row = nullptr;
      if (Status s = logits(&row, 0); !s.ok()) return s;
      if (Status s = sink->row(row); !s.ok()) return s;
    }
    return {};
  }

  /// Queues the form's step at position_ with its rows' `ids`.
  Status submit(int form, const int* ids) {
    const int rows = program_.forms[form].rows;
    const Status status = queue(form, [&](const Entry& entry) {
      std::copy_n(ids, rows, entry.in_tokens());
      entry.in_positions()[0] = position_;
      entry.in_slots()[0] = slot_;
      fed_slots_ = {slot_};
      rows_ = {0};
      return feed(entry, rows, 1);
    });
    position_ += rows;
    return status;
  }

  /// Queues one step more of the sequences fed last: the device feeds its own choices.
  Status submit_ahead() {
    const int form = fed_slots_.size() == 1 ? 0 : batch_form();
    const Status status = queue(form, [](const Entry&) { return cudaSuccess; });
    ++ahead_;
    return status;
  }

  /// What is fed has been: by the device, in the first of the steps ahead.
  Status take_ahead(const Fed* fed, size_t count) {
    rows_.clear();
    for (size_t i = 0; i < count; ++i) {
      const auto slot = std::find(fed_slots_.begin(), fed_slots_.end(), fed[i].slot);
      if (slot == fed_slots_.end()) return internal_error("a step ran ahead without this sequence");
      rows_.push_back(int(slot - fed_slots_.begin()));
      if (latest().chosen[rows_.back()] != fed[i].token) {
        return internal_error("a step ran ahead with another id than the one fed");
      }
    }
    --ahead_;
    --promised_;
    ++position_;
    return {};
  }

  /// Queues one step of a form, whose inputs `feed` puts in place.
  template <class Feed>
  Status queue(int form, const Feed& feed) {
    Entry& entry = entries_[size_t(steps_ % kEntries)];
    cudaError_t error = cudaEventSynchronize(entry.done.get());
    if (error == cudaSuccess) error = feed(entry);
    if (error == cudaSuccess) error = run(form);
    entry.chosen = next_shown(program_.forms[form].sequences);
    if (error == cudaSuccess) error = cudaEventRecord(entry.done.get(), main_stream());
    ++steps_;
    return cuda_status(error, "a step");
  }

  /// Where the step just queued shows what it chooses: steps of one sequence and of several count apart.
  const int* next_shown(int sequences) {
    const bool batch = sequences > 1;
    const int* rows = batch ? memory_.batch_shown : memory_.shown;
    return rows + shown_steps_[batch]++ % kShownSteps * unsigned(sequences);
  }

  cudaError_t feed(const Entry& entry, int tokens, int sequences) {
    const size_t each = size_t(sequences) * sizeof(int);
    LANE_TRY(cudaMemcpyAsync(memory_.tokens, entry.in_tokens(), size_t(tokens) * sizeof(int), cudaMemcpyHostToDevice,
                             main_stream()));
    LANE_TRY(cudaMemcpyAsync(memory_.positions, entry.in_positions(), each, cudaMemcpyHostToDevice, main_stream()));
    return cudaMemcpyAsync(memory_.slots, entry.in_slots(), each, cudaMemcpyHostToDevice, main_stream());
  }

  /// A row a sequence. The rows left get token 0 at position 0 of the slots left, whose state nobody reads.
  cudaError_t feed_each(const Entry& entry, const Fed* fed, size_t count) {
    std::vector<Fed> all(fed, fed + count);
    std::vector<bool> taken(static_cast<size_t>(sequences()));
    for (const Fed& f : all) taken[size_t(f.slot)] = true;
    for (int slot = 0; count > 1 && slot < sequences(); ++slot) {
      if (!taken[size_t(slot)]) all.push_back({slot, 0, 0});
    }
    fed_slots_.clear();
    rows_.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      entry.in_tokens()[i] = all[i].token;
      entry.in_positions()[i] = int(all[i].position);
      entry.in_slots()[i] = all[i].slot;
      fed_slots_.push_back(all[i].slot);
      if (i < count) rows_.push_back(int(i));
    }
    return feed(entry, int(all.size()), int(all.size()));
  }

  cudaError_t run(int form) {
    if (!graphs_.empty()) return cudaGraphLaunch(graphs_[size_t(form)], main_stream());
    return launch_step(form);
  }

  cudaError_t launch_step(int form) {
    Step step(streams_, matrices_.copies());
    program_.forms[form].launches(step, memory_);
    return step.error();
  }

  cudaStream_t main_stream() const { return streams_.stream[0]; }

  const ProgramInfo& program_;
  EngineOptions options_;
  std::future<void> device_awake_;
  Sidecar sidecar_;
  Shards shards_;
  Memory memory_;
  Matrices matrices_;
  DeviceBlock state_, arena_, device_logits_, io_;
  PinnedBlock logits_, shown_;
  std::array<Entry, kEntries> entries_;
  std::vector<Event> events_;
  std::vector<cudaEvent_t> event_handles_;
  std::array<Stream, Streams::kMost> step_streams_;
  Streams streams_;
  std::vector<cudaGraphExec_t> graphs_;
  int slot_ = 0;                   // of the sequence that prefill() and decode() continue
  int position_ = 0;               // where the next token goes; of several sequences, the longest one's
  int ahead_ = 0;                  // steps queued and not asked for
  int64_t promised_ = 0;           // further steps, those ahead included, whose tokens will be the device's choices
  uint64_t steps_ = 0;             // queued since the start
  unsigned shown_steps_[2] = {};   // of them those of one sequence, and of several
  std::vector<int> fed_slots_{0};  // of each row of the latest step
  std::vector<int> rows_{0};       // the row of each token asked for last
};

}  // namespace LANE_NAMESPACE
