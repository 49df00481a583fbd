// Rows whose entries are pairs of neighbors: weights of a node and of the one after it.
//
// A pair is the number of its first node (16 bits) and two weights (16 bits each, in units the caller knows); the pairs
// of a row are filled up to whole groups of 4 by pairs of weight 0. Tables have a row for every node, one number or
// whole vectors of tasks wide.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "words.hpp"

namespace hilbin {

constexpr int pair_group = 4;
using PairWeights = Few<float, 2 * pair_group>;
using SomeWeights = PairWeights::V;
constexpr int pairs_at_once = PairWeights::lanes / 2;

struct NodePairs {
  const int64_t* groups;  // row i has the groups [groups[i], groups[i + 1])
  const uint16_t* node;
  const int16_t* weights;
  ptrdiff_t rows;
};

typedef float Two __attribute__((vector_size(8)));

// Weights of as many pairs as are read at once, as floats.
inline SomeWeights load_weights(const int16_t* p) {
  typedef int16_t Shorts __attribute__((vector_size(PairWeights::lanes * sizeof(int16_t))));
  Shorts v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, SomeWeights);
}

// Both weights of a group's pairs, one after the other.
HILBIN_INLINE void group_weights(const int16_t* weights, float* out) {
  for (int k = 0; k < 2 * pair_group; k += PairWeights::lanes) store(out + k, load_weights(weights + k));
}

// The numbers of nodes and of those after them, side by side: as many pairs as a vector holds.
HILBIN_INLINE SomeWeights load_pairs(const float* table, const uint16_t* node) {
#if defined(__AVX2__)
  auto two = [&](int k) {
    double low;
    std::memcpy(&low, table + node[k], sizeof low);
    return _mm_loadh_pi(_mm_castpd_ps(_mm_set_sd(low)), reinterpret_cast<const __m64*>(table + node[k + 1]));
  };
  return _mm256_insertf128_ps(_mm256_castps128_ps256(two(0)), two(2), 1);
#else
  const float *a = table + node[0], *b = table + node[1];
  return SomeWeights{a[0], a[1], b[0], b[1]};
#endif
}

// Adds pairs of numbers to those of their nodes and of the nodes after them.
HILBIN_INLINE void add_pairs(SomeWeights numbers, const uint16_t* node, float* table) {
#pragma GCC unroll 4
  for (int k = 0; k < pairs_at_once; ++k) {
    float* const at = table + node[k];
    Two both;
    std::memcpy(&both, at, sizeof both);
    both += Two{numbers[2 * k], numbers[2 * k + 1]};
    std::memcpy(at, &both, sizeof both);
  }
}

inline float sum_lanes(SomeWeights v) {
#if defined(__AVX2__)
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
#else
  const SomeWeights four = v;
#endif
  return (four[0] + four[2]) + (four[1] + four[3]);
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
  for (ptrdiff_t i = begin; i < end; ++i) {
    SomeWeights sums = {};
    const int64_t first = pairs.groups[i], last = pairs.groups[i + 1];
    const uint16_t* node = pairs.node + pair_group * first;
    const int16_t* weights = pairs.weights + 2 * pair_group * first;
    for (int64_t left = last - first; left > 0; --left, node += pair_group, weights += 2 * pair_group)
      for (int k = 0; k < pair_group; k += pairs_at_once) sums += load_weights(weights + 2 * k) * load_pairs(table, node + k);
    out[i] += sum_lanes(sums);
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
    const SomeWeights slope = slopes[i] - SomeWeights{};
    const int64_t first = pairs.groups[i], last = pairs.groups[i + 1];
    const uint16_t* node = pairs.node + pair_group * first;
    const int16_t* weights = pairs.weights + 2 * pair_group * first;
    for (int64_t left = last - first; left > 0; --left, node += pair_group, weights += 2 * pair_group)
      for (int k = 0; k < pair_group; k += pairs_at_once) add_pairs(load_weights(weights + 2 * k) * slope, node + k, table);
  });
}

constexpr int gram_vectors = vector_bytes == 64 ? 2 : 4;  // 64 rows at a time gain nothing
constexpr ptrdiff_t gram_rows = gram_vectors * lanes<float>;

// Some rows side by side: those of a large matrix are slow to read again and again.
class SomePairs {
 public:
  SomePairs(const NodePairs& all, const int64_t* which, ptrdiff_t count) : groups(1, 0) {
    for (ptrdiff_t k = 0; k < count; ++k) groups.push_back(groups.back() + all.groups[which[k] + 1] - all.groups[which[k]]);
    node.reserve(size_t(pair_group * groups.back()));
    weights.reserve(size_t(2 * pair_group * groups.back()));
    for (ptrdiff_t k = 0; k < count; ++k) {
      const int64_t first = pair_group * all.groups[which[k]], last = pair_group * all.groups[which[k] + 1];
      node.insert(node.end(), all.node + first, all.node + last);
      weights.insert(weights.end(), all.weights + 2 * first, all.weights + 2 * last);
    }
  }
  NodePairs pairs() const { return {groups.data(), node.data(), weights.data(), ptrdiff_t(groups.size()) - 1}; }

 private:
  std::vector<int64_t> groups;
  std::vector<uint16_t> node;
  std::vector<int16_t> weights;
};

// The products with each other of the nodes of a column, each of which has the same: `size` rows, filled up to `room`.
struct NodeProducts {
  std::vector<float> numbers;
  ptrdiff_t size, room;

  NodeProducts(const float* inner, ptrdiff_t size) : size(size), room((size + lanes<float> - 1) / lanes<float> * lanes<float>) {
    numbers.resize(size_t(size * room));
    for (ptrdiff_t z = 0; z < size; ++z) std::copy_n(inner + z * size, size, numbers.data() + z * room);
  }

  // out[z] += the product of the pair p, whose nodes lie in the column that begins with `column`, with node z.
  void add(const NodePairs& pairs, int64_t p, ptrdiff_t column, float* out) const {
    const Vec<float> a = splat(float(pairs.weights[2 * p])), b = splat(float(pairs.weights[2 * p + 1]));
    // pairs that fill a row have node 0 and weights 0
    const float* const k = numbers.data() + std::clamp<ptrdiff_t>(pairs.node[p] - column, 0, size - 2) * room;
    for (ptrdiff_t z = 0; z < room; z += lanes<float>) store(out + z, load(out + z) + a * load(k + z) + b * load(k + room + z));
  }

  // table[node, at] = the product of row first + at with every node of its columns, 0 for at >= count; the table has
  // `room` rows more. Column by column, a vector of rows at a time; pairs come in the order of nodes.
  void table(const NodePairs& pairs, ptrdiff_t first, ptrdiff_t count, ptrdiff_t nodes, float* out) const {
    int64_t next[gram_rows] = {}, end[gram_rows] = {};
    for (ptrdiff_t at = 0; at < count; ++at) next[at] = pair_group * pairs.groups[first + at], end[at] = pair_group * pairs.groups[first + at + 1];
    std::vector<float> products(size_t(lanes<float> * room));
    for (ptrdiff_t column = 0; column < nodes; column += size, out += size * gram_rows)
      for (ptrdiff_t at = 0; at < gram_rows; at += lanes<float>) {
        std::fill(products.begin(), products.end(), 0.0f);
        for (ptrdiff_t l = 0; l < lanes<float>; ++l)
          for (int64_t& p = next[at + l]; p < end[at + l] && pairs.node[p] - column < size; ++p) add(pairs, p, column, products.data() + l * room);
        for (ptrdiff_t z = 0; z < room; z += lanes<float>) {
          Vec<float> from[lanes<float>];
          for (ptrdiff_t l = 0; l < lanes<float>; ++l) from[l] = load(products.data() + l * room + z);
          store_transposed<lanes<float>>(from, out + z * gram_rows + at, gram_rows);
        }
      }
  }
};

// out[j, i] += the product of rows j and i, for i < fresh and j >= i, and for some other i < fresh.
inline void pair_gram(const NodePairs& pairs, ptrdiff_t fresh, const NodeProducts& inner, ptrdiff_t nodes, float* out) {
  std::vector<float> room(size_t((nodes + inner.room) * gram_rows) + 16);
  float* const table = room.data() + (-(reinterpret_cast<uintptr_t>(room.data()) / sizeof(float)) & 15);  // from a line of the cache
  for (ptrdiff_t first = 0; first < fresh; first += gram_rows) {
    const ptrdiff_t here = std::min(gram_rows, fresh - first);
    inner.table(pairs, first, here, nodes, table);
    for (ptrdiff_t j = first; j < pairs.rows; ++j) {
      float sums[gram_rows] = {};
      add_pair_scores<gram_vectors>(pairs, j, table, sums);
      for (ptrdiff_t at = 0; at < here; ++at) out[j * pairs.rows + first + at] += sums[at];
    }
  }
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
