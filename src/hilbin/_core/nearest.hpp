// The nearest of many centers: the largest <p, c> - |c|^2 / 2, which are the scores of a matrix product.
//
// Centers are packed in panels of `panel` columns. A tile of `tile_rows` points by one panel is held in registers; the
// scores of a few dozen points and a block of centers stay in the second cache and are read once by the selection.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "simd.hpp"

namespace hilbin {

constexpr int panel_vectors = 2, panel = panel_vectors * lanes<float>, tile_rows = 6;
constexpr int block_rows = 16 * tile_rows, block_centers = 128;
constexpr int score_stride = block_centers + panel;  // rows a power of two apart would share few lines of the cache
constexpr int most_nearest = 16;

// One bit for each lane that is set.
inline unsigned lane_bits(IntVec<float> mask) {
#if defined(__AVX512F__)
  return unsigned(_mm512_movepi32_mask((__m512i)mask));
#elif defined(__AVX2__)
  return unsigned(_mm256_movemask_ps((__m256)mask));
#elif defined(__SSE2__)
  return unsigned(_mm_movemask_ps((__m128)mask));
#else
  unsigned bits = 0;
  for (int l = 0; l < lanes<float>; ++l) bits |= unsigned(mask[l] != 0) << l;
  return bits;
#endif
}

struct Centers {
  ptrdiff_t count, dimension, panels;
  std::vector<float> packed, minus_half_norms;  // no point scores above a center that is only there to fill a panel

  Centers(const float* centers, const float* half_norms, ptrdiff_t count, ptrdiff_t dimension)
      : count(count), dimension(dimension), panels((count + panel - 1) / panel),
        packed(size_t(panels * panel * dimension)),
        minus_half_norms(size_t(panels * panel), -std::numeric_limits<float>::infinity()) {
    for (ptrdiff_t c = 0; c < count; ++c) {
      float* to = packed.data() + c / panel * panel * dimension + c % panel;
      for (ptrdiff_t j = 0; j < dimension; ++j) to[j * panel] = centers[c * dimension + j];
      minus_half_norms[size_t(c)] = -half_norms[c];
    }
  }

  // out[i * stride + l] = scores of `rows` points for the centers of one panel.
  // Not inlined: among other code the compiler keeps the panel's vectors in memory rather than in registers.
  template <int rows>
  __attribute__((noinline)) void tile(const float* points, ptrdiff_t p, float* out, ptrdiff_t stride) const {
    Vec<float> sum[rows][panel_vectors];
    for (int v = 0; v < panel_vectors; ++v)
      for (int i = 0; i < rows; ++i) sum[i][v] = load(minus_half_norms.data() + p * panel + v * lanes<float>);
    const float* column = packed.data() + p * panel * dimension;
    for (ptrdiff_t j = 0; j < dimension; ++j, column += panel) {
      Vec<float> c[panel_vectors];
      for (int v = 0; v < panel_vectors; ++v) c[v] = load(column + v * lanes<float>);
#pragma GCC unroll 6
      for (int i = 0; i < rows; ++i) {
        const Vec<float> x = splat(points[i * dimension + j]);
        for (int v = 0; v < panel_vectors; ++v) sum[i][v] += x * c[v];
      }
    }
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < panel_vectors; ++v) store(out + i * stride + v * lanes<float>, sum[i][v]);
  }

  // Scores of a block of points and of the panels [begin, end).
  void scores(const float* points, ptrdiff_t rows, ptrdiff_t begin, ptrdiff_t end, float* out) const {
    for (ptrdiff_t p = begin; p < end; ++p) {
      float* to = out + (p - begin) * panel;
      ptrdiff_t i = 0;
      for (; i + tile_rows <= rows; i += tile_rows) tile<tile_rows>(points + i * dimension, p, to + i * score_stride, score_stride);
      for (; i < rows; ++i) tile<1>(points + i * dimension, p, to + i * score_stride, score_stride);
    }
  }
};

// The m best of a row of scores, kept sorted; equal scores in the order in which they come.
struct Best {
  float* score;
  int32_t* word;
  int m;

  void clear() {
    std::fill(score, score + m, -std::numeric_limits<float>::infinity());
    std::fill(word, word + m, 0);
  }

  void offer(float s, int32_t w) {
    if (!(s > score[m - 1])) return;
    int at = m - 1;
    for (; at > 0 && s > score[at - 1]; --at) score[at] = score[at - 1], word[at] = word[at - 1];
    score[at] = s, word[at] = w;
  }

  // `count` is a whole number of panels. Few vectors hold a score that is among the best.
  void scan(const float* scores, ptrdiff_t count, int32_t first_word) {
    for (ptrdiff_t c = 0; c < count; c += panel) {
      const Vec<float> left = load(scores + c), right = load(scores + c + lanes<float>), least = splat(score[m - 1]);
      if (!lane_bits(larger(left, right) > least)) continue;
      for (unsigned some = lane_bits(left > least) | lane_bits(right > least) << lanes<float>; some; some &= some - 1) {
        const int l = __builtin_ctz(some);
        offer(scores[c + l], first_word + int32_t(c) + l);
      }
    }
  }
};

// words and scores of the m nearest centers of every point, nearest first.
inline void nearest(const float* points, ptrdiff_t rows, const Centers& centers, int m, int32_t* words, float* scores) {
  static_assert(panel_vectors == 2 && block_centers % panel == 0, "what scan reads");
  std::vector<float> buffer(block_rows * score_stride);
  constexpr ptrdiff_t block_panels = block_centers / panel;
  for (ptrdiff_t first = 0; first < rows; first += block_rows) {
    const ptrdiff_t some = std::min<ptrdiff_t>(block_rows, rows - first);
    auto best = [&](ptrdiff_t i) { return Best{scores + (first + i) * m, words + (first + i) * m, m}; };
    for (ptrdiff_t i = 0; i < some; ++i) best(i).clear();
    for (ptrdiff_t p = 0; p < centers.panels; p += block_panels) {
      const ptrdiff_t end = std::min(p + block_panels, centers.panels);
      centers.scores(points + first * centers.dimension, some, p, end, buffer.data());
      for (ptrdiff_t i = 0; i < some; ++i)
        best(i).scan(buffer.data() + i * score_stride, (end - p) * panel, int32_t(p * panel));
    }
  }
}

}  // namespace hilbin
