// Vectors of the widest kind the instruction level has, by the vector extensions of GCC and Clang.
#pragma once
#include <cstddef>
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

#if defined(__AVX2__)
// out[l * stride + k] = from[k][l] for eight vectors of eight lanes.
inline void store_eight(const Float8* from, float* out, ptrdiff_t stride) {
  Float8 pair[8], quad[8];
  for (int i = 0; i < 4; ++i) {
    pair[i] = _mm256_unpacklo_ps(from[2 * i], from[2 * i + 1]);
    pair[i + 4] = _mm256_unpackhi_ps(from[2 * i], from[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {  // quad[2 i + j] = lanes i and i + 4 of the vectors 4 j to 4 j + 3
    const Float8* of = pair + (i & 2) * 2;
    for (int j = 0; j < 2; ++j)
      quad[2 * i + j] = i & 1 ? _mm256_shuffle_ps(of[2 * j], of[2 * j + 1], 0xEE) : _mm256_shuffle_ps(of[2 * j], of[2 * j + 1], 0x44);
  }
  for (int i = 0; i < 4; ++i) {
    store(out + i * stride, Float8(_mm256_permute2f128_ps(quad[2 * i], quad[2 * i + 1], 0x20)));
    store(out + (i + 4) * stride, Float8(_mm256_permute2f128_ps(quad[2 * i], quad[2 * i + 1], 0x31)));
  }
}
#endif

// out[l * stride + k] = from[k][l] for k < count and all lanes; from AVX2 on the count is a multiple of 8.
template <int count> inline void store_transposed(const Vec<float>* from, float* out, ptrdiff_t stride) {
#if defined(__AVX2__)
  for (int k = 0; k < count; k += 8) {
    static_assert(count % 8 == 0);
#if defined(__AVX512F__)
    Float8 low[8], high[8];
    for (int i = 0; i < 8; ++i) low[i] = _mm512_castps512_ps256(from[k + i]), high[i] = _mm512_extractf32x8_ps(from[k + i], 1);
    store_eight(low, out + k, stride);
    store_eight(high, out + 8 * stride + k, stride);
#else
    store_eight(from + k, out + k, stride);
#endif
  }
#else
  for (int l = 0; l < lanes<float>; ++l)
    for (int k = 0; k < count; ++k) out[l * stride + k] = from[k][l];
#endif
}

}  // namespace hilbin
