// Rows whose entries are pairs of neighbours: weights of a node and of the one after it.
//
// A pair is the number of its first node (16 bits) and two weights (16 bits each, in units the caller knows); the pairs
// of a row are filled up to whole groups of 4 by pairs of weight 0. Tables have a row for every node, one number or
// whole vectors of tasks wide.
#pragma once
#include <cstring>

#include "words.hpp"

namespace hilbin {

constexpr int pair_group = 4;

struct NodePairs {
  const int64_t* groups;  // row i has the groups [groups[i], groups[i + 1])
  const uint16_t* node;
  const int16_t* weights;
  ptrdiff_t rows;
};

typedef float Two __attribute__((vector_size(8)));

inline Two load_two(const float* p) {
  Two v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_two(float* p, Two v) { std::memcpy(p, &v, sizeof v); }

// As many weights as a vector has floats, as floats.
inline Vec<float> load_weights(const int16_t* p) {
  typedef int16_t Shorts __attribute__((vector_size(vector_bytes / 2)));
  Shorts v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Vec<float>);
}

// Both weights of a group's pairs, one after the other.
HILBIN_INLINE void group_weights(const int16_t* weights, float* out) {
  for (int k = 0; k < 2 * pair_group; k += lanes<float>) store(out + k, load_weights(weights + k));
}

// The numbers of two nodes and of those after them, side by side in a vector, for as many pairs as it holds.
HILBIN_INLINE Vec<float> load_pairs(const float* table, const uint16_t* node) {
#if defined(__AVX2__)
  auto two = [&](int k) {
    const __m128d low = _mm_load_sd(reinterpret_cast<const double*>(table + node[k]));
    return _mm_castpd_ps(_mm_loadh_pd(low, reinterpret_cast<const double*>(table + node[k + 1])));
  };
  return _mm256_insertf128_ps(_mm256_castps128_ps256(two(0)), two(2), 1);
#else
  const Two a = load_two(table + node[0]), b = load_two(table + node[1]);
  return Vec<float>{a[0], a[1], b[0], b[1]};
#endif
}

template <int vectors>
HILBIN_INLINE void add_pair_scores(const NodePairs& pairs, ptrdiff_t i, const float* table, float* out) {
  constexpr ptrdiff_t width = vectors * lanes<float>;
  Vec<float> first[vectors], second[vectors] = {};
  for (int v = 0; v < vectors; ++v) first[v] = load(out + v * lanes<float>);
  for (int64_t group = pairs.groups[i]; group < pairs.groups[i + 1]; ++group) {
    float weights[2 * pair_group];
    group_weights(pairs.weights + 2 * pair_group * group, weights);
#pragma GCC unroll 4
    for (int k = 0; k < pair_group; ++k) {
      const float* at = table + pairs.node[pair_group * group + k] * width;
      for (int v = 0; v < vectors; ++v) {
        first[v] += weights[2 * k] * load(at + v * lanes<float>);
        second[v] += weights[2 * k + 1] * load(at + width + v * lanes<float>);
      }
    }
  }
  for (int v = 0; v < vectors; ++v) store(out + v * lanes<float>, first[v] + second[v]);
}

// out[i, task] += the sum over the pairs of a row of weight * table[node, task].
inline void pair_scores(const NodePairs& pairs, const float* table, ptrdiff_t width, float* out, ptrdiff_t begin, ptrdiff_t end) {
  if (width > 1)
    return with_vectors<float>(width, [&](auto vectors) {
      for (ptrdiff_t i = begin; i < end; ++i) add_pair_scores<vectors()>(pairs, i, table, out + i * width);
    });
  constexpr int at_once = lanes<float> / 2;
  for (ptrdiff_t i = begin; i < end; ++i) {
    Vec<float> sums = {};
    for (int64_t p = pair_group * pairs.groups[i]; p < pair_group * pairs.groups[i + 1]; p += at_once)
      sums += load_weights(pairs.weights + 2 * p) * load_pairs(table, pairs.node + p);
    float total = 0;
    for (int lane = 0; lane < lanes<float>; ++lane) total += sums[lane];
    out[i] += total;
  }
}

template <int vectors>
HILBIN_INLINE void add_pair_sums(const NodePairs& pairs, ptrdiff_t i, const float* slopes, float* table) {
  constexpr ptrdiff_t width = vectors * lanes<float>;
  Vec<float> slope[vectors];
  for (int v = 0; v < vectors; ++v) slope[v] = load(slopes + v * lanes<float>);
  for (int64_t group = pairs.groups[i]; group < pairs.groups[i + 1]; ++group) {
    float weights[2 * pair_group];
    group_weights(pairs.weights + 2 * pair_group * group, weights);
#pragma GCC unroll 4
    for (int k = 0; k < pair_group; ++k) {
      float* at = table + pairs.node[pair_group * group + k] * width;
      for (int v = 0; v < 2 * vectors; ++v)
        store(at + v * lanes<float>, load(at + v * lanes<float>) + weights[2 * k + v / vectors] * slope[v % vectors]);
    }
  }
}

// table[node, task] += weight * slopes[i, task] for all pairs of all rows.
inline void pair_sums(const NodePairs& pairs, const float* slopes, ptrdiff_t width, float* table) {
  const SlopingRows rows(slopes, pairs.rows, width);
  if (width > 1)
    return with_vectors<float>(width, [&](auto vectors) {
      rows.each([&](ptrdiff_t i) HILBIN_INLINE_LAMBDA { add_pair_sums<vectors()>(pairs, i, slopes + i * width, table); });
    });
  rows.each([&](ptrdiff_t i) HILBIN_INLINE_LAMBDA {
    const float slope = slopes[i];
    for (int64_t group = pairs.groups[i]; group < pairs.groups[i + 1]; ++group) {
      float parts[2 * pair_group];
      for (int k = 0; k < 2 * pair_group; k += lanes<float>)
        store(parts + k, load_weights(pairs.weights + 2 * pair_group * group + k) * slope);
#pragma GCC unroll 4
      for (int k = 0; k < pair_group; ++k) {
        float* at = table + pairs.node[pair_group * group + k];
        store_two(at, load_two(at) + load_two(parts + 2 * k));
      }
    }
  });
}

// The pairs of the rows whose first node is below `end`, from `cursor` on, which moves: how many groups each row has,
// or, if `node` is given, the groups themselves. Nodes count from `begin`, weights in units.
template <class T>
void take_pairs(const int32_t* indices, const T* values, const int64_t* indptr, ptrdiff_t rows, int64_t begin, int64_t end,
                double per_unit, int64_t* cursor, int64_t* groups, uint16_t* node, int16_t* weights) {
  for (ptrdiff_t i = 0; i < rows; ++i) {
    int64_t at = cursor[i], to = node ? pair_group * groups[i] : 0;
    const int64_t first = to;
    for (; at < indptr[i + 1] && indices[at] < end; at += 2, ++to)
      if (node) {
        node[to] = uint16_t(indices[at] - begin);
        for (int k = 0; k < 2; ++k) weights[2 * to + k] = int16_t(std::lrint(double(values[at + k]) * per_unit));
      }
    if (!node) {
      groups[i + 1] = groups[i] + (to - first + pair_group - 1) / pair_group;
      continue;
    }
    for (; to < pair_group * groups[i + 1]; ++to) node[to] = 0, weights[2 * to] = weights[2 * to + 1] = 0;
    cursor[i] = at;
  }
}

}  // namespace hilbin
