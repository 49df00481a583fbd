// Colors: sRGB to CIE L*a*b* in bytes, and the cell of a color space that a color lies in.
//
// L* covers 0 to 255 and a*, b* are shifted by 128. With x the linear light of one of X, Y, Z over that of white, f(x) is the
// cube root, or a straight line near 0. The cube root begins with a third of the exponent, taken from the bits, and is
// good to rounding after two of Halley's steps, each of which triples the digits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "simd.hpp"

namespace hilbin {

inline Vec<float> cube_root(Vec<float> x) {  // of x >= 2^-20
  constexpr int L = lanes<float>;
  IntVec<float> bits = (IntVec<float>)x;
  const Vec<float> third = __builtin_convertvector(bits, Vec<float>) * (1.0f / 3.0f);
  bits = __builtin_convertvector(third, IntVec<float>) + 0x2a5119f2;
  Vec<float> y = (Vec<float>)bits;
  static_assert(L >= 4);
  for (int i = 0; i < 2; ++i) {
    const Vec<float> cube = y * y * y;
    y = y * ((cube + (x + x)) / (cube + cube + x));
  }
  return y;
}

// What L*, a* and b* are linear in.
inline Vec<float> lightness(Vec<float> x) {
  constexpr float edge = 216.0f / 24389.0f;  // (6 / 29)^3
  const Vec<float> line = x * (841.0f / 108.0f) + 4.0f / 29.0f;
  return x > edge ? cube_root(larger(x, splat(edge))) : line;
}

// The nearest whole number within 0 to 255, ties to even.
inline IntVec<float> to_byte(Vec<float> v) {
  v = smaller(larger(v, splat(0.0f)), splat(255.0f));
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: the digits behind the point do not fit, and are rounded off
  return (IntVec<float>)(v + shift) & 0xff;
}

// Pixels of three bytes; `linear` is the light of a byte, and `to_xyz` the matrix (3, 3) to X, Y, Z over those of white.
inline void lab(const uint8_t* rgb, ptrdiff_t pixels, const float* linear, const float* to_xyz, uint8_t* out) {
  constexpr int L = lanes<float>;
  for (ptrdiff_t first = 0; first < pixels; first += L) {
    const int here = int(pixels - first < L ? pixels - first : L);
    float light[3][L] = {};
    for (int l = 0; l < here; ++l)
      for (int c = 0; c < 3; ++c) light[c][l] = linear[rgb[(first + l) * 3 + c]];
    const Vec<float> r = load(light[0]), g = load(light[1]), b = load(light[2]);
    Vec<float> f[3];
    for (int c = 0; c < 3; ++c) f[c] = lightness(to_xyz[3 * c] * r + to_xyz[3 * c + 1] * g + to_xyz[3 * c + 2] * b);
    const IntVec<float> values[3] = {to_byte((116.0f * f[1] - 16.0f) * 2.55f), to_byte(500.0f * (f[0] - f[1]) + 128.0f),
                                     to_byte(200.0f * (f[1] - f[2]) + 128.0f)};
    for (int l = 0; l < here; ++l)
      for (int c = 0; c < 3; ++c) out[(first + l) * 3 + c] = uint8_t(values[c][l]);
  }
}

// out[i] = the sum over the three bytes of a pixel of what their tables, of 256 numbers each, have for them.
inline void color_cells(const uint8_t* values, ptrdiff_t pixels, const int32_t* tables, int32_t* out) {
  for (ptrdiff_t i = 0; i < pixels; ++i, values += 3) out[i] = tables[values[0]] + tables[256 + values[1]] + tables[512 + values[2]];
}

}  // namespace hilbin
