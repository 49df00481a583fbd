// Symmetric matrices by their entries above the diagonal, row by row, as SciPy's pdist has them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "gram.hpp"

namespace hilbin {

// Where the entries of row i begin.
inline ptrdiff_t upper_begin(ptrdiff_t i, ptrdiff_t n) { return i * (n - 1) - i * (i - 1) / 2; }

// The sums of rows [begin, end) with all rows after them, tile by tile.
template <class Op, class T>
void upper_sums(const Op& op, DenseRows<T> rows, ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end, T* upper) {
  constexpr ptrdiff_t height = 96, width = 192, panel = panel_rows<Op, T>;
  static_assert(height % panel == 0);
  const ptrdiff_t per_row = ptrdiff_t(rows.columns) * Op::planes, left = n - begin;
  const std::unique_ptr<T[]> tile(new T[height * width]), packed(new T[(left + panel - 1) / panel * panel * per_row]);
  const auto skip = [&](ptrdiff_t some) {
    for (int p = 0; p < Op::planes; ++p) rows.plane[p] += some * rows.row_stride[p];
  };
  skip(begin);
  pack<Op, T>(rows, 0, left, packed.get());
  for (ptrdiff_t i0 = begin; i0 < end; i0 += height) {
    const ptrdiff_t i1 = std::min(i0 + height, end);
    for (ptrdiff_t j0 = i0; j0 < n; j0 += width) {
      const ptrdiff_t columns = std::min(width, n - j0);
      band(op, rows, 0, i1 - i0, packed.get() + (j0 - begin) * per_row, columns, tile.get(), columns, false);
      for (ptrdiff_t i = i0; i < i1; ++i) {
        const ptrdiff_t j = std::max(i + 1, j0);
        const T* row = tile.get() + (i - i0) * columns;
        if (j < j0 + columns) std::copy(row + (j - j0), row + columns, upper + upper_begin(i, n) + (j - i - 1));
      }
    }
    skip(i1 - i0);
  }
}

template <class T> void fold_upper(const T* C, ptrdiff_t n, T* upper) {
  for (ptrdiff_t i = 0; i < n; ++i) upper = std::copy(C + i * n + i + 1, C + (i + 1) * n, upper);
}

template <class T> void unfold_upper(const T* upper, const T* diagonal, ptrdiff_t n, T* C) {
  for (ptrdiff_t i = 0; i < n; ++i) {
    C[i * n + i] = diagonal[i];
    std::copy(upper + upper_begin(i, n), upper + upper_begin(i + 1, n), C + i * n + i + 1);
  }
  mirror(C, n, n, 0, n);
}

// K - 1 m' - m 1' + mean(m), m the means of the rows of K.
inline void center_upper(double* upper, double* diagonal, ptrdiff_t n) {
  constexpr int L = lanes<double>;
  std::vector<double> shift(diagonal, diagonal + n);  // sums of the rows
  double* row = upper;
  for (ptrdiff_t i = 0; i < n; row += n - 1 - i, ++i) {
    const ptrdiff_t count = n - 1 - i;
    double* others = shift.data() + i + 1;
    Vec<double> sums[2] = {};
    ptrdiff_t j = 0;
    for (; j + 2 * L <= count; j += 2 * L)
      for (int s = 0; s < 2; ++s) {
        const Vec<double> v = load(row + j + s * L);
        sums[s] += v;
        store(others + j + s * L, load(others + j + s * L) + v);
      }
    double sum = 0;
    for (int l = 0; l < L; ++l) sum += sums[0][l] + sums[1][l];
    for (; j < count; ++j) sum += row[j], others[j] += row[j];
    shift[i] += sum;
  }
  double mean = 0;
  for (double& s : shift) s /= double(n), mean += s;
  mean /= double(n);
  for (double& s : shift) s -= mean / 2;
  row = upper;
  for (ptrdiff_t i = 0; i < n; row += n - 1 - i, ++i) {
    const double own = shift[i], *others = shift.data() + i + 1;
    diagonal[i] -= 2 * own;
    for (ptrdiff_t j = 0; j < n - 1 - i; ++j) row[j] -= own + others[j];
  }
}

}  // namespace hilbin
