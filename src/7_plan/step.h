// A step folded over its sequences: what planning works on between the graph and the launches.
//
// note [folding]
// A batch's text says a per-sequence op once a sequence: over `item b of q`, `keys_0_s<b>` and `pos_s<b>`. Here such a
// family is one op over arrays whose rows lie one sequence below the other: `item b of q` is a view of q's rows and
// `[a_s0, a_s1]` is the family's own array. Two ops belong to one family when they are of different sequences and agree
// in everything else: kind, options, and operands counted from their sequence's first row. Decode and prefill have one
// sequence, and every op is a family of one.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "lane/plan.h"

namespace lane {

/// What an op reads or writes.
struct Ref {
  enum class Kind { None, Array, Weight, State, Io };
  Kind kind = Kind::None;
  int index = -1;               // of Step::arrays, Weights::placements or Step::states; the Io's number
  int64_t row = 0, column = 0;  // Array: where it begins; a part of a row is of one row alone
  Shape shape;                  // of the part it names
  int sequence = -1;            // State and Io of one sequence; -1: all of them
  bool operator==(const Ref&) const = default;
};

/// An array that an op of the step computes.
struct StepArray {
  enum class Kind { Buffer, Logits, Next, Inner };  // Inner: fused away
  std::string name;
  Shape shape;
  bool integers = false;
  Kind kind = Kind::Buffer;
};

/// What fusion makes of several ops; None: an op of the graph.
enum class Fused {
  None,
  Products,
  GatedProduct,
  AttentionInputs,
  SplitAttention,
  ChunkAttention,
  Routing,
  ExpertGate,
  Convolution,
  Delta,
  DeltaChunk,
  Choice,
  Chain
};

/// What fusion adds to a product of a matrix, or (the residual) to an rms norm: absent where the Ref is of Kind::None.
struct Parts {
  Ref norm;            // weight of an rms norm of the activations
  double epsilon = 0;  // of that norm
  Ref bias, residual;  // added to the result in this order
  // The vector is a sum that the product's own blocks make: post and post_epsilon are the norm of x in it.
  Ref post, carried, sum;
  double post_epsilon = 0;
  bool prepares = false;  // the product's own blocks quantize its activations
  bool grouped = false;   // a product of chosen experts goes by expert, not by choice
  bool any() const {
    return prepares || grouped || post.kind != Ref::Kind::None || norm.kind != Ref::Kind::None ||
           bias.kind != Ref::Kind::None || residual.kind != Ref::Kind::None;
  }
};

struct StepOp {
  OpKind kind = OpKind::Sum;
  Fused fused = Fused::None;
  std::vector<Ref>
      operands;  // the phrase's, attention's sinks absent or not; then a Rotation's table, a Write's position
  std::vector<std::pair<OptionKey, double>> options;
  Ref result;  // none where a fused op's members have one each
  Parts parts;
  std::vector<StepOp> members;  // of a fused op, without the operands that they share: those are its own
  std::vector<int> ops;         // of the graph
  int sequences = 1;            // for which it has been said
  bool has(OptionKey key) const;
  double option(OptionKey key, double otherwise = 0) const;
  int64_t integer(OptionKey key, int64_t otherwise = 0) const;
  /// Everything it reads and everything it writes, its members' too.
  std::vector<Ref> reads() const, writes() const;
};

struct Step {
  std::vector<StepArray> arrays;
  std::vector<State> states;
  uint64_t state_stride = 0;
  int arrivals = -1;  // as in States
  int links = -1;
  std::vector<StepOp> ops;
};

/// Throws NoKernelError where a batch's ops are not the same for every sequence.
Step fold(const Cut& cut, const StepGraph& graph, const Weights& weights, const Options& options, const Chip& chip);

/// "keys_3_s1" is "keys_3" of sequence 1; a name without the suffix is of sequence 0.
std::pair<std::string, int> split_sequence(const std::string& name);
/// The number at a name's end, or -1: "keys_3" is layer 3's.
int layer_of_name(const std::string& name);
/// How many launches compute what each layer makes.
std::vector<int> launches_of_layers(const StepGraph& graph, const std::vector<Launch>& launches);

/// The carried state of a graph, a slot's layout: the same for every form of a model. The map gives each Carried
/// value's state and sequence.
struct StatePlace {
  int state = 0, sequence = 0;
};
struct States {
  std::vector<State> states;
  uint64_t stride = 0;
  std::map<ValueId, StatePlace> of_value;
  int arrivals = -1;  // of `states`: the counters of split attention, zero between launches; -1: none are needed
  int links = -1;     // the first of kLinks: what the blocks of chained products hand each other; +0 between steps
};
constexpr int kLinks = 3;
States place_states(const Cut& cut, const StepGraph& graph, const Options& options, const Chip& chip);

}  // namespace lane
