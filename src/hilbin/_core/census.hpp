// Codes of a pixel's eight neighbors, and how often every code occurs in the cells of a grid.
//
// Census transform (Zabih and Woodfill 1994), as CENTRIST (Wu and Rehg 2011) uses it: neighbors in reading order from
// the most significant bit, 1 where the center is not below the neighbor.
//
// Local binary patterns (Ojala, Pietikainen and Maenpaa 2002): eight points on the circle of radius 1, from the right
// neighbor against the clock, the least significant bit first, 1 where the point is not below the center. A point
// on the diagonal is interpolated from the diagonal neighbor d, the two beside it b1 and b2, and the center c; with
// w = sqrt(1/2) it is not below c where w^2 (d - c) + w (1 - w) (b1 + b2 - 2 c) >= 0.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "simd.hpp"

namespace hilbin {

typedef uint8_t Bytes __attribute__((vector_size(vector_bytes)));

inline Bytes load_bytes(const uint8_t* p) {
  Bytes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Calls code(row above, row, row below, out row, first column) for vectors of columns that cover every inner pixel of
// a row at least once, or code_one for single pixels where the row is shorter than a vector.
template <class Code, class CodeOne>
void neighbor_codes(const uint8_t* image, ptrdiff_t rows, ptrdiff_t columns, uint8_t* out, Code code, CodeOne code_one) {
  const ptrdiff_t inner = columns - 2;
  for (ptrdiff_t y = 0; y + 2 < rows; ++y) {
    const uint8_t* at = image + y * columns;
    uint8_t* to = out + y * inner;
    ptrdiff_t x = 0;
    for (; x + vector_bytes <= inner; x += vector_bytes) {
      const Bytes codes = code(at + x);
      std::memcpy(to + x, &codes, sizeof codes);
    }
    if (x < inner && inner >= vector_bytes) {
      const Bytes codes = code(at + inner - vector_bytes);
      std::memcpy(to + inner - vector_bytes, &codes, sizeof codes);
    } else {
      for (; x < inner; ++x) to[x] = code_one(at + x);
    }
  }
}

// `corner` is the upper left of the 3 x 3 pixels around the first pixel to be coded.
inline void census(const uint8_t* image, ptrdiff_t rows, ptrdiff_t columns, uint8_t* out) {
  const ptrdiff_t offset[8] = {0, 1, 2, columns, columns + 2, 2 * columns, 2 * columns + 1, 2 * columns + 2};
  constexpr uint8_t bit[8] = {128, 64, 32, 16, 8, 4, 2, 1};
  auto code = [&](const uint8_t* corner) HILBIN_INLINE_LAMBDA {
    const Bytes center = load_bytes(corner + columns + 1);
    Bytes codes = {};
    for (int i = 0; i < 8; ++i) codes |= Bytes(center >= load_bytes(corner + offset[i])) & bit[i];
    return codes;
  };
  auto code_one = [&](const uint8_t* corner) {
    int codes = 0;
    for (int i = 0; i < 8; ++i) codes |= (corner[columns + 1] >= corner[offset[i]]) << (7 - i);
    return uint8_t(codes);
  };
  neighbor_codes(image, rows, columns, out, code, code_one);
}

// The number of a pattern: 0 and 57 for none and all of the bits, 58 where they change more than twice around the
// circle, otherwise by the count of ones and their rotation, as scikit-image numbers them ("nri_uniform").
struct UniformPatterns {
  uint8_t of[256];
  UniformPatterns() {
    for (int pattern = 0; pattern < 256; ++pattern) {
      const int changed = (pattern ^ (pattern >> 1 | pattern << 7)) & 255;
      const int ones = __builtin_popcount(unsigned(pattern));
      int begin = 0;  // the first one, going up, after a zero
      while (begin < 8 && !((pattern >> begin & 1) && !(pattern >> ((begin + 7) & 7) & 1))) ++begin;
      if (ones == 0 || ones == 8)
        of[pattern] = uint8_t(ones ? 57 : 0);
      else if (__builtin_popcount(unsigned(changed)) > 2)
        of[pattern] = 58;
      else
        of[pattern] = uint8_t(1 + (ones - 1) * 8 + (8 - begin) % 8);
    }
  }
};

// d - c and b1 + b2 - 2 c are whole numbers of at most 255 and 510: among those 915 / 379 is on the same side of every
// quotient as w / (1 - w) = 1 + sqrt(2), and as its value with w rounded to five digits (scikit-image).
constexpr int diagonal_weight = 915, beside_weight = 379;

inline uint8_t local_pattern(const uint8_t* corner, const ptrdiff_t* offset, ptrdiff_t center) {
  const int c = corner[center];
  int pattern = 0;
  for (int i = 0; i < 8; i += 2) {
    const int b1 = corner[offset[i]], b2 = corner[offset[(i + 2) & 7]], d = corner[offset[i + 1]];
    pattern |= (b1 >= c) << i | (diagonal_weight * (d - c) + beside_weight * (b1 + b2 - 2 * c) >= 0) << (i + 1);
  }
  return uint8_t(pattern);
}

inline void local_patterns(const uint8_t* image, ptrdiff_t rows, ptrdiff_t columns, bool uniform, uint8_t* out) {
  static const UniformPatterns patterns;
  const ptrdiff_t inner = columns - 2, center = columns + 1;
  const ptrdiff_t offset[8] = {columns + 2, 2, 1, 0, columns, 2 * columns, 2 * columns + 1, 2 * columns + 2};
  for (ptrdiff_t y = 0; y + 2 < rows; ++y) {
    uint8_t* to = out + y * inner;
    for (ptrdiff_t x = 0; x < inner; ++x) to[x] = local_pattern(image + y * columns + x, offset, center);
    if (uniform)
      for (ptrdiff_t x = 0; x < inner; ++x) to[x] = patterns.of[to[x]];
  }
}

struct Run {
  ptrdiff_t begin, end, cell;
};

inline std::vector<Run> runs_of(const int32_t* cell, ptrdiff_t count) {
  std::vector<Run> runs;
  for (ptrdiff_t i = 0; i < count; ++i)
    if (runs.empty() || runs.back().cell != cell[i])
      runs.push_back({i, i + 1, cell[i]});
    else
      runs.back().end = i + 1;
  return runs;
}

// Counts the words of a block of rows and columns. Equal words that follow each other wait for the count to be
// written, so that neighbors count in tables of their own.
struct Counter {
  static constexpr int tables = 4;
  std::vector<int32_t> count;
  ptrdiff_t n_words;

  explicit Counter(ptrdiff_t n_words) : n_words(n_words) {}

  template <class Word, class Out> void add(const Word* words, ptrdiff_t stride, Run rows, Run columns, Out* out) {
    if ((rows.end - rows.begin) * (columns.end - columns.begin) < tables * n_words) {
      for (ptrdiff_t y = rows.begin; y < rows.end; ++y)
        for (ptrdiff_t x = columns.begin; x < columns.end; ++x) out[words[y * stride + x]] += Out(1);
      return;
    }
    count.assign(size_t(tables * n_words), 0);
    int32_t* table[tables];
    for (int t = 0; t < tables; ++t) table[t] = count.data() + t * n_words;
    for (ptrdiff_t y = rows.begin; y < rows.end; ++y) {
      const Word* row = words + y * stride;
      ptrdiff_t x = columns.begin;
      for (; x + tables <= columns.end; x += tables)
        for (int t = 0; t < tables; ++t) ++table[t][row[x + t]];
      for (; x < columns.end; ++x) ++table[0][row[x]];
    }
    for (ptrdiff_t w = 0; w < n_words; ++w) out[w] += Out(table[0][w] + table[1][w] + table[2][w] + table[3][w]);
  }
};

// Whether every word is below n_words. The largest is found without a branch per word.
template <class Word> bool words_in_range(const Word* words, ptrdiff_t count, ptrdiff_t n_words) {
  typedef typename std::make_unsigned<Word>::type Unsigned;  // a negative word is a large one
  Unsigned largest = 0;
  for (ptrdiff_t i = 0; i < count; ++i) largest = std::max(largest, Unsigned(words[i]));
  return count == 0 || ptrdiff_t(largest) < n_words;
}

}  // namespace hilbin
