// The risk of hinge losses on the lines between two points, at several steps of each at once.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "simd.hpp"

namespace hilbin {

// Scores at both ends of the lines and targets, rows x tasks, and the weights of rows. The sums of few rows are in T.
template <class T> class HingeLines {
 public:
  const T *old_scores, *new_scores, *targets;
  const double* weights;
  ptrdiff_t rows, tasks;
  bool squared;

  // values[task, step] += the sum of w max(0, 1 - t s), or its square, where s is so far from the old score to the new one.
  void add(const double* steps, ptrdiff_t count, double* values) const {
    constexpr ptrdiff_t rows_at_once = 64;
    const ptrdiff_t width = (count + lanes<T> - 1) / lanes<T> * lanes<T>;
    std::vector<T> shares(size_t(tasks * width)), sums(shares.size());
    for (ptrdiff_t k = 0; k < tasks; ++k) std::copy_n(steps + k * count, count, shares.data() + k * width);
    for (ptrdiff_t first = 0; first < rows; first += rows_at_once) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (ptrdiff_t i = first; i < std::min(rows, first + rows_at_once); ++i)
        if (weights[i] != 0) add_row(i, shares.data(), width, sums.data());
      for (ptrdiff_t k = 0; k < tasks; ++k)
        for (ptrdiff_t g = 0; g < count; ++g) values[k * count + g] += double(sums[size_t(k * width + g)]);
    }
  }

 private:
  void add_row(ptrdiff_t i, const T* shares, ptrdiff_t width, T* sums) const {
    for (ptrdiff_t k = 0; k < tasks; ++k, shares += width, sums += width) {
      const ptrdiff_t at = i * tasks + k;
      const T begin = 1 - targets[at] * old_scores[at], change = 1 - targets[at] * new_scores[at] - begin;
      if (begin <= 0 && begin + change <= 0) continue;  // convex, so 0 between
      const bool finite = std::isfinite(begin) && std::isfinite(change);
      const T weight = finite ? T(weights[i]) : std::numeric_limits<T>::quiet_NaN();
      for (ptrdiff_t g = 0; g < width; g += lanes<T>) {
        const Vec<T> loss = larger(splat(begin) + splat(change) * load(shares + g), Vec<T>{});
        store(sums + g, load(sums + g) + splat(weight) * (squared ? loss * loss : loss));
      }
    }
  }
};

}  // namespace hilbin
