// The rows of a linear model for dual coordinate descent: the state is w = sum_i c_i x_i, so that a score is a product
// of a row with w, and a change of c_i adds a multiple of the row to it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "simd.hpp"

namespace hilbin {

constexpr ptrdiff_t line_bytes = 64, lines_ahead = 8;

template <class F, class R> inline Vec<F> load_as(const R* p) {
  if constexpr (std::is_same_v<F, R>) return load(p);
  else return load_doubles(p);
}

// Rows of R, weights of F: the same type, or float and double.
template <class R, class F> struct RowsState {
  const R* rows;
  F* weights;
  ptrdiff_t size;

  double score(ptrdiff_t row) const {
    const R* x = rows + row * size;
    Vec<F> sums[4] = {};  // which do not wait for each other
    ptrdiff_t j = 0;
    for (; j + 4 * lanes<F> <= size; j += 4 * lanes<F>)
      for (int k = 0; k < 4; ++k) sums[k] += load_as<F>(x + j + k * lanes<F>) * load(weights + j + k * lanes<F>);
    for (; j + lanes<F> <= size; j += lanes<F>) sums[0] += load_as<F>(x + j) * load(weights + j);
    const Vec<F> both = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double total = 0;
    for (int k = 0; k < lanes<F>; ++k) total += double(both[k]);
    for (; j < size; ++j) total += double(x[j]) * double(weights[j]);
    return total;
  }
  void update(ptrdiff_t row, double change) const {
    const R* x = rows + row * size;
    const F c = F(change);
    ptrdiff_t j = 0;
    for (; j + lanes<F> <= size; j += lanes<F>) store(weights + j, load(weights + j) + splat(c) * load_as<F>(x + j));
    for (; j < size; ++j) weights[j] += c * F(x[j]);
  }
  void prefetch(ptrdiff_t row) const {  // the first lines; the processor foresees the others
    const char* p = reinterpret_cast<const char*>(rows + row * size);
    for (ptrdiff_t k = 0; k < lines_ahead; ++k) __builtin_prefetch(p + k * line_bytes);
  }
};

template <class R, class F, class Index> struct SparseRowsState {
  const R* values;
  const int32_t* columns;
  const Index* indptr;
  F* weights;

  double score(ptrdiff_t row) const {
    F first = 0, second = 0;  // two sums, which do not wait for each other
    Index p = indptr[row];
    const Index end = indptr[row + 1];
    for (; p + 1 < end; p += 2) {
      first += F(values[p]) * weights[columns[p]];
      second += F(values[p + 1]) * weights[columns[p + 1]];
    }
    if (p < end) first += F(values[p]) * weights[columns[p]];
    return double(first) + double(second);
  }
  void update(ptrdiff_t row, double change) const {
    const F c = F(change);
    for (Index p = indptr[row]; p < indptr[row + 1]; ++p) weights[columns[p]] += c * F(values[p]);
  }
  void prefetch(ptrdiff_t row) const {
    __builtin_prefetch(values + indptr[row]);
    __builtin_prefetch(columns + indptr[row]);
  }
};

}  // namespace hilbin
