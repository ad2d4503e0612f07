// The tensors of a checkpoint, taken one by one with the shape that the metadata gives them. What nobody takes is
// refused in the end.
#pragma once
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lane/architectures.h"
#include "lane/gguf.h"
#include "lane/refusals.h"
#include "lane/spec.h"
#include "size.h"

namespace lane {

/// Product of hyperparameters. Refuses with CheckpointError where it does not fit: no array of a model is that large.
Size product(const Checkpoint& checkpoint, Refusals& refusals, std::initializer_list<Size> factors);

class Tensors {
 public:
  Tensors(const Checkpoint& checkpoint, Refusals& refusals) : checkpoint_(checkpoint), refusals_(refusals) {}

  struct Dims {
    Size experts = 1, rows = 1, columns = 1;
  };

  /// Refuses with CheckpointError where the tensor is missing, ShapeError where the file's shape is another in a size
  /// that is known.
  Weight matrix(const std::string& name, Dims dims);
  Weight vector(const std::string& name, Dims dims);
  /// Absent: an empty weight, whatever the file has. Optional: empty where the file has none.
  Weight matrix(Presence presence, const std::string& name, Dims dims);
  Weight vector(Presence presence, const std::string& name, Dims dims);
  /// `base`.weight and `base`.bias; the bias has a value for each row.
  Linear linear(const std::string& base, Dims dims, Presence bias = Presence::Absent);

  bool has(const std::string& name) const { return checkpoint_.tensor(name) != nullptr; }
  /// The file's rows (ne1) of a tensor, and its columns (ne0); not known where it is missing.
  Size rows_of(const std::string& name) const;
  Size columns_of(const std::string& name) const;
  /// One more than the highest block that a name says.
  int64_t blocks() const;
  /// The last of the first `blocks`, as many as have a tensor whose name goes on with `part`: "nextn.".
  int64_t trailing_blocks(int64_t blocks, std::string_view part) const;

  const Checkpoint& checkpoint() const { return checkpoint_; }

  /// Those that nobody took and that a text model does not need: vision towers, and the `extra` blocks that follow the
  /// `layers` of the model.
  std::vector<LeftOut> left_out(int64_t layers, int64_t extra) const;
  /// Refuses with CheckpointError each tensor that nobody took and that is not left out.
  void refuse_the_rest(int64_t layers, int64_t extra) const;

  bool taken(std::string_view name) const { return taken_.contains(name); }
  /// Names of those taken whose shape was refused, and of those whose shape is not known in whole.
  const std::set<std::string, std::less<>>& misshapen() const { return misshapen_; }
  const std::set<std::string, std::less<>>& unshaped() const { return unshaped_; }

 private:
  Weight take(const std::string& name, Dims dims, bool matrix);
  CheckpointError missing(const std::string& name) const;
  std::optional<LeftOut::Part> left_out_part(const TensorInfo& info, int64_t layers, int64_t extra) const;

  const Checkpoint& checkpoint_;
  Refusals& refusals_;
  std::set<std::string, std::less<>> taken_, misshapen_, unshaped_;
};

}  // namespace lane
