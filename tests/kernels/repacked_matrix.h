// A random matrix of a format, repacked on the device, and its exact weights.
#pragma once
#include "kernels/device_array.h"
#include "kernels/random_blocks.h"
#include "layout/repack.cuh"

namespace lane::test {

using namespace LANE_NAMESPACE;

template <class L>
struct Matrix {
  Matrix(FormatId format_id, int row_count, int column_count, uint32_t seed)
      : Matrix(format_id, row_count, column_count,
               random_weights(format(format_id), size_t(row_count) * size_t(column_count), seed)) {}
  Matrix(FormatId format_id, int row_count, int column_count, const std::vector<uint8_t>& stored)
      : rows(row_count),
        columns(column_count),
        elements(size_t(row_count) * size_t(column_count)),
        repacked(repacked_bytes(L::kBytes256, size_t(row_count), column_count)) {
    const Format& f = format(format_id);
    weights = exact_values(f, stored.data(), elements);
    const int head = rows / 3;  // in two pieces, as a loader may bring it
    repack_rows(stored, 0, head, f);
    repack_rows(stored, head, rows - head, f);
  }
  void repack_rows(const std::vector<uint8_t>& stored, int first, int count, const Format& f) {
    if (count == 0) return;
    const size_t row = f.row_bytes(uint64_t(columns));
    const auto begin = stored.begin() + ptrdiff_t(row) * first;
    DeviceArray<uint8_t> piece(std::vector<uint8_t>(begin, begin + ptrdiff_t(row) * count));
    const unsigned blocks = unsigned(count * columns / kBlockColumns + 63) / 64;
    expect_success(launch(nullptr, dim3(blocks), dim3(64), 0, repack<L>, repacked.data(), piece.data(), first, count,
                          rows, columns));
    expect_success(cudaDeviceSynchronize());
  }
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(static_cast<size_t>(rows));
    for (size_t r = 0; r < y.size(); r++)
      for (size_t c = 0; c < x.size(); c++) y[r] += weights[r * x.size() + c] * x[c];
    return y;
  }
  int rows, columns;
  size_t elements;
  DeviceArray<uint8_t> repacked;
  std::vector<double> weights;
};

}  // namespace lane::test
