// Views of a matrix as rows of prepared numbers ("planes"): dense with any strides, or CSR.
#pragma once
#include <cstddef>
#include <cstdint>

namespace hilbin {

constexpr int max_planes = 3;

template <class T> struct DenseRows {
  const T* plane[max_planes];
  ptrdiff_t row_stride[max_planes], column_stride[max_planes];
  int columns;

  // out[column * step] = the row's values of plane p, for columns [begin, end).
  void copy(int p, ptrdiff_t row, int begin, int end, T* out, ptrdiff_t step) const {
    const T* from = plane[p] + row * row_stride[p];
    const ptrdiff_t stride = column_stride[p];
    for (int c = begin; c < end; ++c) out[(c - begin) * step] = from[c * stride];
  }
};

template <class T> struct CsrRows {
  const T* plane[max_planes];  // the stored values
  T zero[max_planes];          // what a value that is not stored reads as
  const int32_t* indices;
  const int64_t* indptr;
  int columns;
};

}  // namespace hilbin
