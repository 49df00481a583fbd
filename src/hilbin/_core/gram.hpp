// Pairwise sums  C[i, j] = scale * sum_d op(A[i, d], B[j, d])  at the speed of the registers.
//
// B is laid out in panels of a few rows, stored column by column, so that one column of a panel is a
// run of vectors. Dense: A is packed in small blocks as it is read and meets a panel in a register
// tile (rows x vectors accumulators), as in a matrix product. Sparse: A meets the panel value by
// value, so that only stored values cost anything.
#pragma once
#include <algorithm>
#include <vector>

#include "ops.hpp"
#include "rows.hpp"

namespace hilbin {

template <class Op, class T> constexpr int panel_rows = Op::vectors * lanes<T>;

// Packs dense rows [begin, end), begin a multiple of panel_rows; the last panel is padded.
template <class Op, class T>
void pack(const DenseRows<T>& rows, ptrdiff_t begin, ptrdiff_t end, T* packed) {
  constexpr int width = panel_rows<Op, T>, P = Op::planes;
  const int d = rows.columns;
  for (ptrdiff_t first = begin; first < end; first += width) {
    T* panel = packed + first * d * P;
    if (first + width > end) std::fill(panel, panel + ptrdiff_t(width) * d * P, T(0));
    for (int p = 0; p < P; ++p)
      for (ptrdiff_t r = first; r < std::min<ptrdiff_t>(first + width, end); ++r)
        rows.copy(p, r, 0, d, panel + p * width + (r - first), width * P);
  }
}

// One register tile: a is [depth][planes][Op::rows], b is [depth][planes][panel_rows].
template <class Op, class T>
inline void register_tile(Op op, const T* a, const T* b, int depth, T* c, ptrdiff_t stride,
                          bool add) {
  constexpr int R = Op::rows, N = Op::vectors, L = lanes<T>, P = Op::planes;
  Vec<T> sum[R][N] = {};
  for (int k = 0; k < depth; ++k, a += P * R, b += P * N * L) {
    Vec<T> y[N][P];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) y[n][p] = load(b + (p * N + n) * L);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Vec<T> x[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) x[p] = splat(a[p * R + r]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[r][n] += op(x, y[n]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      T* at = c + r * stride + n * L;
      const Vec<T> value = sum[r][n] * T(Op::scale);
      store(at, add ? load(at) + value : value);
    }
}

// Copies C[rows, columns] to C[columns, rows], above the diagonal to below.
template <class T>
void mirror_block(T* C, ptrdiff_t stride, ptrdiff_t row, ptrdiff_t row_end, ptrdiff_t column,
                  ptrdiff_t column_end) {
  for (ptrdiff_t j = column; j < column_end; ++j)
    for (ptrdiff_t i = row; i < std::min(row_end, j); ++i) C[j * stride + i] = C[i * stride + j];
}

// Copies the upper triangle of rows [begin, end) onto the lower one.
template <class T> void mirror(T* C, ptrdiff_t n, ptrdiff_t stride, ptrdiff_t begin, ptrdiff_t end) {
  constexpr ptrdiff_t tile = 32;
  for (ptrdiff_t i = begin; i < end; i += tile)
    for (ptrdiff_t j = i; j < n; j += tile)
      mirror_block(C, stride, i, std::min(i + tile, end), j, std::min(j + tile, n));
}

// Copies the rows of C from `begin` on, of which `band` has the columns from `begin` on, to their mirror images too, rounded to T;
// of the square at the diagonal the upper triangle counts.
template <class S, class T>
void spread(const S* band, ptrdiff_t rows, ptrdiff_t columns, T* C, ptrdiff_t stride) {
  constexpr ptrdiff_t tile = 16;
  for (ptrdiff_t j0 = 0; j0 < columns; j0 += tile)
    for (ptrdiff_t i0 = 0; i0 < rows; i0 += tile) {
      const ptrdiff_t i1 = std::min(i0 + tile, rows), j1 = std::min(j0 + tile, columns);
      if (j1 <= i0) continue;
      for (ptrdiff_t i = i0; i < i1; ++i)
        for (ptrdiff_t j = std::max(i, j0); j < j1; ++j) C[i * stride + j] = T(band[i * columns + j]);
      for (ptrdiff_t j = j0; j < j1; ++j)
        for (ptrdiff_t i = i0; i < std::min(i1, j); ++i) C[j * stride + i] = T(band[i * columns + j]);
    }
}

// Rows [begin, end) of C from dense rows. With `symmetric` (begin a multiple of panel_rows) only the
// entries from the diagonal on are computed, and each is written to its mirror image too, which no
// other band writes.
template <class Op, class T>
void band(const Op& op, const DenseRows<T>& rows, ptrdiff_t begin, ptrdiff_t end, const T* packed,
          ptrdiff_t n_columns, T* C, ptrdiff_t stride, bool symmetric) {
  constexpr int R = Op::rows, width = panel_rows<Op, T>, P = Op::planes;
  constexpr int depth_block = 1024 / int(sizeof(T)) / P, row_block = 96;
  static_assert(row_block % R == 0 && row_block % width == 0);
  const int d = rows.columns;
  std::vector<T> block(size_t(row_block) * depth_block * P);
  for (ptrdiff_t i0 = begin; i0 < end; i0 += row_block) {
    const ptrdiff_t i1 = std::min<ptrdiff_t>(i0 + row_block, end);
    const ptrdiff_t j_first = symmetric ? i0 : 0;
    if (d == 0)
      for (ptrdiff_t i = i0; i < i1; ++i) std::fill(C + i * stride, C + i * stride + n_columns, T(0));
    for (int k0 = 0; k0 < d; k0 += depth_block) {
      const int depth = std::min(depth_block, d - k0);
      for (ptrdiff_t i = i0; i < i1; ++i)
        for (int p = 0; p < P; ++p)
          rows.copy(p, i, k0, k0 + depth,
                    block.data() + (i - i0) / R * R * depth * P + p * R + (i - i0) % R, R * P);
      for (ptrdiff_t j = j_first; j < n_columns; j += width) {
        const T* b = packed + (j * d + ptrdiff_t(k0) * width) * P;
        const ptrdiff_t i_end = symmetric ? std::min<ptrdiff_t>(i1, j + width) : i1;
        for (ptrdiff_t i = i0; i < i_end; i += R) {
          const T* a = block.data() + (i - i0) * depth * P;
          if (i + R <= i1 && j + width <= n_columns) {
            register_tile(op, a, b, depth, C + i * stride + j, stride, k0 > 0);
            continue;
          }
          T edge[R * width];
          register_tile(op, a, b, depth, edge, width, false);
          for (ptrdiff_t r = i; r < std::min<ptrdiff_t>(i + R, i1); ++r)
            for (ptrdiff_t c = j; c < std::min<ptrdiff_t>(j + width, n_columns); ++c) {
              T& at = C[r * stride + c];
              at = (k0 > 0 ? at : T(0)) + edge[(r - i) * width + (c - j)];
            }
        }
        if (symmetric && k0 + depth == d)  // while the block is in the first cache
          mirror_block(C, stride, i0, i1, j, std::min<ptrdiff_t>(j + width, n_columns));
      }
    }
  }
}

// One sparse row against a panel of `width` rows; with from_zero, sums op(x, y) - op(0, y).
template <int width, bool from_zero, class Op, class T>
inline void sparse_row(Op op, const CsrRows<T>& rows, ptrdiff_t i, const T* panel, T* sums) {
  constexpr int L = lanes<T>, N = width / L, P = Op::planes;
  Vec<T> sum[N] = {}, zero[P];
  for (int p = 0; p < P; ++p) zero[p] = splat(rows.zero[p]);
  for (int64_t e = rows.indptr[i]; e < rows.indptr[i + 1]; ++e) {
    const T* column = panel + ptrdiff_t(rows.indices[e]) * width * P;
    Vec<T> x[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) x[p] = splat(rows.plane[p][e]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      Vec<T> y[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) y[p] = load(column + (p * N + n) * L);
      if constexpr (from_zero) sum[n] += op(x, y) - op(zero, y);
      else sum[n] += op(x, y);
    }
  }
  for (int n = 0; n < N; ++n) store(sums + n * L, sum[n] * T(Op::scale));
}

// The sums of an empty row against a panel.
template <int width, class Op, class T>
void empty_row(Op op, const CsrRows<T>& rows, const T* panel, T* sums) {
  constexpr int L = lanes<T>, N = width / L, P = Op::planes;
  Vec<T> sum[N] = {}, zero[P], y[P];
  for (int p = 0; p < P; ++p) zero[p] = splat(rows.zero[p]);
  for (ptrdiff_t k = 0; k < rows.columns; ++k)
    for (int n = 0; n < N; ++n) {
      for (int p = 0; p < P; ++p) y[p] = load(panel + ((k * P + p) * N + n) * L);
      sum[n] += op(zero, y);
    }
  for (int n = 0; n < N; ++n) store(sums + n * L, sum[n] * T(Op::scale));
}

// The sum of one pair of sparse rows over the columns that either stores; all others add op(0, 0).
template <class Op, class T>
[[gnu::noinline]] T merged(Op op, const CsrRows<T>& A, ptrdiff_t i, const CsrRows<T>& B, ptrdiff_t j) {
  constexpr int L = lanes<T>, P = Op::planes;
  Vec<T> sum = {}, zero[P], x[P], y[P];
  for (int p = 0; p < P; ++p) x[p] = y[p] = zero[p] = splat(A.zero[p]);
  int64_t a = A.indptr[i], b = B.indptr[j], evaluated = 0;
  const int64_t a_end = A.indptr[i + 1], b_end = B.indptr[j + 1];
  for (int lane = 0; a < a_end || b < b_end;) {
    const bool in_a = a < a_end && (b == b_end || A.indices[a] <= B.indices[b]);
    const bool in_b = b < b_end && (a == a_end || B.indices[b] <= A.indices[a]);
    for (int p = 0; p < P; ++p) {
      x[p][lane] = in_a ? A.plane[p][a] : A.zero[p];
      y[p][lane] = in_b ? B.plane[p][b] : B.zero[p];
    }
    a += in_a, b += in_b;
    if (++lane < L && (a < a_end || b < b_end)) continue;
    sum += op(x, y);
    evaluated += L;
    lane = 0;
    for (int p = 0; p < P; ++p) x[p] = y[p] = zero[p];
  }
  T total = T(A.columns - evaluated) * op(zero, zero)[0];
  for (int lane = 0; lane < L; ++lane) total += sum[lane];
  return total * T(Op::scale);
}

template <class T> constexpr T little = T(1.0 / 1024);

// Adds the base to the sums; whether little of it is left in any of them.
template <int width, class T> inline bool add_base(const T* base, T* sums) {
  IntVec<T> cancels = {};
  for (int n = 0; n < width; n += lanes<T>) {
    const Vec<T> b = load(base + n), value = b + load(sums + n);
    cancels |= (IntVec<T>)(value < b * little<T>);
    store(sums + n, value);
  }
  bool any = false;
  for (int lane = 0; lane < lanes<T>; ++lane) any |= cancels[lane] != 0;
  return any;
}

// Columns [begin, end) of C for sparse A and B; with `upper`, only where row <= column is sure to be
// filled. B is spread over one panel at a time, so no more than a panel is ever dense. If the op
// vanishes where either argument does, an empty row sums to 0; otherwise sums start from it, and are
// computed anew where little of it is left, as the distance of two close rows, which would be rounding.
template <class Op, class T>
void columns(Op op, const CsrRows<T>& A, const CsrRows<T>& B, bool vanishes, ptrdiff_t begin,
             ptrdiff_t end, T* C, ptrdiff_t n_rows, ptrdiff_t stride, bool upper) {
  constexpr int width = 4 * lanes<T>, P = Op::planes;
  std::vector<T> panel(size_t(width) * A.columns * P);
  const auto spread = [&](ptrdiff_t row, ptrdiff_t lane, bool set) {
    for (int64_t e = B.indptr[row]; e < B.indptr[row + 1]; ++e)
      for (int p = 0; p < P; ++p)
        panel[(size_t(B.indices[e]) * P + p) * width + lane] = set ? B.plane[p][e] : B.zero[p];
  };
  for (size_t k = 0; k < size_t(A.columns); ++k)
    for (int p = 0; p < P; ++p)
      std::fill_n(panel.begin() + (k * P + p) * width, width, B.zero[p]);
  for (ptrdiff_t j0 = begin; j0 < end; j0 += width) {
    const ptrdiff_t j1 = std::min<ptrdiff_t>(j0 + width, end);
    for (ptrdiff_t j = j0; j < j1; ++j) spread(j, j - j0, true);
    T base[width] = {}, sums[width];
    if (!vanishes) empty_row<width>(op, A, panel.data(), base);
    for (ptrdiff_t i = 0; i < (upper ? std::min(j1, n_rows) : n_rows); ++i) {
      if (vanishes) sparse_row<width, false>(op, A, i, panel.data(), sums);
      else sparse_row<width, true>(op, A, i, panel.data(), sums);
      if (!vanishes && add_base<width>(base, sums))
        for (ptrdiff_t j = j0; j < j1; ++j)
          if (sums[j - j0] < base[j - j0] * little<T>) sums[j - j0] = merged(op, A, i, B, j);
      std::copy(sums, sums + (j1 - j0), C + i * stride + j0);
    }
    for (ptrdiff_t j = j0; j < j1; ++j) spread(j, j - j0, false);
  }
}

}  // namespace hilbin
