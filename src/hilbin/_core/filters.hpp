// Scores of filters at all places of grids of cells, and the transposes of these.
//
//   S[y, x] = sum over (i, c, j) of F[i, c, j] X[y + i, c, x + j]
//
// Cells are rows of planes, (rows, channels, columns), as pyramid.hpp writes them, and filters have the same order. The
// sums of some filters at some vectors of places stay in registers: of 3 filters at 4 vectors, 12 multiplications need 7
// loads.
//
// A cell may also be the number of its nearest word. Then a filter is a table of products with all words, for each of its
// cells, and a score is a sum of entries. Tables of several filters stand side by side, so that one look-up is a vector.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "simd.hpp"

namespace hilbin {

constexpr int most_vectors_of_places = 4, filters_at_once = 3;
constexpr ptrdiff_t slack = 64;  // numbers behind the last cell that vectors may read

// Rows and columns of a grid, and of the places where a filter fits in it.
struct Grid {
  ptrdiff_t rows, columns;
  Grid places(const Grid& filter) const {
    const ptrdiff_t y = rows - filter.rows + 1, x = columns - filter.columns + 1;
    return y > 0 && x > 0 ? Grid{y, x} : Grid{0, 0};
  }
  ptrdiff_t size() const { return rows * columns; }
};

// The scores of NF filters at NX vectors of places: `left` of them are wanted. `size` numbers lie between filters, `room`
// between their scores.
template <int NF, int NX>
HILBIN_INLINE void filter_tile(const float* cells, ptrdiff_t columns, ptrdiff_t channels, const float* filters, ptrdiff_t size,
                               const Grid& filter, float* out, ptrdiff_t room, ptrdiff_t left) {
  constexpr int L = lanes<float>;
  Vec<float> sum[NF][NX] = {};
  for (ptrdiff_t row = 0; row < filter.rows * channels; ++row) {
    const float *at = cells + row * columns, *weights = filters + row * filter.columns;
    for (ptrdiff_t j = 0; j < filter.columns; ++j) {
      Vec<float> value[NX];
#pragma GCC unroll 8
      for (int i = 0; i < NX; ++i) value[i] = load(at + j + L * i);
#pragma GCC unroll 4
      for (int f = 0; f < NF; ++f) {
        const Vec<float> w = splat(weights[f * size + j]);
#pragma GCC unroll 8
        for (int i = 0; i < NX; ++i) sum[f][i] += w * value[i];
      }
    }
  }
  for (int f = 0; f < NF; ++f)
    std::memcpy(out + f * room, &sum[f], size_t(std::min<ptrdiff_t>(left, NX * L)) * sizeof(float));
}

// The scores of NF filters at some places of a row.
template <int NF>
inline void filter_row(const float* cells, ptrdiff_t columns, ptrdiff_t channels, const float* filters, const Grid& filter,
                       float* out, ptrdiff_t room, ptrdiff_t count) {
  constexpr int L = lanes<float>, wide = NF == 1 ? 2 * most_vectors_of_places : most_vectors_of_places;
  const ptrdiff_t size = filter.rows * channels * filter.columns;
  for (ptrdiff_t x = 0; x < count;) {
    const ptrdiff_t left = count - x, vectors = (left + L - 1) / L;
#define HILBIN_TILE(NX) filter_tile<NF, NX>(cells + x, columns, channels, filters, size, filter, out + x, room, left), x += NX * L
    if (vectors >= wide) HILBIN_TILE(wide);
    else if (vectors >= 4) HILBIN_TILE(4);
    else if (vectors == 3) HILBIN_TILE(3);
    else if (vectors == 2) HILBIN_TILE(2);
    else HILBIN_TILE(1);
#undef HILBIN_TILE
  }
}

// The scores of filters at all places of a grid, one filter after the other with `room` numbers between. Vectors are read
// beyond the last cell.
inline void filter_scores(const float* cells, const Grid& grid, ptrdiff_t channels, const float* filters, ptrdiff_t count,
                          const Grid& filter, float* out, ptrdiff_t room) {
  const Grid places = grid.places(filter);
  const ptrdiff_t size = filter.rows * channels * filter.columns, row = channels * grid.columns;
  for (ptrdiff_t f = 0; f < count; f += filters_at_once)
    for (ptrdiff_t y = 0; y < places.rows; ++y) {
      const float *at = cells + y * row, *some = filters + f * size;
      float* to = out + f * room + y * places.columns;
      if (count - f >= 3) filter_row<3>(at, grid.columns, channels, some, filter, to, room, places.columns);
      else if (count - f == 2) filter_row<2>(at, grid.columns, channels, some, filter, to, room, places.columns);
      else filter_row<1>(at, grid.columns, channels, some, filter, to, room, places.columns);
    }
}

// A filter whose rows are filled up to whole vectors with 0.
inline std::vector<float> in_whole_vectors(const float* filter, ptrdiff_t rows, ptrdiff_t columns) {
  constexpr int L = lanes<float>;
  const ptrdiff_t stride = (columns + L - 1) / L * L;
  std::vector<float> out(size_t(rows * stride), 0.0f);
  for (ptrdiff_t i = 0; i < rows; ++i) std::copy(filter + i * columns, filter + (i + 1) * columns, out.data() + i * stride);
  return out;
}

// The score of a filter in whole vectors at one place.
inline float filter_score(const float* cells, ptrdiff_t columns, const float* filter, ptrdiff_t rows, ptrdiff_t vectors) {
  constexpr int L = lanes<float>;
  Vec<float> sum[4] = {};
  ptrdiff_t i = 0;
  for (; i + 4 <= rows; i += 4)
    for (ptrdiff_t v = 0; v < vectors * L; v += L)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) sum[k] += load(cells + (i + k) * columns + v) * load(filter + (i + k) * vectors * L + v);
  for (; i < rows; ++i)
    for (ptrdiff_t v = 0; v < vectors * L; v += L) sum[0] += load(cells + i * columns + v) * load(filter + i * vectors * L + v);
  const Vec<float> total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  float out = 0;
  for (int l = 0; l < L; ++l) out += total[l];
  return out;
}

// Adds slope times the window at one place to sums in whole vectors.
inline void filter_sum(const float* cells, ptrdiff_t columns, float slope, ptrdiff_t rows, ptrdiff_t vectors, float* sums) {
  constexpr int L = lanes<float>;
  for (ptrdiff_t i = 0; i < rows; ++i, cells += columns, sums += vectors * L)
    for (ptrdiff_t v = 0; v < vectors * L; v += L) store(sums + v, load(sums + v) + slope * load(cells + v));
}

// Adds slope times window to `sums`, whose rows are filled up to whole vectors, for every place whose slope is not 0.
inline void filter_sums(const float* cells, const Grid& grid, ptrdiff_t channels, const float* slopes, const Grid& filter,
                        float* sums) {
  constexpr int L = lanes<float>;
  const Grid places = grid.places(filter);
  const ptrdiff_t vectors = (filter.columns + L - 1) / L;
  for (ptrdiff_t y = 0; y < places.rows; ++y)
    for (ptrdiff_t x = 0; x < places.columns; ++x) {
      const float slope = slopes[y * places.columns + x];
      if (slope != 0)
        filter_sum(cells + y * channels * grid.columns + x, grid.columns, slope, filter.rows * channels, vectors, sums);
    }
}

// Codes: the word nearest to every cell of a row of planes. Columns of `words` (channels, count) are words, and `half` are
// half their squares. Vectors are read beyond the last cell.
inline void encode_row(const float* cells, ptrdiff_t columns, ptrdiff_t channels, const float* words, const float* half,
                       ptrdiff_t count, uint8_t* codes) {
  constexpr int L = lanes<float>, NX = 3, NW = 4;
  for (ptrdiff_t x = 0; x < columns; x += NX * L) {
    Vec<float> best[NX];
    IntVec<float> nearest[NX] = {};
    for (int i = 0; i < NX; ++i) best[i] = splat(-std::numeric_limits<float>::infinity());
    for (ptrdiff_t w = 0; w < count; w += NW) {
      Vec<float> sum[NW][NX];
      for (int k = 0; k < NW; ++k)
        for (int i = 0; i < NX; ++i) sum[k][i] = splat(-half[w + k]);
      for (ptrdiff_t c = 0; c < channels; ++c) {
        const float* word = words + c * count + w;
        Vec<float> value[NX];
#pragma GCC unroll 4
        for (int i = 0; i < NX; ++i) value[i] = load(cells + c * columns + x + L * i);
#pragma GCC unroll 4
        for (int k = 0; k < NW; ++k)
#pragma GCC unroll 4
          for (int i = 0; i < NX; ++i) sum[k][i] += word[k] * value[i];
      }
      for (int k = 0; k < NW; ++k)
        for (int i = 0; i < NX; ++i) {
          const IntVec<float> closer = sum[k][i] > best[i];
          best[i] = closer ? sum[k][i] : best[i];
          nearest[i] = closer ? IntVec<float>{} + int32_t(w + k) : nearest[i];
        }
    }
    for (int i = 0; i < NX; ++i)
      for (int l = 0; l < L && x + i * L + l < columns; ++l) codes[x + i * L + l] = uint8_t(nearest[i][l]);
  }
}

// The scores of N filters at all places of a grid of codes, (places, N), of tables (cells of the filter, words, N).
template <class T, int N>
inline void lookup_scores(const uint8_t* codes, const Grid& grid, const T* tables, ptrdiff_t words, const Grid& filter, T* out) {
  typedef T Side __attribute__((vector_size(N * sizeof(T))));
  constexpr int P = 4;  // places side by side, whose additions do not wait for each other
  const Grid places = grid.places(filter);
  for (ptrdiff_t y = 0; y < places.rows; ++y)
    for (ptrdiff_t x = 0; x < places.columns; x += P) {
      const ptrdiff_t from = std::max<ptrdiff_t>(0, std::min(x, places.columns - P));  // the last ones again
      const int count = int(std::min<ptrdiff_t>(P, places.columns));
      Side sum[P] = {};
      const T* table = tables;
      for (ptrdiff_t i = 0; i < filter.rows; ++i) {
        const uint8_t* code = codes + (y + i) * grid.columns + from;
        for (ptrdiff_t j = 0; j < filter.columns; ++j, table += words * N)
          for (int p = 0; p < P; ++p) {
            Side entry;
            std::memcpy(&entry, table + ptrdiff_t(code[j + (p < count ? p : 0)]) * N, sizeof entry);
            sum[p] += entry;
          }
      }
      std::memcpy(out + (y * places.columns + from) * N, sum, size_t(count) * sizeof(Side));
    }
}

// The same of one filter, a row of places at a time: the entries of four cells are added at once.
template <class T>
inline void lookup_scores_of_one(const uint8_t* codes, const Grid& grid, const T* tables, ptrdiff_t words, const Grid& filter, T* out) {
  const Grid places = grid.places(filter);
  for (ptrdiff_t y = 0; y < places.rows; ++y, out += places.columns) {
    std::fill(out, out + places.columns, T(0));
    const T* table = tables;
    for (ptrdiff_t i = 0; i < filter.rows; ++i) {
      const uint8_t* code = codes + (y + i) * grid.columns;
      ptrdiff_t j = 0;
      for (; j + 4 <= filter.columns; j += 4, code += 4, table += 4 * words)
        for (ptrdiff_t x = 0; x < places.columns; ++x)
          out[x] += (table[code[x]] + table[words + code[x + 1]]) + (table[2 * words + code[x + 2]] + table[3 * words + code[x + 3]]);
      for (; j < filter.columns; ++j, ++code, table += words)
        for (ptrdiff_t x = 0; x < places.columns; ++x) out[x] += table[code[x]];
    }
  }
}

// The score of one filter at one place, of a table (cells of the filter, words).
inline float lookup_score(const uint8_t* codes, ptrdiff_t columns, const float* table, ptrdiff_t words, const Grid& filter) {
  float sum[4] = {};
  for (ptrdiff_t i = 0; i < filter.rows; ++i, codes += columns)
    for (ptrdiff_t j = 0; j < filter.columns; ++j, table += words) sum[j & 3] += table[codes[j]];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Adds the slope of one place to sums (cells of the filter, words) where its words stand.
inline void lookup_sum(const uint8_t* codes, ptrdiff_t columns, float slope, ptrdiff_t words, const Grid& filter, float* sums) {
  for (ptrdiff_t i = 0; i < filter.rows; ++i, codes += columns)
    for (ptrdiff_t j = 0; j < filter.columns; ++j, sums += words) sums[codes[j]] += slope;
}

// The same of all places.
inline void lookup_sums(const uint8_t* codes, const Grid& grid, const float* slopes, ptrdiff_t words, const Grid& filter, float* sums) {
  const Grid places = grid.places(filter);
  for (ptrdiff_t y = 0; y < places.rows; ++y)
    for (ptrdiff_t x = 0; x < places.columns; ++x) {
      const float slope = slopes[y * places.columns + x];
      if (slope != 0) lookup_sum(codes + y * grid.columns + x, grid.columns, slope, words, filter, sums);
    }
}

}  // namespace hilbin
