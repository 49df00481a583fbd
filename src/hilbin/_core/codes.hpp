// Ranks of values and sums over them: how rows become codes, and how codes become scores.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "simd.hpp"

namespace hilbin {

// Codes of one row: all features in order, or those stored.
template <class Code> struct DenseRow {
  const Code* codes;
  ptrdiff_t size;
  ptrdiff_t feature(ptrdiff_t k) const { return k; }
};
template <class Code> struct SparseRow {
  const Code* codes;
  ptrdiff_t size;
  const int32_t* indices;
  ptrdiff_t feature(ptrdiff_t k) const { return indices[k]; }
};

template <class Code> struct DenseMatrix {
  const Code* codes;
  ptrdiff_t columns;
  DenseRow<Code> row(ptrdiff_t i) const { return {codes + i * columns, columns}; }
};
template <class Code> struct SparseMatrix {
  const Code* codes;
  const int32_t* indices;
  const int64_t* indptr;
  SparseRow<Code> row(ptrdiff_t i) const { return {codes + indptr[i], indptr[i + 1] - indptr[i], indices + indptr[i]}; }
};

// Ways from a value to a code, which is what they return rounded down. Values below the first bin are in it,
// those beyond the last in the last.
template <class T> struct EvenBins {
  const T *low, *scale, *last;
  T operator()(ptrdiff_t j, T x) const { return std::min(std::max(T(0), (x - low[j]) * scale[j]), last[j]); }
};
template <class T> struct RootBins {  // scale is that of the squared code
  const T *low, *scale, *last;
  T operator()(ptrdiff_t j, T x) const { return std::min(std::sqrt(std::max(T(0), (x - low[j]) * scale[j])), last[j]); }
};
template <class T> struct EdgeBins {
  const T* edges;  // ascending in every feature; a value equal to an edge lies above it
  const int64_t* offsets;
  T operator()(ptrdiff_t j, T x) const {
    const T* begin = edges + offsets[j];
    return T(std::upper_bound(begin, edges + offsets[j + 1], x) - begin);
  }
};

// Whether all values that were met lie within two bounds.
template <class T> class Within {
 public:
  Within(T least, T most) : least(least), most(most), lowest(splat(least)), highest(splat(most)) {}

  void meet(T value) { one &= value >= least && value <= most; }
#if defined(__AVX512F__)  // a mask of lanes stays one
  void meet(Vec<T> v) {
    if constexpr (sizeof(T) == 4) inside &= _mm512_cmp_ps_mask(v, lowest, _CMP_GE_OQ) & _mm512_cmp_ps_mask(v, highest, _CMP_LE_OQ);
    else inside &= _mm512_cmp_pd_mask(v, lowest, _CMP_GE_OQ) & _mm512_cmp_pd_mask(v, highest, _CMP_LE_OQ);
  }
  bool all() const { return one && inside == (1u << lanes<T>) - 1; }
#else
  void meet(Vec<T> v) { inside &= (v >= lowest) & (v <= highest); }
  bool all() const {
    bool every = one;
    for (int lane = 0; lane < lanes<T>; ++lane) every &= inside[lane] != 0;
    return every;
  }
#endif

 private:
  T least, most;
  Vec<T> lowest, highest;
  bool one = true;
#if defined(__AVX512F__)
  unsigned inside = (1u << lanes<T>) - 1;
#else
  IntVec<T> inside = ~IntVec<T>{};
#endif
};

#if defined(__AVX512F__)
// Codes of whole vectors, rounded down.
inline void store_codes(__m512i code, uint8_t* out) { _mm_storeu_si128((__m128i*)out, _mm512_cvtepi32_epi8(code)); }
inline void store_codes(__m512i code, uint16_t* out) { _mm256_storeu_si256((__m256i*)out, _mm512_cvtepi32_epi16(code)); }
inline void store_codes(__m512i code, uint32_t* out) { _mm512_storeu_si512(out, code); }
inline void store_codes(__m256i code, uint8_t* out) { _mm_storeu_si64(out, _mm256_cvtepi32_epi8(code)); }
inline void store_codes(__m256i code, uint16_t* out) { _mm_storeu_si128((__m128i*)out, _mm256_cvtepi32_epi16(code)); }
inline void store_codes(__m256i code, uint32_t* out) { _mm256_storeu_si256((__m256i*)out, code); }
template <class Code> inline void store_codes(Vec<float> at, Code* out) { store_codes(_mm512_cvttps_epi32(at), out); }
template <class Code> inline void store_codes(Vec<double> at, Code* out) { store_codes(_mm512_cvttpd_epi32(at), out); }
#endif

// Codes of even bins of whole rows, and whether every value was within `least` and `most`; -inf and inf are any. The bins
// of one row after the other are repeated until they fill many vectors, so that short rows are no slower than long ones.
template <class T, class Code> class EvenRows {
 public:
  EvenRows(const T* low, const T* scale, const T* last, ptrdiff_t columns)
      : count(std::max<ptrdiff_t>(1, 512 / columns) * columns), low(repeated(low, columns)), scale(repeated(scale, columns)),
        last(repeated(last, columns)), whole(size_t(count)) {}

  bool encode(const T* x, ptrdiff_t size, T least, T most, Code* out) {
    Within<T> within(least, most);
    for (; size > 0; x += count, out += count, size -= count) encode_some(x, std::min(size, count), within, out);
    return within.all();
  }

 private:
  ptrdiff_t count;
  std::vector<T> low, scale, last;
  std::vector<int32_t> whole;  // codes before they are narrowed

  std::vector<T> repeated(const T* numbers, ptrdiff_t columns) const {
    std::vector<T> out(static_cast<size_t>(count));
    for (ptrdiff_t k = 0; k < count; ++k) out[size_t(k)] = numbers[k % columns];
    return out;
  }

  void encode_some(const T* x, ptrdiff_t size, Within<T>& within, Code* out) {
    ptrdiff_t k = 0;
    for (; k + lanes<T> <= size; k += lanes<T>) {
      const Vec<T> v = load(x + k), at = (v - load(low.data() + k)) * load(scale.data() + k);
      within.meet(v);
      put(smaller(larger(at, Vec<T>{}), load(last.data() + k)), k, out);
    }
    const EvenBins<T> bins{low.data(), scale.data(), last.data()};
    [[maybe_unused]] const ptrdiff_t in_vectors = k;
    for (; k < size; ++k) {
      within.meet(x[k]);
      out[k] = Code(int32_t(bins(k, x[k])));
    }
#if !defined(__AVX512F__)
    for (k = 0; k < in_vectors; ++k) out[k] = Code(whole[size_t(k)]);
#endif
  }

  void put(Vec<T> at, ptrdiff_t k, [[maybe_unused]] Code* out) {
#if defined(__AVX512F__)
    store_codes(at, out + k);
#else
    typedef int32_t Ints __attribute__((vector_size(lanes<T> * sizeof(int32_t))));
    const Ints code = __builtin_convertvector(at, Ints);
    std::memcpy(whole.data() + k, &code, sizeof code);
#endif
  }
};

// Scores: sums over a row's features of table[offset of the feature + its code], in all columns of the table at
// once. A table is `width` columns wide, which is 1 or a multiple of 4. Several rows are summed side by side, so
// that additions do not wait for each other, and share the reading of offsets.
constexpr ptrdiff_t some_columns = Few<double, 4>::lanes;

template <int rows_at_once, class Code, class Cell>
HILBIN_INLINE void add_sums(const Code* codes, ptrdiff_t stride, ptrdiff_t features, const int64_t* offsets,
                            const Cell* table, double* out) {
  double sums[rows_at_once] = {};
  for (ptrdiff_t j = 0; j < features; ++j)
    for (int i = 0; i < rows_at_once; ++i) sums[i] += table[offsets[j] + codes[i * stride + j]];
  for (int i = 0; i < rows_at_once; ++i) out[i] += sums[i];
}
template <int rows_at_once, int vectors, class Code, class Cell>
HILBIN_INLINE void add_vector_sums(const Code* codes, ptrdiff_t stride, ptrdiff_t features, const int64_t* offsets,
                                   const Cell* table, ptrdiff_t width, double* out) {
  Double4 sums[rows_at_once][vectors] = {};
  for (ptrdiff_t j = 0; j < features; ++j)
    for (int i = 0; i < rows_at_once; ++i) {
      const Cell* at = table + (offsets[j] + codes[i * stride + j]) * width;
      for (int v = 0; v < vectors; ++v) sums[i][v] += load_four(at + v * some_columns);
    }
  for (int i = 0; i < rows_at_once; ++i)
    for (int v = 0; v < vectors; ++v) {
      double* to = out + i * width + v * some_columns;
      store(to, load_as_vector<Double4>(to) + sums[i][v]);
    }
}

// Calls use(number of vectors, first column) for all columns, three vectors at a time.
template <class Use> HILBIN_INLINE void each_columns(ptrdiff_t width, Use use) {
  constexpr ptrdiff_t n = some_columns;
  ptrdiff_t c = 0;
  for (; c + 3 * n <= width; c += 3 * n) use(std::integral_constant<int, 3>{}, c);
  if (c + 2 * n <= width) return use(std::integral_constant<int, 2>{}, c);
  if (c + n <= width) use(std::integral_constant<int, 1>{}, c);
}

template <int rows_at_once, class Code, class Cell>
void add_scores(const Code* codes, ptrdiff_t stride, ptrdiff_t features, const int64_t* offsets, const Cell* table,
                ptrdiff_t width, double* out) {
  if (width == 1) return add_sums<rows_at_once>(codes, stride, features, offsets, table, out);
  each_columns(width, [&](auto vectors, ptrdiff_t c) HILBIN_INLINE_LAMBDA {
    constexpr int most = vectors() == 1 ? 4 : 2;  // more sums than that do not fit the registers
    constexpr int at_once = rows_at_once < most ? rows_at_once : most;
    for (int i = 0; i < rows_at_once; i += at_once)
      add_vector_sums<at_once, vectors()>(codes + i * stride, stride, features, offsets, table + c, width, out + i * width + c);
  });
}

// Tables of so many bytes are used by all rows before the next: they stay in the caches.
inline ptrdiff_t tables_at_once(ptrdiff_t width) { return (width == 1 ? 64 : 128) * 1024; }

template <class Code, class Cell>
void scores(DenseMatrix<Code> rows, const int64_t* offsets, const Cell* table, ptrdiff_t width, double* out,
            ptrdiff_t begin, ptrdiff_t end) {
  constexpr int at_once = 8;
  std::fill(out + begin * width, out + end * width, 0.0);
  for (ptrdiff_t first = 0, last; first < rows.columns; first = last) {
    const int64_t limit = offsets[first] + tables_at_once(width) / ptrdiff_t(sizeof(Cell)) / width;
    for (last = first + 1; last < rows.columns && offsets[last + 1] <= limit;) ++last;
    const Code* codes = rows.codes + first;
    ptrdiff_t i = begin;
    for (; i + at_once <= end; i += at_once) {
      for (int r = 0; r < at_once; ++r) __builtin_prefetch(codes + (i + 2 * at_once + r) * rows.columns);
      add_scores<at_once>(codes + i * rows.columns, rows.columns, last - first, offsets + first, table, width, out + i * width);
    }
    for (; i < end; ++i)
      add_scores<1>(codes + i * rows.columns, rows.columns, last - first, offsets + first, table, width, out + i * width);
  }
}
template <class Code, class Cell>
void scores(SparseMatrix<Code> rows, const int64_t* offsets, const Cell* table, ptrdiff_t width, double* out,
            ptrdiff_t begin, ptrdiff_t end) {
  for (ptrdiff_t i = begin; i < end; ++i) {
    const SparseRow<Code> row = rows.row(i);
    double* to = out + i * width;
    if (width == 1) {
      double sums[4] = {};
      for (ptrdiff_t k = 0; k < row.size; ++k) sums[k % 4] += table[offsets[row.feature(k)] + row.codes[k]];
      *to = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    each_columns(width, [&](auto vectors, ptrdiff_t c) HILBIN_INLINE_LAMBDA {
      Double4 sums[vectors()] = {};
      for (ptrdiff_t k = 0; k < row.size; ++k)
        for (int v = 0; v < vectors(); ++v)
          sums[v] += load_four(table + (offsets[row.feature(k)] + row.codes[k]) * width + c + v * some_columns);
      for (int v = 0; v < vectors(); ++v) store(to + c + v * some_columns, sums[v]);
    });
  }
}

template <class Code> uint64_t code_sum(const Code* codes, ptrdiff_t count) {
  uint64_t total = 0;
  for (ptrdiff_t k = 0; k < count;) {
    uint32_t part = 0;  // which the compiler sums in vectors; so many codes of 16 bits do not overflow it
    const ptrdiff_t end = std::min<ptrdiff_t>(count, k + (sizeof(Code) < 4 ? 65536 : 1));
    for (; k < end; ++k) part += codes[k];
    total += part;
  }
  return total;
}

// sums[offset + code] += coefficients of the row
template <class Row>
void add_to_levels(Row row, const int64_t* offsets, const double* coefficients, ptrdiff_t width, double* sums) {
  bool any = false;
  for (ptrdiff_t c = 0; c < width; ++c) any |= coefficients[c] != 0;
  if (!any) return;
  for (ptrdiff_t k = 0; k < row.size; ++k) {
    double* to = sums + (offsets[row.feature(k)] + row.codes[k]) * width;
    for (ptrdiff_t c = 0; c < width; ++c) to[c] += coefficients[c];
  }
}

// Marks the levels that occur, then numbers them: nth[level] = how many used levels come before it.
template <class Matrix> int64_t number_used(Matrix matrix, ptrdiff_t rows, const int64_t* offsets, ptrdiff_t features, int32_t* nth) {
  std::fill(nth, nth + offsets[features], 0);
  for (ptrdiff_t j = 0; j < features; ++j) nth[offsets[j]] = 1;
  for (ptrdiff_t i = 0; i < rows; ++i) {
    const auto row = matrix.row(i);
    for (ptrdiff_t k = 0; k < row.size; ++k) nth[offsets[row.feature(k)] + row.codes[k]] = 1;
  }
  int32_t used = 0;
  for (int64_t level = 0; level < offsets[features]; ++level) {
    const int32_t here = nth[level];
    nth[level] = here ? used : -1;
    used += here;
  }
  return used;
}

// In place, one column of one feature: u(r) = sum of c over the rows of rank r -> T(r) = sum_i c_i min(x_i, v_r)
// = sum over s <= r of u(s) v_s + v_r sum over s > r of u(s).
inline void sums_to_table(double* u, ptrdiff_t width, const double* levels, ptrdiff_t count) {
  double above = 0, below = 0;
  for (ptrdiff_t r = 1; r < count; ++r) above += u[r * width];
  u[0] = 0;
  for (ptrdiff_t r = 1; r < count; ++r) {
    const double here = u[r * width];
    above -= here;
    below += here * levels[r];
    u[r * width] = below + levels[r] * above;
  }
}

// The distinct positive values of a column, ascending, into `levels`, and the rank of each of its values
// among them, counted from 1; what is not positive has rank 0. Returns how many there are.
template <class T> ptrdiff_t rank_column(const T* values, ptrdiff_t count, T* levels, uint32_t* ranks) {
  ptrdiff_t positive = 0;
  for (ptrdiff_t i = 0; i < count; ++i)
    if (values[i] > 0) levels[positive++] = values[i];
  std::sort(levels, levels + positive);
  const ptrdiff_t distinct = std::unique(levels, levels + positive) - levels;
  for (ptrdiff_t i = 0; i < count; ++i)
    ranks[i] = values[i] > 0 ? uint32_t(std::lower_bound(levels, levels + distinct, values[i]) - levels) + 1 : 0;
  return distinct;
}

// A piecewise linear function through (levels[r], table[r]), constant beyond the last: x lies between ranks
// `first` and `second`, at this fraction of the way.
template <class T> struct Between {
  ptrdiff_t first, second;
  double fraction;
  Between(const double* levels, ptrdiff_t count, T x) {
    second = std::upper_bound(levels, levels + count, double(x)) - levels;
    first = std::max<ptrdiff_t>(second - 1, 0);
    second = std::min(second, count - 1);
    fraction = second > first ? (double(x) - levels[first]) / (levels[second] - levels[first]) : 0;
  }
};

}  // namespace hilbin
