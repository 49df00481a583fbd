// The entries of a radial kernel of compact support: exact distances of the pairs a cheap bound lets
// through, and the kernel's value from a table.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "rows.hpp"

namespace hilbin {

// Squared distances in double, by direct subtraction: exact for duplicates and the same for (x, y)
// and (y, x), which the expansion |x|^2 + |y|^2 - 2 <x, y> is not.
template <class T> struct DenseDistance {
  const T *x, *y;
  ptrdiff_t columns;
  double operator()(ptrdiff_t i, ptrdiff_t j) const {
    constexpr int lanes = 8;
    const T *a = x + i * columns, *b = y + j * columns;
    double sum[lanes] = {};
    ptrdiff_t k = 0;
    for (; k + lanes <= columns; k += lanes)
      for (int l = 0; l < lanes; ++l) {
        const double t = double(a[k + l]) - double(b[k + l]);
        sum[l] += t * t;
      }
    for (; k < columns; ++k) sum[0] += (double(a[k]) - double(b[k])) * (double(a[k]) - double(b[k]));
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
};

template <class T> struct CsrDistance {  // column indices sorted within a row
  CsrRows<T> x, y;
  double operator()(ptrdiff_t i, ptrdiff_t j) const {
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

// Pairs that may be closer than the support: cross[i, j] is <x, y> in float, whose rounding `slack`
// bounds relative to |x|^2 + |y|^2. Written so that overflow (inf, nan) counts as "may be".
struct Candidates {
  const float *cross, *x_norms, *y_norms;
  ptrdiff_t n_columns;
  float support, slack;  // support: squared
  bool near(ptrdiff_t i, ptrdiff_t j) const {
    const float norms = x_norms[i] + y_norms[j];
    return !(norms - 2 * cross[i * n_columns + j] > support + slack * norms);
  }
};

// Fills one band of CSR rows and returns how many entries it has; indices and values have room for
// all of the band. `table` holds, for each of n_cells equal cells of u = distance / support in
// [0, 1], the four coefficients of a cubic in u - start.
template <class T, class Distance>
int64_t fill(const Candidates& c, const Distance& distance, ptrdiff_t first_row, ptrdiff_t n_rows,
             double support, const double* table, ptrdiff_t n_cells, int32_t* indices, T* values,
             int64_t* row_counts) {
  int64_t filled = 0;
  std::vector<int32_t> near(c.n_columns + 1);
  for (ptrdiff_t i = 0; i < n_rows; ++i) {
    ptrdiff_t n_near = 0;
    for (ptrdiff_t j = 0; j < c.n_columns; ++j) {  // no branch to predict
      near[n_near] = int32_t(j);
      n_near += c.near(i, j);
    }
    const int64_t start = filled;
    for (ptrdiff_t k = 0; k < n_near; ++k) {
      const double d2 = distance(first_row + i, near[k]);
      if (!(d2 < support)) continue;
      const double position = std::sqrt(d2 / support) * double(n_cells);
      const ptrdiff_t cell = std::min(ptrdiff_t(position), n_cells - 1);
      const double h = (position - double(cell)) / double(n_cells);
      const double* p = table + 4 * cell;
      indices[filled] = near[k];
      // The cubic may dip below 0 by its rounding where the kernel has all but vanished.
      values[filled++] = T(std::max(0.0, p[0] + h * (p[1] + h * (p[2] + h * p[3]))));
    }
    row_counts[i] = filled - start;
  }
  return filled;
}

}  // namespace hilbin
