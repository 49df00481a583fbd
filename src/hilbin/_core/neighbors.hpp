// The entries of a radial kernel of compact support: exact distances of the pairs a cheap bound lets
// through, and the kernel's value from a table.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"

namespace hilbin {

constexpr int batch = lanes<double>;  // distances computed side by side

// Squared distances in double of row i of x to a batch of rows of y, by direct subtraction: exact
// for duplicates and the same for (x, y) and (y, x), which the expansion |x|^2 + |y|^2 - 2 <x, y> is
// not.
template <class T> struct DenseDistance {
  const T *x, *y;
  ptrdiff_t columns;
  ptrdiff_t row_bytes() const { return columns * ptrdiff_t(sizeof(T)); }
  Vec<double> operator()(ptrdiff_t i, const int32_t* j) const {
    const T *a = x + i * columns, *b[batch];
    for (int n = 0; n < batch; ++n) b[n] = y + j[n] * columns;
    Vec<double> sum[batch] = {}, total = {};
    ptrdiff_t k = 0;
    for (; k + lanes<double> <= columns; k += lanes<double>)
#pragma GCC unroll 4
      for (int n = 0; n < batch; ++n) {
        const Vec<double> t = load_doubles(a + k) - load_doubles(b[n] + k);
        sum[n] += t * t;
      }
    for (int n = 0; n < batch; ++n)
      for (int l = 0; l < lanes<double>; ++l) total[n] += sum[n][l];
    for (; k < columns; ++k)
      for (int n = 0; n < batch; ++n) {
        const double t = double(a[k]) - double(b[n][k]);
        total[n] += t * t;
      }
    return total;
  }
};

template <class T> struct CsrDistance {  // column indices sorted within a row
  CsrRows<T> x, y;
  ptrdiff_t row_bytes() const { return 0; }
  Vec<double> operator()(ptrdiff_t i, const int32_t* j) const {
    Vec<double> total = {};
    for (int n = 0; n < batch; ++n) total[n] = one(i, j[n]);
    return total;
  }

 private:
  double one(ptrdiff_t i, ptrdiff_t j) const {
    int64_t a = x.indptr[i], b = y.indptr[j];
    const int64_t a_end = x.indptr[i + 1], b_end = y.indptr[j + 1];
    double sum = 0;
    while (a < a_end || b < b_end) {
      const int32_t ca = a < a_end ? x.indices[a] : x.columns, cb = b < b_end ? y.indices[b] : y.columns;
      const double t = (ca <= cb ? double(x.plane[0][a]) : 0.0) - (cb <= ca ? double(y.plane[0][b]) : 0.0);
      sum += t * t;
      a += ca <= cb;
      b += cb <= ca;
    }
    return sum;
  }
};

#if defined(__AVX2__) && !defined(__AVX512F__)
// For each set of lanes, their numbers in order.
struct LaneNumbers {
  int32_t of[256][8] = {};
  constexpr LaneNumbers() {
    for (int mask = 0; mask < 256; ++mask)
      for (int lane = 0, n = 0; lane < 8; ++lane)
        if (mask >> lane & 1) of[mask][n++] = lane;
  }
};
inline constexpr LaneNumbers lane_numbers;
#elif defined(__AVX512F__)
constexpr IntVec<float> lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#endif

// Pairs that may be closer than the support: cross[i, j] is <x, y> in float, whose rounding `slack`
// bounds relative to |x|^2 + |y|^2. Written so that overflow (inf, nan) counts as "may be".
struct Candidates {
  const float *cross, *x_norms, *y_norms;
  ptrdiff_t n_columns;
  float support, slack;  // support: squared

  // Writes the columns near row i to `out`, which has room for all, and returns their number.
  ptrdiff_t list(ptrdiff_t i, int32_t* out) const {
    const float *row = cross + i * n_columns, norm = x_norms[i];
    ptrdiff_t n = 0, j = 0;
#if defined(__AVX2__)
    for (; j + lanes<float> <= n_columns; j += lanes<float>) {
      const Vec<float> norms = norm + load(y_norms + j);
      const Vec<float> excess = (norms - 2 * load(row + j)) - (support + slack * norms);
#if defined(__AVX512F__)
      const auto mask = __mmask16(~_mm512_cmp_ps_mask(excess, Vec<float>{}, _CMP_GT_OQ));
      const auto near = IntVec<float>(_mm512_maskz_compress_epi32(mask, (__m512i)lane_numbers));
#else
      const int mask = 255 & ~_mm256_movemask_ps(_mm256_cmp_ps(excess, Vec<float>{}, _CMP_GT_OQ));
      const auto near = IntVec<float>(_mm256_loadu_si256((const __m256i*)lane_numbers.of[mask]));
#endif
      const IntVec<float> columns = near + int32_t(j);
      std::memcpy(out + n, &columns, sizeof columns);
      n += __builtin_popcount(unsigned(mask));
    }
#endif
    for (; j < n_columns; ++j) {
      const float norms = norm + y_norms[j];
      if (!((norms - 2 * row[j]) - (support + slack * norms) > 0)) out[n++] = int32_t(j);
    }
    return n;
  }
};

// The kernel as a cubic in u - start on each of n_cells equal cells of u = distance / support in
// [0, 1].
struct CompactProfile {
  const double* table;
  ptrdiff_t n_cells;
  double support;  // squared
  double to_position = double(n_cells) / std::sqrt(support), cell_size = 1 / double(n_cells);

  double operator()(double d2) const {
    const double position = std::sqrt(d2) * to_position;
    const ptrdiff_t cell = std::min(ptrdiff_t(position), n_cells - 1);
    const double h = (position - double(cell)) * cell_size;
    const double* p = table + 4 * cell;
    // The cubic may dip below 0 by its rounding where the kernel has all but vanished.
    return std::max(0.0, p[0] + h * (p[1] + h * (p[2] + h * p[3])));
  }
};

// Fills one band of CSR rows and returns how many entries it has; indices and values have room for
// all of the band. Candidates are listed first; then their distances are computed tile by tile of y,
// so that a row of y is read from the second cache by all rows of the band that need it.
template <class T, class Distance>
int64_t fill(const Candidates& c, const Distance& distance, ptrdiff_t first_row, ptrdiff_t n_rows,
             CompactProfile profile, int32_t* indices, T* values, int64_t* row_counts) {
  std::vector<int64_t> next(n_rows), end(n_rows);
  int64_t listed = 0;
  for (ptrdiff_t i = 0; i < n_rows; ++i) {
    next[i] = listed;
    listed += c.list(i, indices + listed);
    end[i] = listed;
  }
  const ptrdiff_t tile = std::max<ptrdiff_t>(64, (1 << 17) / std::max<ptrdiff_t>(1, distance.row_bytes()));
  for (ptrdiff_t j = 0; j < c.n_columns; j += tile)
    for (ptrdiff_t i = 0; i < n_rows; ++i)
      for (int64_t& at = next[i]; at < end[i] && indices[at] < j + tile;) {
        const int count = int(std::min<int64_t>(batch, end[i] - at));
        int32_t near[batch];
        for (int n = 0; n < batch; ++n) near[n] = indices[at + std::min(n, count - 1)];
        const Vec<double> d2 = distance(first_row + i, near);
        for (int n = 0; n < count; ++n, ++at) {
          if (d2[n] < profile.support) values[at] = T(profile(d2[n]));
          else indices[at] = -1;
        }
      }
  int64_t filled = 0, at = 0;
  for (ptrdiff_t i = 0; i < n_rows; ++i) {
    const int64_t start = filled;
    for (; at < end[i]; ++at)
      if (indices[at] >= 0) {
        indices[filled] = indices[at];
        values[filled++] = values[at];
      }
    row_counts[i] = filled - start;
  }
  return filled;
}

}  // namespace hilbin
