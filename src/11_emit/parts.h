// The parts of an emitted program, each printed by one file.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lane/emit.h"

namespace lane {

/// includes.cpp: the text of `roots` and of all they include, each file once, what is included first. Standard and CUDA
/// headers stay as lines; `host` leaves the host chip in. LANE_NAMESPACE becomes `prefix`.
std::string flatten(const std::set<std::string>& roots, bool host, std::string_view prefix);

/// identity.cpp: the numbers that a program knows its checkpoint by.
struct ShardIdentity {
  uint64_t file_bytes = 0, data_start = 0, header_digest = 0, data_digest = 0;
};
std::vector<ShardIdentity> identify(const Checkpoint& checkpoint);

/// sidecar.cpp: docs/sidecar.md.
std::vector<std::byte> write_sidecar(const Weights& weights, const std::string& checkpoint_path);
uint64_t payload_digest(const Weights& weights);

/// forms.cpp: the function of a form, and its name ("step_1").
std::string step_name(const Form& form);
std::string step_function(const Form& form, const Lane& lane);
/// The function of a chunk's head, of any of its rows; "" where the form has none. Its name ("head_8"), or "nullptr".
std::string head_name(const Form& form);
std::string head_function(const Form& form, const Lane& lane);
/// Events that the function uses.
int event_count(const Form& form);
/// Asks for the dynamic shared memory of each kernel that needs more than every GPU gives.
std::string prepare_function(const Lane& lane);
/// The kernel files that the lane's launches need.
std::set<std::string> kernel_files(const Lane& lane);

/// tables.cpp: the ProgramInfo and what it points to.
std::string program_tables(const Lane& lane);

}  // namespace lane
