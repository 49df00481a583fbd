// The Walsh-Hadamard transform of a row whose length is a power of two, in place.
#pragma once
#include <cstddef>
#include <utility>

#include "simd.hpp"

namespace hilbin {

// One stage within a vector: lanes that differ in bit `step` become their sum and difference.
template <class T, int step, size_t... lane> inline Vec<T> stage(Vec<T> v, std::index_sequence<lane...>) {
  const Vec<T> sign = {(lane & step ? T(-1) : T(1))...};
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(v, v, int(lane ^ step)...) + sign * v;
#else
  return __builtin_shuffle(v, IntVec<T>{int(lane ^ step)...}) + sign * v;
#endif
}

template <class T, int step = 1> inline Vec<T> stages(Vec<T> v) {
  if constexpr (step < lanes<T>)
    return stages<T, 2 * step>(stage<T, step>(v, std::make_index_sequence<lanes<T>>()));
  else
    return v;
}

template <class T> inline void butterfly(T* a, T* b) {
  const Vec<T> x = load(a), y = load(b);
  store(a, x + y);
  store(b, x - y);
}

// row = H (signs * row).
template <class T> void hadamard(T* row, const T* signs, ptrdiff_t length) {
  if (length < lanes<T>) {
    for (ptrdiff_t i = 0; i < length; ++i) row[i] *= signs[i];
    for (ptrdiff_t step = 1; step < length; step *= 2)
      for (ptrdiff_t i = 0; i < length; ++i)
        if (!(i & step)) {
          const T x = row[i], y = row[i + step];
          row[i] = x + y, row[i + step] = x - y;
        }
    return;
  }
  for (ptrdiff_t i = 0; i < length; i += lanes<T>) store(row + i, stages<T>(load(row + i) * load(signs + i)));
  ptrdiff_t step = lanes<T>;
  for (; 4 * step <= length; step *= 4)  // two stages at a time: half the traffic with the cache
    for (ptrdiff_t block = 0; block < length; block += 4 * step)
      for (ptrdiff_t i = block; i < block + step; i += lanes<T>) {
        const Vec<T> a = load(row + i), b = load(row + i + step);
        const Vec<T> c = load(row + i + 2 * step), d = load(row + i + 3 * step);
        const Vec<T> ab = a + b, a_b = a - b, cd = c + d, c_d = c - d;
        store(row + i, ab + cd);
        store(row + i + step, a_b + c_d);
        store(row + i + 2 * step, ab - cd);
        store(row + i + 3 * step, a_b - c_d);
      }
  for (; step < length; step *= 2)
    for (ptrdiff_t block = 0; block < length; block += 2 * step)
      for (ptrdiff_t i = block; i < block + step; i += lanes<T>) butterfly(row + i, row + i + step);
}

}  // namespace hilbin
