// Loops that do nothing but what a machine is limited by, compiled by native.py for roofline.py.
#include "simd.hpp"

using namespace hilbin;

extern "C" {

// Independent chains of multiplications with additions, in registers. Returns the number of operations.
double peak_multiply_add(int64_t rounds) {
  constexpr int chains = 12;
  Vec<float> sum[chains] = {}, x = splat(1.0f), y = splat(1e-9f);
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) {
#if defined(__x86_64__)
      asm volatile("" : "+x"(x));
#endif
      sum[i] += x * y;
    }
  volatile float keep = 0;
  for (auto& s : sum) keep = keep + s[0];
  return 2.0 * double(rounds) * chains * lanes<float>;
}

// Reads `count` numbers `rounds` times. Returns the number of bytes.
double read_all(const float* numbers, int64_t count, int64_t rounds) {
  constexpr int chains = 8;
  Vec<float> sum[chains] = {};
  for (int64_t r = 0; r < rounds; ++r) {
    for (int64_t i = 0; i + chains * lanes<float> <= count; i += chains * lanes<float>)
#pragma GCC unroll 8
      for (int c = 0; c < chains; ++c) sum[c] += load(numbers + i + c * lanes<float>);
    asm volatile("" : : : "memory");
  }
  volatile float keep = 0;
  for (auto& s : sum) keep = keep + s[0];
  return double(rounds) * double(count) * sizeof(float);
}

// out[i] = the sum of the entries of 16 tables of 256 numbers at 16 bytes each: look-ups in the first cache. Returns the
// number of look-ups. Vectors would be slower: their indices have to come back from vector registers.
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("no-tree-vectorize,no-tree-slp-vectorize")))
#endif
double peak_look_ups(const uint8_t* codes, const float* tables, int64_t rows, int64_t rounds, float* out) {
  constexpr int side = 8, parts = 16;
  for (int64_t i = 0; i + side <= rounds * rows; i += side) {
    const uint8_t* at = codes + i % rows * parts;
    float sum[side] = {};
    for (int j = 0; j < parts; ++j)
#pragma GCC unroll 8
      for (int s = 0; s < side; ++s) sum[s] += tables[j * 256 + at[s * parts + j]];
    for (int s = 0; s < side; ++s) out[i % rows + s] = sum[s];
  }
  return double(rounds) * double(rows) * parts;
}
}
