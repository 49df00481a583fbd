// Product quantisation of rows: k-means of every block of components, and the nearest word of a block as its code.
#pragma once
#include <cmath>
#include <numeric>

#include "nearest.hpp"
#include "words.hpp"

namespace hilbin {

// Rows of floats, of which blocks of `size` columns are quantised; the last block may have fewer.
struct Points {
  const float* numbers;
  ptrdiff_t rows, columns, row_stride, size;

  ptrdiff_t blocks() const { return (columns + size - 1) / size; }

  // The components of a block, relative to `shift`, of some rows; those there are not are 0.
  void copy(ptrdiff_t block, ptrdiff_t begin, ptrdiff_t end, const float* shift, float* out) const {
    const ptrdiff_t first = block * size, count = std::min(size, columns - first);
    for (ptrdiff_t i = begin; i < end; ++i, out += size) {
      const float* from = numbers + i * row_stride + first;
      for (ptrdiff_t g = 0; g < count; ++g) out[g] = from[g] - shift[g];
      std::fill(out + count, out + size, 0.0f);
    }
  }
};

// Centres of few dimensions, ready for nearest().
inline Centres centres_of(const float* words, ptrdiff_t count, ptrdiff_t size) {
  std::vector<float> half(static_cast<size_t>(count));
  for (ptrdiff_t w = 0; w < count; ++w) {
    double squares = 0;
    for (ptrdiff_t g = 0; g < size; ++g) squares += double(words[w * size + g]) * words[w * size + g];
    half[size_t(w)] = float(squares / 2);
  }
  return Centres(words, half.data(), count, size);
}

// Mean of `count` rows; in double, so that many rows do not drown the later ones.
inline std::vector<float> mean_row(const float* rows, ptrdiff_t count, ptrdiff_t size) {
  std::vector<double> sums(static_cast<size_t>(size));
  for (ptrdiff_t i = 0; i < count; ++i)
    for (ptrdiff_t g = 0; g < size; ++g) sums[size_t(g)] += rows[i * size + g];
  std::vector<float> mean(static_cast<size_t>(size));
  for (size_t g = 0; g < mean.size(); ++g) mean[g] = float(sums[g] / double(count));
  return mean;
}

// codes of one block of all rows, 32 apart; words[word, g]. Distances are measured from the mean of the words: far
// from the origin they would lose digits.
template <class Code>
void encode_block(const Points& points, ptrdiff_t block, const float* words, ptrdiff_t count, Code* codes) {
  constexpr ptrdiff_t few = 8 * block_rows;
  const ptrdiff_t size = points.size;
  const std::vector<float> shift = mean_row(words, count, size);
  std::vector<float> shifted(words, words + count * size), buffer(size_t(few * size)), scores(few);
  for (size_t k = 0; k < shifted.size(); ++k) shifted[k] -= shift[k % size_t(size)];
  const Centres centres = centres_of(shifted.data(), count, size);
  std::vector<int32_t> found(few);
  for (ptrdiff_t begin = 0; begin < points.rows; begin += few) {
    const ptrdiff_t end = std::min(begin + few, points.rows);
    points.copy(block, begin, end, shift.data(), buffer.data());
    nearest(buffer.data(), end - begin, centres, 1, found.data(), scores.data());
    for (ptrdiff_t i = begin; i < end; ++i) codes[i * chunk_blocks] = Code(found[size_t(i - begin)]);
  }
}

// Lloyd's algorithm on the points of one block.
class BlockMeans {
 public:
  BlockMeans(const Points& points, ptrdiff_t block)
      : rows(points.rows), size(points.size), numbers(size_t(rows * size)), squares(size_t(rows)), scores(size_t(rows)),
        labels(size_t(rows)) {
    const std::vector<float> origin(static_cast<size_t>(size));
    points.copy(block, 0, rows, origin.data(), numbers.data());
    shift = mean_row(numbers.data(), rows, size);
    for (size_t k = 0; k < numbers.size(); ++k) numbers[k] -= shift[k % size_t(size)];
    for (ptrdiff_t i = 0; i < rows; ++i) {
      for (ptrdiff_t g = 0; g < size; ++g) squares[size_t(i)] += at(i)[g] * at(i)[g];
      variation += squares[size_t(i)];
    }
  }

  // Words from the rows `seeds` on, until a round makes the sum of squared distances smaller by less than `tol` of
  // it. Returns that sum.
  double run(const int64_t* seeds, ptrdiff_t count, int rounds, double tol, float* words) {
    for (ptrdiff_t w = 0; w < count; ++w) std::copy_n(at(seeds[w]), size, words + w * size);
    double inertia = assign(words, count);
    for (int round = 0; round < rounds; ++round) {
      move(words, count);
      const double before = inertia;
      inertia = assign(words, count);
      if (before - inertia <= tol * inertia) break;
    }
    for (ptrdiff_t k = 0; k < count * size; ++k) words[k] += shift[size_t(k % size)];
    return inertia;
  }

  double variation = 0;  // the sum of squared distances from the mean

 private:
  ptrdiff_t rows, size;
  std::vector<float> numbers, squares, scores, shift;
  std::vector<int32_t> labels;

  const float* at(ptrdiff_t i) const { return numbers.data() + i * size; }
  double distance(ptrdiff_t i) const { return std::max(0.0f, squares[size_t(i)] - 2 * scores[size_t(i)]); }

  double assign(const float* words, ptrdiff_t count) {
    nearest(numbers.data(), rows, centres_of(words, count, size), 1, labels.data(), scores.data());
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
    const ptrdiff_t empty = std::count(points.begin(), points.end(), 0);
    const std::vector<ptrdiff_t> far = farthest(empty);
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
