// Any bytes as a checkpoint. Built with libFuzzer it is a fuzzer by itself.
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "fuzz/targets.h"
#include "lane/error.h"
#include "lane/inspect.h"

namespace lane::test {
namespace {

/// A file in memory: no fuzzer should wait for a disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("checkpoint", 0)) {
    if (descriptor_ < 0 || write(descriptor_, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
      throw std::runtime_error("no file in memory");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// A look-up of the wrong type is refused; all others succeed.
template <class LookUp>
void look_up(LookUp ask) {
  try {
    ask();
  } catch (const CheckpointError&) {
  }
}

void ask_everything(const Checkpoint& checkpoint) {
  verify(checkpoint);
  to_text(checkpoint);
  inspect_json(checkpoint);
  for (const MetaEntry& entry : checkpoint.metadata) {
    look_up([&] { checkpoint.integer(entry.key); });
    look_up([&] { checkpoint.signed_integer(entry.key); });
    look_up([&] { checkpoint.real(entry.key); });
    look_up([&] { checkpoint.boolean(entry.key); });
    look_up([&] { checkpoint.string(entry.key); });
    look_up([&] { checkpoint.integers(entry.key); });
    look_up([&] { checkpoint.reals(entry.key); });
    look_up([&] { checkpoint.strings(entry.key); });
  }
  // A sum of all data, so that every byte of it is touched.
  volatile unsigned sum = 0;
  for (const TensorInfo& t : checkpoint.tensors)
    for (const std::byte b : checkpoint.data(t)) sum = sum + unsigned(b);
}

}  // namespace

bool try_checkpoint(std::string_view bytes) {
  const MemoryFile file(bytes);
  Checkpoint checkpoint;
  try {
    checkpoint = read_checkpoint(file.path());
  } catch (const CheckpointError&) {
    return false;
  } catch (const FormatError&) {
    return false;
  }
  ask_everything(checkpoint);
  return true;
}

}  // namespace lane::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lane::test::try_checkpoint({reinterpret_cast<const char*>(data), size});
  return 0;
}
