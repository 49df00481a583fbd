// The inner function of a pairwise sum  K(x, y) = scale * sum_d op(x_d, y_d), one struct each.
//
// An op reads `planes` prepared numbers per value (say x and log2 x). `rows` x `vectors` is the
// register tile of the dense loop: as many accumulators as fit beside the op's temporaries.
#pragma once
#include <cstddef>
#include <limits>

#include "simd.hpp"

namespace hilbin {

constexpr bool many_registers = vector_bytes == 64;  // 32, else 16

struct Stateless {
  static constexpr int least_numbers = 0;  // what an op made from a profile is given
};

struct Minimum : Stateless {  // intersection: min(x, y)
  static constexpr int planes = 1, rows = many_registers ? 8 : 6, vectors = many_registers ? 3 : 2;
  static constexpr double scale = 1;
  template <class V> V operator()(const V* x, const V* y) const { return smaller(x[0], y[0]); }
};

struct Harmonic : Stateless {  // chi-squared: 2 x y / (x + y)
  static constexpr int planes = 1, rows = many_registers ? 8 : 4, vectors = 2;
  static constexpr double scale = 2;
  template <class V> V operator()(const V* x, const V* y) const {
    using T = decltype(x[0][0] + 0);
    const V sum = larger(x[0] + y[0], V{} + std::numeric_limits<T>::min());
    return x[0] * (y[0] * reciprocal(sum));
  }
};

// (1 + q) log2(1 + q) / q on [0, 1]: its Chebyshev expansion, in powers of q; relative error 2e-7
// (float) and 2e-16 (double).
constexpr float entropy_float[] = {1.442695381f,    0.7213125806f,  -0.2398519416f, 0.1162793148f,
                                   -0.05903472488f, 0.02323198828f, -0.004632857196f};
constexpr double entropy_double[] = {
    1.44269504088896363, 0.721347520444332355, -0.240449173465026165, 0.12022458601862806,
    -0.0721347352727944335, 0.0480895964039033547, -0.0343476252399205057, 0.0257473452030587808,
    -0.0199637111931454729, 0.0157580279015272052, -0.0123429971576097244, 0.00920982195036403157,
    -0.00619712532332873844, 0.00353074339193620941, -0.00158900350685217291, 0.000519015878390756941,
    -0.000107980348291352427, 0.0000106534258643438607};

template <class T, class V, int N> inline V horner(const T (&c)[N], V q) {
  V p = V{} + c[N - 1];
#pragma GCC unroll 32
  for (int i = N - 2; i >= 0; --i) p = p * q + c[i];
  return p;
}
inline Vec<float> entropy(Vec<float> q) { return horner(entropy_float, q); }
inline Vec<double> entropy(Vec<double> q) { return horner(entropy_double, q); }

// Jensen-Shannon: (x log2((x+y)/x) + y log2((x+y)/y)) / 2. With m = min, q = min(x/y, y/x) it is
//   m ((1 + q) log2(1 + q) / q + |log2 x - log2 y|) / 2,
// a sum of positive terms: no cancellation, and one polynomial instead of logarithm and division.
struct JensenShannon : Stateless {
  static constexpr int planes = 3, rows = many_registers ? 2 : 1, vectors = 2;  // x, 1/x, log2 x; finite at x = 0
  static constexpr double scale = 0.5;
  template <class V> V operator()(const V* x, const V* y) const {
    const V q = smaller(x[0] * y[1], x[1] * y[0]);
    return smaller(x[0], y[0]) * (entropy(q) + magnitude(x[2] - y[2]));
  }
};

struct AbsoluteDifference : Stateless {  // |x - y|
  static constexpr int planes = 1, rows = many_registers ? 8 : 6, vectors = many_registers ? 3 : 2;
  static constexpr double scale = 1;
  template <class V> V operator()(const V* x, const V* y) const { return magnitude(x[0] - y[0]); }
};

struct SquaredDifference : Stateless {  // (x - y)^2
  static constexpr int planes = 1, rows = many_registers ? 8 : 6, vectors = many_registers ? 3 : 2;
  static constexpr double scale = 1;
  template <class V> V operator()(const V* x, const V* y) const {
    const V d = x[0] - y[0];
    return d * d;
  }
};

struct HarmonicDifference : Stateless {  // chi-squared distance: (x - y)^2 / (x + y) / 2
  static constexpr int planes = 1, rows = many_registers ? 8 : 4, vectors = 2;
  static constexpr double scale = 0.5;
  template <class V> V operator()(const V* x, const V* y) const {
    using T = decltype(x[0][0] + 0);
    const V sum = larger(x[0] + y[0], V{} + std::numeric_limits<T>::min());
    const V d = x[0] - y[0];
    return d * (d * reciprocal(sum));
  }
};

struct LogDifference : Stateless {  // (x - y)(log x - log y)
  static constexpr int planes = 2, rows = many_registers ? 8 : 4, vectors = 2;  // x, log x
  static constexpr double scale = 1;
  template <class V> V operator()(const V* x, const V* y) const {
    return (x[0] - y[0]) * (x[1] - y[1]);
  }
};

// A profile that is a polynomial in q = exp(-rate |u(x) - u(y)|): r(x) r(y) (c_0 + c_1 q + ...).
template <class T, int degree> struct Powers {
  static constexpr int planes = 3, rows = 2, vectors = 2;  // exp(rate u), exp(-rate u), r
  static constexpr double scale = 1;
  static constexpr int least_numbers = degree + 1;
  Vec<T> c[degree + 1] = {};

  explicit Powers(const T* coefficients) {
    for (int i = 0; coefficients && i <= degree; ++i) c[i] = splat(coefficients[i]);
  }
  Vec<T> operator()(const Vec<T>* x, const Vec<T>* y) const {
    const Vec<T> q = smaller(x[0] * y[1], x[1] * y[0]);
    Vec<T> p = c[degree];
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; --i) p = p * q + c[i];
    return (x[2] * y[2]) * p;
  }
};

// A tabulated profile: r(x) r(y) P(|u(x) - u(y)|), u scaled so that v = 1 + |u(x) - u(y)| stays
// inside the table's octaves [1, 2), [2, 4), ... Each octave has 2^cell_bits cells, found by the
// leading bits of v: fine near 0, wider with the distance. A cell holds a polynomial, linear in v for
// float (the table stays in the first cache), cubic in v - (the cell's start) for double.
template <class T> struct Table {
  static constexpr int planes = 2, rows = 4, vectors = 1;  // u, r
  static constexpr double scale = 1;
  static constexpr int cell_bits = 8, shift = Simd<T>::mantissa_bits - cell_bits;
  static constexpr int coefficients = sizeof(T) == 4 ? 2 : 4;
  static constexpr int least_numbers = coefficients;
  static constexpr ptrdiff_t first_cell = ptrdiff_t(sizeof(T) == 4 ? 127 : 1023) << cell_bits;
  using V = Vec<T>;
  using I = IntVec<T>;

  const T* cells;

  V operator()(const V* x, const V* y) const {
    const V v = magnitude(x[0] - y[0]) + T(1);
    const I cell = (I)v >> shift;
    return (x[1] * y[1]) * evaluate(v, cell);
  }

 private:
  const T* at(uint64_t cell) const { return cells + coefficients * (ptrdiff_t(cell) - first_cell); }

  V evaluate(V v, I cell) const {
    V c[coefficients] = {};
#if defined(__AVX512F__)
    // Rows of four coefficients, two by two in one vector, transposed: a gather takes twice the time.
    __m512d two[4];
    for (int n = 0; n < 4; ++n)
      two[n] = _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(at(cell[n]))), _mm256_loadu_pd(at(cell[n + 4])), 1);
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    const __m512d even01 = _mm512_unpacklo_pd(two[0], two[1]), odd01 = _mm512_unpackhi_pd(two[0], two[1]);
    const __m512d even23 = _mm512_unpacklo_pd(two[2], two[3]), odd23 = _mm512_unpackhi_pd(two[2], two[3]);
    c[0] = _mm512_permutex2var_pd(even01, low, even23), c[2] = _mm512_permutex2var_pd(even01, high, even23);
    c[1] = _mm512_permutex2var_pd(odd01, low, odd23), c[3] = _mm512_permutex2var_pd(odd01, high, odd23);
#else
    for (int lane = 0; lane < lanes<T>; ++lane)
      for (int i = 0; i < coefficients; ++i) c[i][lane] = at(cell[lane])[i];
#endif
    if constexpr (coefficients == 2) return c[0] + c[1] * v;
    else {
      const V h = v - (V)(cell << shift);
      return c[0] + h * (c[1] + h * (c[2] + h * c[3]));
    }
  }
};

#if defined(__AVX2__)
// Eight look-ups of 64-bit pairs, in the order that one in-lane shuffle separates. Hardware gathers
// take twice the time.
template <class At> HILBIN_INLINE void look_up_eight(__m256i cell, At at, Float8& offset, Float8& slope) {
  const __m128i low = _mm256_castsi256_si128(cell), high = _mm256_extracti128_si256(cell, 1);
  const auto pair = [at](uint64_t two) {
    const auto* a = reinterpret_cast<const double*>(at(uint32_t(two)));
    const auto* b = reinterpret_cast<const double*>(at(two >> 32));
    return _mm_loadh_pd(_mm_load_sd(a), b);
  };
  const auto a = (Float8)_mm256_set_m128d(pair(_mm_cvtsi128_si64(high)), pair(_mm_cvtsi128_si64(low)));
  const auto b = (Float8)_mm256_set_m128d(pair(_mm_extract_epi64(high, 1)), pair(_mm_extract_epi64(low, 1)));
  offset = __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14);
  slope = __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
}
template <> inline Vec<float> Table<float>::evaluate(Vec<float> v, IntVec<float> cell) const {
  const auto look_up = [this](uint64_t number) { return at(number); };
  Float8 offset, slope;
#if defined(__AVX512F__)
  Float8 offset2, slope2;
  look_up_eight(_mm512_castsi512_si256((__m512i)cell), look_up, offset, slope);
  look_up_eight(_mm512_extracti64x4_epi64((__m512i)cell, 1), look_up, offset2, slope2);
  const auto both = [](Float8 a, Float8 b) { return Vec<float>(_mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1)); };
  return both(offset, offset2) + both(slope, slope2) * v;
#else
  look_up_eight((__m256i)cell, look_up, offset, slope);
  return offset + slope * v;
#endif
}
#endif

}  // namespace hilbin
