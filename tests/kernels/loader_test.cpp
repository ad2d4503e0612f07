// Weights come to the device whole whatever pieces their file is read in.
#include "runtime/loader.cuh"

#include <gtest/gtest.h>

#include "kernels/device_array.h"
#include "kernels/random_blocks.h"
#include "layout/all.cuh"
#include "layout/repack.cuh"
#include "ops/finite.cuh"
#include "quant/all.cuh"
#include "support/files.h"

namespace lane::test {
namespace {

namespace program = LANE_NAMESPACE;

/// `count` random blocks of `bytes` bytes, each with its one scale's exponent ending in byte `exponent`: none is
/// infinite.
std::vector<uint8_t> finite_blocks(size_t count, size_t bytes, size_t exponent, uint32_t seed) {
  std::vector<uint8_t> blocks = random_bytes(count * bytes, seed);
  for (size_t at = exponent; at < blocks.size(); at += bytes) blocks[at] &= 0x3f;
  return blocks;
}

std::vector<uint8_t> repacked_at_once(const program::PlacementInfo& p, const std::vector<uint8_t>& stored) {
  const DeviceArray<uint8_t> from(stored), to(p.device_bytes);
  const int threads = p.rows * (p.columns / 32);
  run_kernel(p.repack, dim3(unsigned(threads + 255) / 256), 256, 0, to.data(), from.data(), 0, p.rows, p.rows,
             p.columns);
  return to.values();
}

/// A file of three arrays, and the program that has them.
class LoaderPieces : public testing::Test {
 protected:
  void SetUp() override {
    add<program::Q5_0, program::RepackedQ5_0>(16001, 896, finite_blocks(16001 * 28, 22, 1, 1));
    add_vector(300, finite_blocks(300, 4, 3, 2));
    add<program::Q8_0, program::RepackedQ8_0>(5003, 1024, finite_blocks(5003 * 32, 34, 1, 3));
    info_.placements = placements_.data(), info_.placement_count = int(placements_.size());
    info_.weight_bytes = device_end_, info_.fixed_weight_bytes = kFixedBytes;
    info_.shards = &shard_, info_.shard_count = 1;
    shard_ = {kDataStart + data_.size(), kDataStart, 0, digest_of_data()};
  }

  program::PlacementInfo& add_array(int rows, int columns, std::vector<uint8_t> bytes) {
    program::PlacementInfo p = {};
    p.name = "array", p.rows = rows, p.columns = columns;
    p.offset = kDataStart + data_.size(), p.bytes = bytes.size();
    data_.append(bytes.begin(), bytes.end());
    arrays_.push_back(std::move(bytes));
    placements_.push_back(p);
    return placements_.back();
  }
  /// On the device, matrices lie behind what is fixed.
  template <class Format, class Layout>
  void add(int rows, int columns, std::vector<uint8_t> bytes) {
    program::PlacementInfo& p = add_array(rows, columns, std::move(bytes));
    p.load = program::Load::Repacked;
    p.finite = program::first_not_finite<Format>, p.repack = program::repack<Layout>;
    p.device_offset = device_end_;
    p.device_bytes = program::repacked_bytes(Layout::kBytes256, size_t(rows), columns);
    device_end_ += (p.device_bytes + 255) / 256 * 256;
  }
  void add_vector(int count, std::vector<uint8_t> bytes) {
    program::PlacementInfo& p = add_array(1, count, std::move(bytes));
    p.load = program::Load::Float32, p.finite = program::first_not_finite<program::F32>;
    p.device_bytes = p.bytes;
  }

  uint64_t digest_of_data() const {
    program::PieceDigest sum;
    for (size_t at = 0; at < data_.size(); at += program::kPieceBytes)
      sum.add(data_.data() + at, std::min(program::kPieceBytes, data_.size() - at));
    return sum.value();
  }

  static constexpr uint64_t kDataStart = 480, kFixedBytes = 2048;
  std::vector<std::vector<uint8_t>> arrays_;
  std::string data_;
  std::vector<program::PlacementInfo> placements_;
  uint64_t device_end_ = kFixedBytes;
  program::ShardInfo shard_ = {};
  program::ProgramInfo info_ = {};
};

/// Of matrices whose rows lie across the ends of pieces.
TEST_F(LoaderPieces, OfAFileGiveWhatTheWholeFileGives) {
  ASSERT_GT(data_.size(), 3 * program::kPieceBytes);
  const TempFolder folder;
  write_file(folder / "file", std::string(kDataStart, '\0') + data_);
  program::Shards shards;
  shards.files.resize(1);
  ASSERT_TRUE(shards.files[0].open(folder / "file").ok());
  program::Matrices matrices(info_);
  expect_success(matrices.allocate());
  const program::Status status = program::Loader(info_, matrices).load(shards, {}, true);
  ASSERT_TRUE(status.ok()) << status.message;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const program::PlacementInfo& p = placements_[i];
    std::vector<uint8_t> loaded(p.device_bytes);
    expect_success(cudaMemcpy(loaded.data(), matrices.home(int(i)), loaded.size(), cudaMemcpyDeviceToHost));
    EXPECT_TRUE(loaded == (p.repack ? repacked_at_once(p, arrays_[i]) : arrays_[i])) << "array " << i;
  }
}

}  // namespace
}  // namespace lane::test
