// What a binner learns of columns: extremes and quantiles; and numbers by which rows are told apart.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "simd.hpp"

namespace hilbin {

// The least and greatest value of every column of dense rows, of so many columns at a time that both stay in the cache.
template <class T> void dense_extremes(const T* x, ptrdiff_t rows, ptrdiff_t columns, T* least, T* greatest) {
  constexpr ptrdiff_t at_once = 1024;
  for (ptrdiff_t first = 0; first < columns; first += at_once) {
    const ptrdiff_t last = std::min(columns, first + at_once);
    const T* row = x;
    for (ptrdiff_t i = 0; i < rows; ++i, row += columns)
      for (ptrdiff_t j = first; j < last; ++j) {
        least[j] = std::min(least[j], row[j]);
        greatest[j] = std::max(greatest[j], row[j]);
      }
  }
}

// The same of CSR entries, each of which is the only one of its row and column; what is not stored is 0.
template <class T, class Index>
void sparse_extremes(const T* values, const Index* indices, ptrdiff_t count, ptrdiff_t rows, ptrdiff_t columns, T* least, T* greatest) {
  std::vector<ptrdiff_t> stored(static_cast<size_t>(columns));
  for (ptrdiff_t k = 0; k < count; ++k) {
    const auto j = indices[k];
    least[j] = std::min(least[j], values[k]);
    greatest[j] = std::max(greatest[j], values[k]);
    ++stored[size_t(j)];
  }
  for (ptrdiff_t j = 0; j < columns; ++j)
    if (stored[size_t(j)] < rows) least[j] = std::min(least[j], T(0)), greatest[j] = std::max(greatest[j], T(0));
}

// Columns [begin, end) of dense rows, one after the other. Rows pass in tiles, so that every cache line is read once.
template <class T> void copy_columns(const T* x, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t begin, ptrdiff_t end, T* out) {
  constexpr ptrdiff_t tile = 16;
  for (ptrdiff_t first = 0; first < rows; first += tile) {
    const ptrdiff_t last = std::min(first + tile, rows);
    for (ptrdiff_t j = begin; j < end; ++j)
      for (ptrdiff_t i = first; i < last; ++i) out[(j - begin) * rows + i] = x[i * columns + j];
  }
}

// The places, as bits of a number, for which something holds: vector(i) says it of several from i on, one(i) of i alone.
template <class T> using BitsOf = std::make_unsigned_t<IntOf<T>>;
template <class T> constexpr ptrdiff_t word = 8 * sizeof(T);  // the most places
template <class T, class Vector, class One> HILBIN_INLINE BitsOf<T> bits_of(ptrdiff_t count, Vector vector, One one) {
  typedef BitsOf<T> BitVec __attribute__((vector_size(vector_bytes)));
  BitVec found{}, bit;
  for (int lane = 0; lane < lanes<T>; ++lane) bit[lane] = BitsOf<T>(1) << lane;
  ptrdiff_t i = 0;
  for (; i + lanes<T> <= count; i += lanes<T>, bit <<= lanes<T>) found |= BitVec(vector(i)) & bit;
  BitsOf<T> all = 0;
  for (int lane = 0; lane < lanes<T>; ++lane) all |= found[lane];
  for (; i < count; ++i) all |= BitsOf<T>(one(i)) << i;
  return all;
}

template <class T> ptrdiff_t count_up_to(const T* values, ptrdiff_t count, T most) {
  ptrdiff_t n = 0;
  for (ptrdiff_t i = 0; i < count; ++i) n += values[i] <= most;
  return n;
}

// Two values between which the nth smallest nearly always lies, by a random sample; infinite where the sample says nothing.
template <class T> std::pair<T, T> bracket(const T* values, ptrdiff_t count, ptrdiff_t nth) {
  constexpr int most = 512;
  const int size = count < 65536 ? most / 4 : most;  // choosing among them should take less than the pass
  T sample[most];
  uint64_t at = 0;
  for (int k = 0; k < size; ++k) sample[k] = values[((at += 0x9E3779B97F4A7C15ull) >> 32) * uint64_t(count) >> 32];
  const double share = double(nth) / double(count), middle = share * size, room = 2.5 * std::sqrt(middle * (1 - share)) + 2;
  const int low = int(std::floor(middle - room)), high = int(std::ceil(middle + room));
  const T none = std::numeric_limits<T>::infinity();
  if (low >= 0) std::nth_element(sample, sample + low, sample + size);
  if (high < size) std::nth_element(sample + std::max(low + 1, 0), sample + high, sample + size);
  return {low < 0 ? -none : sample[low], high >= size ? none : sample[high]};
}

// How many values lie below a bracket and on its ends; those between are copied to `kept`, from which the values may come.
// It grows as it is filled: fresh memory costs more than the pass.
struct Parts {
  ptrdiff_t below = 0, at_low = 0, between = 0, at_high = 0;
};
template <class T> Parts part(const T* values, ptrdiff_t count, T low, T high, std::vector<T>& kept) {
  constexpr ptrdiff_t at_once = 1024;
  Parts found;
  for (ptrdiff_t first = 0; first < count; first += at_once) {
    const T* x = values + first;
    const ptrdiff_t n = std::min(at_once, count - first);
    if (ptrdiff_t(kept.size()) < found.between + n) kept.resize(size_t(2 * found.between + n));  // never if they come from it
    T* between = kept.data();
    ptrdiff_t below = 0, at_low = 0, at_high = 0;
    for (ptrdiff_t i = 0; i < n; ++i) below += x[i] < low, at_low += x[i] == low, at_high += x[i] == high;
    found.below += below, found.at_low += at_low, found.at_high += at_high;
    for (ptrdiff_t i = 0; i < n; i += word<T>) {
      const auto inside = [&](auto v) HILBIN_INLINE_LAMBDA { return (v > low) & (v < high); };
      auto hits = bits_of<T>(std::min(n - i, word<T>), [&](ptrdiff_t k) HILBIN_INLINE_LAMBDA { return inside(load(x + i + k)); },
                             [&](ptrdiff_t k) HILBIN_INLINE_LAMBDA { return inside(x[i + k]); });
      for (; hits; hits &= hits - 1) between[found.between++] = x[i + __builtin_ctzll(hits)];
    }
  }
  return found;
}

// The nth smallest value, counted from 0: a pass leaves those between two values beside it (Floyd and Rivest), until they are
// few, or the bracket is not around it, which is rare: then all are looked at again.
template <class T> T nth_smallest(const T* values, ptrdiff_t count, ptrdiff_t nth, std::vector<T>& kept) {
  constexpr ptrdiff_t few = 512, many = ptrdiff_t(1) << 32;
  const T* from = values;
  ptrdiff_t left = count, rank = nth;
  while (left > few && left < many) {
    const auto [low, high] = bracket(from, left, rank);
    const Parts found = part(from, left, low, high, kept);
    const ptrdiff_t rest = rank - found.below - found.at_low;
    if (rank >= found.below && rest < 0) return low;
    if (low < high && rest >= found.between && rest < found.between + found.at_high) return high;
    const bool missed = rest < 0 || rest >= found.between, same = found.between == left;
    if (missed) from = values, left = count, rank = nth;
    else from = kept.data(), left = found.between, rank = rest;
    if (missed || same) break;
  }
  if (from == values) {
    if (ptrdiff_t(kept.size()) < count) kept.resize(size_t(count));
    std::copy(values, values + count, kept.begin());
  }
  std::nth_element(kept.begin(), kept.begin() + rank, kept.begin() + left);
  return kept[size_t(rank)];
}

// Which of so many values, the smallest first, is the smallest that at least the share q of them do not exceed.
inline ptrdiff_t nth_of(double q, ptrdiff_t count) {
  return std::clamp<ptrdiff_t>(ptrdiff_t(std::ceil(q * double(count))) - 1, 0, count - 1);
}

// The smallest of the values above `low` that at least the share q of them (of their weights) do not exceed,
// or `low` if there are none.
template <class T> T column_quantile(const T* values, ptrdiff_t count, T low, double q, std::vector<T>& scratch) {
  const ptrdiff_t skipped = low == -std::numeric_limits<T>::infinity() ? 0 : count_up_to(values, count, low), left = count - skipped;
  if (left == 0) return low;
  return nth_smallest(values, count, skipped + nth_of(q, left), scratch);
}
template <class T>
T column_quantile(const T* values, const double* weights, ptrdiff_t count, T low, double q, std::vector<std::pair<T, double>>& above) {
  above.clear();
  double total = 0, sum = 0;
  for (ptrdiff_t i = 0; i < count; ++i)
    if (values[i] > low) {
      above.emplace_back(values[i], weights[i]);
      total += weights[i];
    }
  std::sort(above.begin(), above.end());
  for (const auto& [value, weight] : above)
    if ((sum += weight) >= q * total) return value;
  return above.empty() ? low : above.back().first;
}

// A number as large as `big` has no fraction, and the sum of a smaller one and `big` loses its own.
template <class T> bool all_whole(const T* values, ptrdiff_t count) {
  constexpr ptrdiff_t at_once = 4096;
  constexpr T big = T(int64_t(1) << Simd<T>::mantissa_bits);
  for (ptrdiff_t first = 0; first < count; first += at_once) {
    const ptrdiff_t last = std::min(count, first + at_once);
    IntVec<T> whole = ~IntVec<T>{};
    ptrdiff_t i = first;
    for (; i + lanes<T> <= last; i += lanes<T>) {
      const Vec<T> size = magnitude(load(values + i));
      whole &= ((size + big) - big == size) | (size >= big);
    }
    bool all = true;
    for (int lane = 0; lane < lanes<T>; ++lane) all &= whole[lane] != 0;
    for (; i < last; ++i) all &= values[i] == std::floor(values[i]);
    if (!all) return false;
  }
  return true;
}

// The sum of the bits of every value times a number of its column, modulo 2^64.
template <class Row> uint64_t row_key(Row row, const uint64_t* factors) {
  uint64_t sum = 0;
  for (ptrdiff_t k = 0; k < row.size; ++k) {
    const double value = row.codes[k];
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    sum += (bits ^ (bits >> 32)) * factors[row.feature(k)];  // the bits of whole numbers are all at the upper end
  }
  return sum;
}

}  // namespace hilbin
