// Vectors of the widest kind the instruction level has, by the vector extensions of GCC and Clang.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Loops whose body is a function: a call per value would cost more than the body.
#define HILBIN_INLINE inline __attribute__((always_inline))
#define HILBIN_INLINE_LAMBDA __attribute__((always_inline))

namespace hilbin {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T> struct Simd;
template <> struct Simd<float> {
  typedef float V __attribute__((vector_size(vector_bytes)));
  typedef int32_t Int;
  typedef int32_t I __attribute__((vector_size(vector_bytes)));
  static constexpr int mantissa_bits = 23;
};
template <> struct Simd<double> {
  typedef double V __attribute__((vector_size(vector_bytes)));
  typedef int64_t Int;
  typedef int64_t I __attribute__((vector_size(vector_bytes)));
  static constexpr int mantissa_bits = 52;
};

template <class T> using Vec = typename Simd<T>::V;
template <class T> using IntVec = typename Simd<T>::I;
template <class T> using IntOf = typename Simd<T>::Int;
template <class T> constexpr int lanes = vector_bytes / int(sizeof(T));

// A vector for runs of `most` numbers: no wider than they are.
template <class T, int most> struct Few {
  static constexpr int lanes = most < hilbin::lanes<T> ? most : hilbin::lanes<T>;
  typedef T V __attribute__((vector_size(lanes * sizeof(T))));
  typedef IntOf<T> I __attribute__((vector_size(lanes * sizeof(T))));
};

// Vectors for short runs of any length: wider ones would mostly be filled up.
template <class T> using Short = Few<T, 32 / int(sizeof(T))>;

template <class V, class T> inline V load_as_vector(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T> inline Vec<T> load(const T* p) { return load_as_vector<Vec<T>>(p); }
template <class T, class V> inline void store(T* p, V v) {
  static_assert(sizeof(v[0]) == sizeof(T));
  std::memcpy(p, &v, sizeof v);
}
// As many doubles as a vector has, from doubles or floats.
inline Vec<double> load_doubles(const double* p) { return load(p); }
typedef float Half __attribute__((vector_size(vector_bytes / 2)));  // as many floats
#if defined(__AVX512F__)  // GCC makes several instructions of the conversions
inline Vec<double> load_doubles(const float* p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
inline Half narrowed(Vec<double> v) { return _mm512_cvtpd_ps(v); }
#elif defined(__AVX2__)
inline Vec<double> load_doubles(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline Half narrowed(Vec<double> v) { return _mm256_cvtpd_ps(v); }
#else
inline Vec<double> load_doubles(const float* p) {
  Half v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Vec<double>);
}
inline Half narrowed(Vec<double> v) { return __builtin_convertvector(v, Half); }
#endif
// The same, at most four.
using Double4 = Few<double, 4>::V;
#if defined(__AVX512F__)
inline Double4 load_four(const double* p) { return load_as_vector<Double4>(p); }
inline Double4 load_four(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
#else
template <class T> inline Double4 load_four(const T* p) { return load_doubles(p); }
#endif
template <class T> inline Vec<T> splat(T x) { return x - Vec<T>{}; }

template <class V> inline V smaller(V a, V b) { return a < b ? a : b; }
template <class V> inline V larger(V a, V b) { return a > b ? a : b; }
#if defined(__AVX2__)  // GCC makes a comparison and a blend of the ternary when an operand is constant
using Float8 = Few<float, 8>::V;
inline Float8 smaller(Float8 a, Float8 b) { return _mm256_min_ps(a, b); }
inline Float8 larger(Float8 a, Float8 b) { return _mm256_max_ps(a, b); }
inline Double4 smaller(Double4 a, Double4 b) { return _mm256_min_pd(a, b); }
inline Double4 larger(Double4 a, Double4 b) { return _mm256_max_pd(a, b); }
#endif
#if defined(__AVX512F__)
inline Vec<float> smaller(Vec<float> a, Vec<float> b) { return _mm512_min_ps(a, b); }
inline Vec<float> larger(Vec<float> a, Vec<float> b) { return _mm512_max_ps(a, b); }
inline Vec<double> smaller(Vec<double> a, Vec<double> b) { return _mm512_min_pd(a, b); }
inline Vec<double> larger(Vec<double> a, Vec<double> b) { return _mm512_max_pd(a, b); }
#endif

inline Vec<float> magnitude(Vec<float> a) {
  return (Vec<float>)((IntVec<float>)a & ~(IntVec<float>)(-Vec<float>{}));
}
inline Vec<double> magnitude(Vec<double> a) {
  return (Vec<double>)((IntVec<double>)a & ~(IntVec<double>)(-Vec<double>{}));
}

// 1/a to rounding; a must be a normal number.
inline Vec<double> reciprocal(Vec<double> a) { return 1.0 / a; }
inline Vec<float> reciprocal(Vec<float> a) {
#if defined(__AVX2__)
  // The estimate of 12 or 14 bits and one Newton step: half the cost of a division.
#if defined(__AVX512F__)
  const Vec<float> r = _mm512_rcp14_ps(a);
#else
  const Vec<float> r = _mm256_rcp_ps(a);
#endif
  return r * (2.0f - a * r);
#else
  return 1.0f / a;
#endif
}

}  // namespace hilbin
