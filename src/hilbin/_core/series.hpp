// The chi-squared series: c_j(x) = 2 sqrt(k_j) x / (x + k_j) * prod_{l<j} (x - k_l) / (x + k_l).
#pragma once
#include <algorithm>
#include <cstddef>

#include "simd.hpp"

namespace hilbin {

constexpr int most_terms = 64;

// The terms of one vector of values, term by term.
template <class T> inline void series_terms(const T* x, const T* k, const T* twice_root, int terms, T* out) {
  const Vec<T> v = load(x);
  Vec<T> product = v;
  for (int j = 0; j < terms; ++j) {
    const Vec<T> over = product * reciprocal(v + k[j]);
    store(out + j * lanes<T>, twice_root[j] * over);
    product = (v - k[j]) * over;
  }
}

// out[i * terms + j] = c_j(x[i]). `Terms` is the number of terms, or 0 where it is known at run time only.
template <class T, int Terms>
void series(const T* x, ptrdiff_t count, const T* k, const T* twice_root, int run_time_terms, T* out) {
  const int terms = Terms ? Terms : run_time_terms;
  T tile[(Terms ? Terms : most_terms) * lanes<T>], last[lanes<T>] = {};
  for (ptrdiff_t i = 0; i < count; i += lanes<T>) {
    const int here = int(std::min<ptrdiff_t>(lanes<T>, count - i));
    if (here < lanes<T>) std::copy(x + i, x + count, last);
    series_terms(here < lanes<T> ? last : x + i, k, twice_root, terms, tile);
    T* to = out + i * terms;
    for (int lane = 0; lane < here; ++lane)
      for (int j = 0; j < terms; ++j) *to++ = tile[j * lanes<T> + lane];
  }
}

}  // namespace hilbin
