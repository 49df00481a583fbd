// Order statistics of numbers in any order.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "simd.hpp"

namespace hilbin {

constexpr ptrdiff_t few_ranked = 512, largest_sample = 2048, rank_block = 1024;

// Counts the values below `low`, and moves those from `low` to `high` to `some`. A value that is not finite makes `zero` other
// than 0.
template <class T> struct Between {
  ptrdiff_t below = 0, kept = 0;
  T zero = 0;

  void add(const T* values, ptrdiff_t count, T low, T high, T* some) {
    Vec<T> zeros = {};
    IntVec<T> less = {};
    ptrdiff_t i = 0;
    for (; i + lanes<T> <= count; i += lanes<T>) {
      const Vec<T> v = load(values + i);
      zeros += v * T(0);
      less -= v < low;
    }
    for (int l = 0; l < lanes<T>; ++l) zero += zeros[l], below += less[l];
    for (; i < count; ++i) zero += values[i] * T(0), below += values[i] < low;
    for (i = 0; i < count; ++i) {  // without a branch that nobody can predict
      some[kept] = values[i];
      kept += (values[i] >= low) & (values[i] <= high);
    }
  }
};

// The value of rank k, counted from 0, and the one after it. A sample tells between which values both are, with some
// certainty; only those are looked at again. NaN if a value is not finite.
template <class T> std::pair<double, double> ranked(const T* values, ptrdiff_t count, ptrdiff_t k) {
  const ptrdiff_t next = std::min(k + 1, count - 1);
  const std::unique_ptr<T[]> some(new T[count + 1]);
  T low = -std::numeric_limits<T>::infinity(), high = -low;
  if (count > few_ranked) {
    const ptrdiff_t size = std::min(largest_sample, count / 16), step = count / size;
    uint32_t random = 1;
    for (ptrdiff_t s = 0; s < size; ++s) {
      random = random * 1664525u + 1013904223u;
      some[s] = values[s * step + ptrdiff_t((random >> 8) % uint32_t(step))];
    }
    std::sort(some.get(), some.get() + size);
    const double share = double(k) / double(count), spread = 3 * std::sqrt(size * share * (1 - share)) + 2;
    const ptrdiff_t first = ptrdiff_t(size * share - spread), last = ptrdiff_t(size * share + spread);
    if (first >= 0) low = some[first];
    if (last < size) high = some[last];
  }
  Between<T> between;
  for (ptrdiff_t i = 0; i < count; i += rank_block)
    between.add(values + i, std::min(rank_block, count - i), low, high, some.get());
  if (!(between.zero == 0)) return {std::nan(""), std::nan("")};
  ptrdiff_t before = between.below, kept = between.kept;
  if (before > k || before + kept <= next) {  // the sample was unlucky
    std::copy(values, values + count, some.get());
    before = 0, kept = count;
  } else if (kept > few_ranked && kept < count / 2) {
    return ranked(some.get(), kept, k - before);
  }
  T* const at = some.get() + (k - before);
  std::nth_element(some.get(), at, some.get() + kept);
  return {*at, next == k ? *at : *std::min_element(at + 1, some.get() + kept)};
}

}  // namespace hilbin
