// Cosine and sine together: the argument is reduced by multiples of pi/2, subtracted in three parts
// whose products are exact, and both functions are Taylor polynomials on [-pi/4, pi/4].
#pragma once
#include <cmath>
#include <cstddef>

#include "simd.hpp"

namespace hilbin {

template <class T> struct Trig;
template <> struct Trig<float> {
  static constexpr float parts[3] = {1.5703125f, 4.837512969970703125e-4f, 7.549789948768648e-8f};
  static constexpr float round = 12582912.0f;  // 1.5 * 2^23: adding it leaves no fraction
  static constexpr float largest = 8192.0f;
  static constexpr int sine_terms = 5, cosine_terms = 6;
};
template <> struct Trig<double> {
  static constexpr double parts[3] = {1.57079632673412561417e+00, 6.07710050630396597660e-11,
                                      2.02226624879595063154e-21};
  static constexpr double round = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double largest = 1e5;
  static constexpr int sine_terms = 8, cosine_terms = 9;
};

// sum_i (-1)^i z^i / (first + 2 i)!, by Horner's rule on the ratios of its terms.
template <class T, int terms> inline Vec<T> alternating(Vec<T> z, int first) {
  Vec<T> sum = splat(T(1));
  for (int i = terms - 1; i >= 1; --i) sum = T(1) - sum * z * (T(1) / T((first + 2 * i - 1) * (first + 2 * i)));
  return sum;
}

template <class T> inline void cosine_sine(Vec<T> x, Vec<T>& cosine, Vec<T>& sine) {
  constexpr int top = 8 * sizeof(T) - 2;  // moves bit 1 to the sign
  const Vec<T> shifted = x * T(0.63661977236758134308) + Trig<T>::round;
  const Vec<T> turns = shifted - Trig<T>::round;
  const IntVec<T> quadrant = (IntVec<T>)shifted;
  Vec<T> r = x;
  for (T part : Trig<T>::parts) r -= turns * part;
  const Vec<T> z = r * r;
  const Vec<T> s = r * alternating<T, Trig<T>::sine_terms>(z, 1), c = alternating<T, Trig<T>::cosine_terms>(z, 0);
  const IntVec<T> odd = (quadrant & 1) != 0;
  cosine = (Vec<T>)((IntVec<T>)(odd ? s : c) ^ (((quadrant + 1) & 2) << top));
  sine = (Vec<T>)((IntVec<T>)(odd ? c : s) ^ ((quadrant & 2) << top));
}

// out[0..count) = scale cos(x), out[count..2 count) = scale sin(x).
template <class T> void cosines_sines(const T* x, ptrdiff_t count, T scale, T* out) {
  auto exactly = [&](ptrdiff_t begin, ptrdiff_t end) {
    for (ptrdiff_t i = begin; i < end; ++i) out[i] = scale * std::cos(x[i]), out[count + i] = scale * std::sin(x[i]);
  };
  ptrdiff_t i = 0;
  for (; i + lanes<T> <= count; i += lanes<T>) {
    const Vec<T> v = load(x + i);
    const IntVec<T> large = magnitude(v) > Trig<T>::largest;
    bool any = false;
    for (int lane = 0; lane < lanes<T>; ++lane) any |= large[lane] != 0;
    if (any) {
      exactly(i, i + lanes<T>);
      continue;
    }
    Vec<T> cosine, sine;
    cosine_sine<T>(v, cosine, sine);
    store(out + i, scale * cosine);
    store(out + count + i, scale * sine);
  }
  exactly(i, count);
}

}  // namespace hilbin
