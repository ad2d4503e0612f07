// What `lanec inspect` prints of a checkpoint. As text it is to_text() of lane/gguf.h.
#pragma once
#include <string>

#include "lane/gguf.h"

namespace lane {

/// One JSON object, indented by two spaces, a newline at the end:
///   files     [{version, bytes, data_start, alignment}], one a shard
///   metadata  {key: {type, value}} in file order; arrays: {type, count, value}, value holding the first 64 elements
///             (none of an array of arrays)
///   tensors   [{name, type, shape, shard, offset, bytes}] in file order; shape as GGUF writes it, columns first
///   totals    {type: {tensors, elements, bytes}}
/// ASCII alone, the rest as \uNNNN; U+FFFD where text is no valid UTF-8. A real that JSON has no number for is null.
std::string inspect_json(const Checkpoint& checkpoint);

}  // namespace lane
