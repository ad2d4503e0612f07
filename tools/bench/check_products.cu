// Checks the repacked layouts and the streamed products on a GPU: see README.md. Exit status 1 if anything is wrong.
#include "products.cuh"

namespace bench {

/// Every weight of a repacked matrix, in double: scale * code - minimum.
template <class L>
__global__ void unpack_all(double* out, const uint8_t* repacked, int rows, int columns) {
  const int row_blocks = columns / kBlockColumns;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (task >= static_cast<int64_t>(rows) * row_blocks) return;
  const int row = static_cast<int>(task / row_blocks), row_block = static_cast<int>(task % row_blocks);
  const Slices s = slices(columns);
  const int slice = row_block / s.full, block = row_block % s.full, blocks = slice == s.count - 1 ? s.last : s.full;
  const uint8_t* p = repacked + slice_offset(L::kBytes256, static_cast<size_t>(rows), s, slice) +
                     static_cast<size_t>(row) * slice_row_bytes(L::kBytes256, blocks);
  double* to = out + static_cast<int64_t>(row) * columns + row_block * kBlockColumns;
  if constexpr (L::kFloat) {
    float w[32];
    L::decode(p, blocks, block, w);
    for (int i = 0; i < 32; i++) to[i] = w[i];
  } else {
    const UnpackedBlock u = L::unpack(p, blocks, block);
    for (int i = 0; i < 32; i++) to[i] = static_cast<double>(u.scale[i / 16]) * u.code[i] - u.minimum[i / 16];
  }
}

/// A matrix on the device, repacked in two pieces, with its weights in double.
template <class L>
struct Matrix {
  Matrix(int rows_, int columns, std::mt19937& random)
      : rows(rows_), repacked(repacked_bytes(L::kBytes256, static_cast<size_t>(rows_), columns)) {
    const lane::Format& f = lane::format(kFormat<L>);
    const auto stored = random_blocks(f, static_cast<size_t>(rows) * static_cast<size_t>(columns), random);
    weights.resize(static_cast<size_t>(rows) * static_cast<size_t>(columns));
    f.decode(reinterpret_cast<const std::byte*>(stored.data()), weights.size(), weights.data());
    const Array<uint8_t> on_device(stored);
    const int half = rows / 3;
    enqueue_repack<L>(nullptr, repacked.data(), on_device.data(), 0, half, rows, columns);
    enqueue_repack<L>(nullptr, repacked.data(),
                      on_device.data() + f.row_bytes(static_cast<uint64_t>(columns)) * static_cast<uint64_t>(half),
                      half, rows - half, rows, columns);
    BENCH_CHECK(cudaDeviceSynchronize());
  }
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(static_cast<size_t>(rows));
    for (size_t r = 0; r < y.size(); r++)
      for (size_t c = 0; c < x.size(); c++) y[r] += weights[r * x.size() + c] * x[c];
    return y;
  }
  int rows;
  Array<uint8_t> repacked;
  std::vector<double> weights;
};

int failures = 0;
void report(const std::string& what, bool ok, const std::string& detail) {
  printf("%-64s %s %s\n", what.c_str(), detail.c_str(), ok ? "ok" : "WRONG");
  failures += !ok;
}

template <class L>
void check_layout(int rows, int columns) {
  std::mt19937 random(static_cast<unsigned>(columns));
  const Matrix<L> m(rows, columns, random);
  const Array<double> out(m.weights.size());
  const auto tasks = static_cast<unsigned>(m.weights.size() / 32);
  BENCH_CHECK(
      launch(nullptr, (tasks + 255) / 256, 256, 0, unpack_all<L>, out.data(), m.repacked.data(), rows, columns));
  const std::vector<double> got = out.read();
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); i++) wrong += !(got[i] == m.weights[i]);
  report("layout " + std::string(lane::format(kFormat<L>).name) + " columns " + std::to_string(columns), wrong == 0,
         std::to_string(wrong) + " differ");
}

std::vector<float> normal_vector(int n, std::mt19937& random, float mean, float deviation, bool outliers) {
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(n));
  for (auto& x : v) x = mean + deviation * normal(random) * (outliers && random() % 50 == 0 ? 8.f : 1.f);
  return v;
}
std::vector<double> normed(const std::vector<float>& x, const std::vector<float>& norm) {
  double squares = 0;
  for (float v : x) squares += static_cast<double>(v) * v;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(1e-6f));
  std::vector<double> y(x.begin(), x.end());
  if (!norm.empty())
    for (size_t i = 0; i < y.size(); i++) y[i] = x[i] * factor * norm[i];
  return y;
}
double distance(const std::vector<float>& got, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); i++)
    difference += (got[i] - expected[i]) * (got[i] - expected[i]), size += expected[i] * expected[i];
  return std::sqrt(difference / size);
}
template <class L>
double bound(int words) {
  return words == 0 ? 1e-6 : words == 1 ? 3e-2 : kFormat<L> == lane::FormatId::Q6_K ? 2e-4 : 1e-4;
}

/// Runs `enqueue` over poisoned results for two grids, and once more; all must have the same bits, near `expected`.
void check_bits(const std::string& what, Array<float>& out, const std::vector<double>& expected, double bound,
                const std::function<void(const Chip&)>& enqueue) {
  std::vector<std::vector<float>> got;
  for (int multiprocessors : {132, 132, 57}) {
    out.poison();
    enqueue(Chip{multiprocessors});
    BENCH_CHECK(cudaDeviceSynchronize());
    got.push_back(out.read());
  }
  const bool same = !memcmp(got[0].data(), got[1].data(), 4 * got[0].size()) &&
                    !memcmp(got[0].data(), got[2].data(), 4 * got[0].size());
  const double d = distance(got[0], expected);
  char detail[64];
  snprintf(detail, sizeof detail, "%.2e%s", d, same ? "" : " BITS DIFFER");
  report(what, same && d <= bound, detail);
}

template <class L, int Columns, int Words>
std::string name_of(const char* kernel) {
  return std::string(kernel) + " " + std::string(lane::format(kFormat<L>).name) + " columns " +
         std::to_string(Columns) + " words " + std::to_string(Words);
}

template <class L, int Columns, int Words>
void check_product(int rows, bool with_norm) {
  std::mt19937 random(7);
  const Matrix<L> m(rows, Columns, random);
  const auto x = normal_vector(Columns, random, 0, 1, true);
  const auto norm = with_norm ? normal_vector(Columns, random, 1, 0.3f, false) : std::vector<float>();
  const auto bias = normal_vector(rows, random, 0, 1, false), residual = normal_vector(rows, random, 0, 1, false);
  const Array<float> dx(x), dn(norm), db(bias), dr(residual);
  Array<float> out(static_cast<size_t>(rows));
  const Vector v{dx.data(), with_norm ? dn.data() : nullptr};
  const std::vector<double> plain = m.times(normed(x, norm));
  check_bits(name_of<L, Columns, Words>(with_norm ? "norm, product" : "product"), out, plain, bound<L>(Words),
             [&](const Chip& chip) {
               enqueue_product<L, Columns, Words>(nullptr, chip, out.data(), m.repacked.data(), rows, v);
             });
  std::vector<double> added = plain;
  for (size_t i = 0; i < added.size(); i++) added[i] += static_cast<double>(bias[i]) + residual[i];
  check_bits("  + bias and residual", out, added, bound<L>(Words), [&](const Chip& chip) {
    enqueue_product<L, Columns, Words>(nullptr, chip, out.data(), m.repacked.data(), rows, v, db.data(), dr.data());
  });
}

template <class L, int Columns, int Words>
void check_gated(int rows) {
  std::mt19937 random(8);
  const Matrix<L> gate(rows, Columns, random), up(rows, Columns, random);
  const auto x = normal_vector(Columns, random, 0, 1, true), norm = normal_vector(Columns, random, 1, 0.3f, false);
  const Array<float> dx(x), dn(norm);
  Array<float> out(static_cast<size_t>(rows));
  const auto g = gate.times(normed(x, norm)), u = up.times(normed(x, norm));
  for (int gelu : {0, 1}) {
    std::vector<double> expected(g.size());
    for (size_t i = 0; i < g.size(); i++) {
      const double t = std::tanh(std::sqrt(2 / M_PI) * (g[i] + 0.044715 * g[i] * g[i] * g[i]));
      expected[i] = u[i] * (gelu ? 0.5 * g[i] * (1 + t) : g[i] / (1 + std::exp(-g[i])));
    }
    check_bits(name_of<L, Columns, Words>(gelu ? "gelu gated" : "silu gated"), out, expected, 2 * bound<L>(Words),
               [&](const Chip& chip) {
                 enqueue_gated<L, Columns, Words>(nullptr, chip, out.data(), gate.repacked.data(), up.repacked.data(),
                                                  rows, {dx.data(), dn.data()}, gelu);
               });
  }
}

template <class L0, class L1, class L2, int Columns, int Words>
void check_products(int rows0, int rows1, int rows2) {
  std::mt19937 random(9);
  const Matrix<L0> m0(rows0, Columns, random);
  const Matrix<L1> m1(rows1, Columns, random);
  const Matrix<L2> m2(rows2, Columns, random);
  const auto x = normal_vector(Columns, random, 0, 1, true), norm = normal_vector(Columns, random, 1, 0.3f, false);
  const auto bias = normal_vector(rows0 + rows1 + rows2, random, 0, 1, false);
  const Array<float> dx(x), dn(norm), db(bias);
  Array<float> out(bias.size());
  const auto xn = normed(x, norm);
  std::vector<double> expected = m0.times(xn);
  for (double v : m1.times(xn)) expected.push_back(v);
  for (double v : m2.times(xn)) expected.push_back(v);
  for (size_t i = 0; i < expected.size(); i++) expected[i] += bias[i];
  check_bits(name_of<L2, Columns, Words>("q, k, v"), out, expected, 2e-4, [&](const Chip& chip) {
    float* o = out.data();
    const float* b = db.data();
    const ProductOf p[3] = {{o, m0.repacked.data(), rows0, b},
                            {o + rows0, m1.repacked.data(), rows1, b + rows0},
                            {o + rows0 + rows1, m2.repacked.data(), rows2, b + rows0 + rows1}};
    enqueue_products<L0, L1, L2, Columns, Words>(nullptr, chip, p, {dx.data(), dn.data()});
  });
}

template <class L>
void check_columns_of_256() {
  check_layout<L>(37, 2048), check_layout<L>(37, 4864), check_layout<L>(5, 14336);
  check_product<L, 2048, 2>(1001, true), check_product<L, 2048, 1>(1001, true);
  check_product<L, 4864, 2>(896, false), check_product<L, 14336, 2>(530, false);
}
template <class L>
void check_columns_of_32() {
  check_layout<L>(37, 640), check_layout<L>(37, 896), check_layout<L>(37, 1152);
  check_product<L, 640, 2>(1001, true), check_product<L, 896, 2>(1536, true), check_product<L, 896, 1>(1536, true);
  check_product<L, 1152, 2>(300, false);
}

void check_all() {
  check_columns_of_256<RepackedQ4_K>();
  check_columns_of_256<RepackedQ6_K>();
  check_columns_of_32<RepackedQ5_0>();
  check_columns_of_32<RepackedQ8_0>();
  check_layout<RepackedF16>(37, 2048), check_layout<RepackedBF16>(37, 640);
  check_product<RepackedBF16, 2048, 0>(1001, true), check_product<RepackedBF16, 640, 0>(1001, false);
  check_product<RepackedF16, 4096, 0>(777, false), check_product<RepackedBF16, 8192, 0>(300, false);
  check_gated<RepackedQ4_K, 2048, 2>(1000), check_gated<RepackedQ5_0, 896, 2>(4864),
      check_gated<RepackedBF16, 2048, 0>(500);
  check_gated<RepackedQ4_K, 4096, 2>(1000), check_gated<RepackedQ5_0, 640, 2>(2048),
      check_gated<RepackedQ6_K, 3072, 2>(700);
  check_products<RepackedQ4_K, RepackedQ4_K, RepackedQ6_K, 2048, 2>(2048, 512, 512);
  check_products<RepackedQ5_0, RepackedQ5_0, RepackedQ8_0, 896, 2>(896, 128, 128);
  check_products<RepackedQ5_0, RepackedQ5_0, RepackedQ5_0, 640, 2>(1024, 256, 256);
}

}  // namespace bench

int main() {
  bench::check_all();
  printf(bench::failures ? "%d WRONG\n" : "all right\n", bench::failures);
  return bench::failures ? 1 : 0;
}
