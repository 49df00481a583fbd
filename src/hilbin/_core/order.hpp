// Order statistics of the entries above the diagonal of a square matrix.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace hilbin {

// Calls use(value) for every entry above the diagonal.
template <class T, class Use> inline void each_above(const T* values, ptrdiff_t n, Use use) {
  for (ptrdiff_t i = 0; i < n; ++i)
    for (ptrdiff_t j = i + 1; j < n; ++j) use(values[i * n + j]);
}

// The entry of rank k, counted from 0, and the one after it: entries are counted in cells of equal width, and those of the
// cells of both are sorted. NaN if an entry is not finite.
template <class T> std::pair<double, double> ranked_above(const T* values, ptrdiff_t n, ptrdiff_t k) {
  constexpr ptrdiff_t cells = 8192;
  T low = std::numeric_limits<T>::infinity(), high = -low, zero = 0;
  each_above(values, n, [&](T v) { low = std::min(low, v), high = std::max(high, v), zero += v * T(0); });
  if (!(zero == 0)) return {std::nan(""), std::nan("")};
  if (low == high) return {low, low};
  const T scale = T(cells - 1) / (high - low);
  if (!std::isfinite(scale)) return {low, high};  // all within the least difference
  const auto cell = [&](T v) { return ptrdiff_t((v - low) * scale); };
  std::vector<ptrdiff_t> count(cells);
  each_above(values, n, [&](T v) { ++count[cell(v)]; });
  const ptrdiff_t last = n * (n - 1) / 2 - 1, next = std::min(k + 1, last);
  ptrdiff_t first = 0, before = 0, end = 0, upto = 0;
  while (before + count[first] <= k) before += count[first++];
  while (upto <= next) upto += count[end++];
  std::vector<T> some;
  each_above(values, n, [&](T v) {
    const ptrdiff_t c = cell(v);
    if (first <= c && c < end) some.push_back(v);
  });
  std::sort(some.begin(), some.end());
  return {some[k - before], some[next - before]};
}

}  // namespace hilbin
