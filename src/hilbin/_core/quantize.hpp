// Product quantization of rows: k-means of every block of components, and the nearest word of a block as its code.
//
// Blocks have few components, so a point is a lane: the points of a tile stand side by side, the words pass by two at a
// time, and the best word of every point stays in registers. (nearest.hpp, for long points, keeps scores in memory.)
#pragma once
#include <limits>
#include <numeric>

#include "words.hpp"

namespace hilbin {

constexpr int tile_vectors = 4, tile_points = tile_vectors * lanes<float>;

// Rows of floats, of which blocks of `size` columns are quantized; the last block may have fewer.
struct Points {
  const float* numbers;
  ptrdiff_t rows, columns, row_stride, size;

  ptrdiff_t blocks() const { return (columns + size - 1) / size; }

  // The components of a block of all rows, one row after the other; those there are not are 0.
  std::vector<float> block(ptrdiff_t b) const {
    std::vector<float> out(size_t(rows * size));
    const ptrdiff_t first = b * size, count = std::min(size, columns - first);
    for (ptrdiff_t i = 0; i < rows; ++i) std::copy_n(numbers + i * row_stride + first, count, out.data() + i * size);
    return out;
  }
};

// Mean of rows; in double, so that the many before do not drown the few that come.
inline std::vector<float> mean_row(const float* rows, ptrdiff_t count, ptrdiff_t size) {
  std::vector<double> sums(static_cast<size_t>(size));
  for (ptrdiff_t i = 0; i < count; ++i)
    for (ptrdiff_t g = 0; g < size; ++g) sums[size_t(g)] += rows[i * size + g];
  std::vector<float> mean(static_cast<size_t>(size));
  for (size_t g = 0; g < mean.size(); ++g) mean[g] = float(sums[g] / double(count));
  return mean;
}

inline void subtract(const std::vector<float>& shift, std::vector<float>& rows) {
  for (size_t k = 0; k < rows.size();)
    for (size_t g = 0; g < shift.size(); ++g, ++k) rows[k] -= shift[g];
}

// Points of a few components in tiles: component g of point i is tile(i / tile_points)[g * tile_points + i % tile_points].
class PointTiles {
 public:
  PointTiles(const std::vector<float>& points, ptrdiff_t size)
      : rows(ptrdiff_t(points.size()) / size), size(size), numbers(size_t((rows + tile_points - 1) / tile_points * tile_points * size)) {
    for (ptrdiff_t i = 0; i < rows; ++i)
      for (ptrdiff_t g = 0; g < size; ++g)
        numbers[size_t((i / tile_points * size + g) * tile_points + i % tile_points)] = points[size_t(i * size + g)];
  }

  // The nearest word c of every point x, the first of several, and the score <x, c> - |c|^2 / 2.
  void nearest(const float* words, ptrdiff_t count, int32_t* found, float* scores) const {
    std::vector<float> minus_half(static_cast<size_t>(count));
    for (ptrdiff_t w = 0; w < count; ++w) {
      double squares = 0;
      for (ptrdiff_t g = 0; g < size; ++g) squares += double(words[w * size + g]) * words[w * size + g];
      minus_half[size_t(w)] = float(-squares / 2);
    }
    for (ptrdiff_t first = 0; first < rows; first += tile_points) {
      Best best;
      ptrdiff_t w = 0;
      for (; w + 2 <= count; w += 2) offer<2>(first, words, minus_half.data(), w, best);
      if (w < count) offer<1>(first, words, minus_half.data(), w, best);
      for (ptrdiff_t i = first; i < std::min(first + tile_points, rows); ++i) {
        const ptrdiff_t lane = i - first;
        found[i] = best.word[lane / lanes<float>][lane % lanes<float>];
        scores[i] = best.score[lane / lanes<float>][lane % lanes<float>];
      }
    }
  }

 private:
  ptrdiff_t rows, size;
  std::vector<float> numbers;

  struct Best {
    Vec<float> score[tile_vectors];
    IntVec<float> word[tile_vectors] = {};
    Best() {
      for (auto& s : score) s = splat(-std::numeric_limits<float>::infinity());
    }
  };

  template <int at_once>
  HILBIN_INLINE void offer(ptrdiff_t first, const float* words, const float* minus_half, ptrdiff_t w, Best& best) const {
    Vec<float> sums[at_once][tile_vectors];
    for (int k = 0; k < at_once; ++k)
      for (auto& sum : sums[k]) sum = splat(minus_half[w + k]);
    const float *x = numbers.data() + first * size, *word = words + w * size;
    for (ptrdiff_t g = 0; g < size; ++g, x += tile_points)
      for (int v = 0; v < tile_vectors; ++v)
        for (int k = 0; k < at_once; ++k) sums[k][v] += word[k * size + g] * load(x + v * lanes<float>);
    for (int k = 0; k < at_once; ++k)
      for (int v = 0; v < tile_vectors; ++v) {
        const IntVec<float> better = sums[k][v] > best.score[v];
        best.score[v] = larger(sums[k][v], best.score[v]);
        best.word[v] = better ? int32_t(w + k) - IntVec<float>{} : best.word[v];
      }
  }
};

// The codes of one block of all rows, 32 apart; words[word, g]. Distances are measured from the mean of the words: far
// from the origin they would lose digits.
template <class Code>
void encode_block(const Points& points, ptrdiff_t block, const float* words, ptrdiff_t count, Code* codes) {
  const std::vector<float> shift = mean_row(words, count, points.size);
  std::vector<float> shifted(words, words + count * points.size), numbers = points.block(block);
  subtract(shift, shifted);
  subtract(shift, numbers);
  std::vector<int32_t> found(static_cast<size_t>(points.rows));
  std::vector<float> scores(found.size());
  PointTiles(numbers, points.size).nearest(shifted.data(), count, found.data(), scores.data());
  for (ptrdiff_t i = 0; i < points.rows; ++i) codes[i * chunk_blocks] = Code(found[size_t(i)]);
}

// Lloyd's algorithm on the points of one block.
class BlockMeans {
 public:
  BlockMeans(const Points& points, ptrdiff_t block)
      : BlockMeans(points.block(block), points.rows, points.size) {}

  // Words from the rows `seeds` on, until a round makes the sum of squared distances smaller by less than `tol` of it.
  void run(const int64_t* seeds, ptrdiff_t count, int most_rounds, double tol, float* words) {
    for (ptrdiff_t w = 0; w < count; ++w) std::copy_n(at(seeds[w]), size, words + w * size);
    inertia = assign(words, count);
    for (double before = std::numeric_limits<double>::infinity(); rounds < most_rounds && before - inertia > tol * inertia; ++rounds) {
      before = inertia;
      move(words, count);
      inertia = assign(words, count);
    }
    for (ptrdiff_t k = 0; k < count * size; ++k) words[k] += shift[size_t(k % size)];
  }

  double variation = 0, inertia = 0;  // sums of squared distances from the mean, and from the words
  int rounds = 0;

 private:
  ptrdiff_t rows, size;
  std::vector<float> shift, numbers;
  PointTiles tiles;
  std::vector<float> squares, scores;
  std::vector<int32_t> labels;

  BlockMeans(std::vector<float> given, ptrdiff_t rows, ptrdiff_t size)
      : rows(rows), size(size), shift(mean_row(given.data(), rows, size)), numbers((subtract(shift, given), std::move(given))),
        tiles(numbers, size), squares(size_t(rows)), scores(size_t(rows)), labels(size_t(rows)) {
    for (ptrdiff_t i = 0; i < rows; ++i) {
      for (ptrdiff_t g = 0; g < size; ++g) squares[size_t(i)] += at(i)[g] * at(i)[g];
      variation += squares[size_t(i)];
    }
  }

  const float* at(ptrdiff_t i) const { return numbers.data() + i * size; }
  double distance(ptrdiff_t i) const { return std::max(0.0f, squares[size_t(i)] - 2 * scores[size_t(i)]); }

  double assign(const float* words, ptrdiff_t count) {
    tiles.nearest(words, count, labels.data(), scores.data());
    double sum = 0;
    for (ptrdiff_t i = 0; i < rows; ++i) sum += distance(i);
    return sum;
  }

  // Words to the means of their points; those without points to the points worst served.
  void move(float* words, ptrdiff_t count) const {
    std::vector<double> sums(size_t(count * size));
    std::vector<int64_t> points(static_cast<size_t>(count));
    for (ptrdiff_t i = 0; i < rows; ++i) {
      const ptrdiff_t w = labels[size_t(i)];
      ++points[size_t(w)];
      for (ptrdiff_t g = 0; g < size; ++g) sums[size_t(w * size + g)] += at(i)[g];
    }
    const std::vector<ptrdiff_t> far = farthest(std::count(points.begin(), points.end(), 0));
    for (ptrdiff_t w = 0, next = 0; w < count; ++w) {
      if (points[size_t(w)] > 0)
        for (ptrdiff_t g = 0; g < size; ++g) words[w * size + g] = float(sums[size_t(w * size + g)] / double(points[size_t(w)]));
      else
        std::copy_n(at(far[size_t(next++)]), size, words + w * size);
    }
  }

  std::vector<ptrdiff_t> farthest(ptrdiff_t count) const {
    std::vector<ptrdiff_t> order(static_cast<size_t>(count ? rows : 0));
    std::iota(order.begin(), order.end(), 0);
    auto farther = [&](ptrdiff_t a, ptrdiff_t b) { return distance(a) != distance(b) ? distance(a) > distance(b) : a < b; };
    std::partial_sort(order.begin(), order.begin() + count, order.end(), farther);
    return order;
  }
};

}  // namespace hilbin
