// The ends of the range of dense columns: a quantile from below, and the quantile of what is above it.
//
// A pass over the rows keeps the values of every column that can be among the smallest and the largest that matter, one in
// ten, and counts those equal to the limits. These are medians, or alike, of the extremes of small groups of rows, which
// are found for many columns at once. A column whose groups misled is looked at alone.
#pragma once
#include <memory>
#include <type_traits>

#include "columns.hpp"

namespace hilbin {

template <class T> class ColumnRanges {
 public:
  ColumnRanges(const T* x, ptrdiff_t rows, ptrdiff_t columns, double share, double q)
      : numbers(x), rows(rows), columns(columns), share(share), q(q), groups(rows < 16384 ? 32 : 64), rank(groups), room(rows) {
    const double part = std::clamp(std::max(share, 1 - q), 0.0, 1.0);
    // of three groups in four, no row is beyond the quantile
    each = ptrdiff_t(std::clamp(std::round(std::log(0.75) / std::log1p(-part)), 1.0, double(rows)));
    if (part == 1 || rows <= groups * each) return;  // all values are kept
    const double beyond = 1 - std::pow(1 - part, double(each));
    rank = std::min(groups, ptrdiff_t(std::ceil(beyond * double(groups) + 2.5 * std::sqrt(beyond * (1 - beyond) * double(groups)))));
    if (rank == groups) return;
    const double kept = 1 - std::pow(1 - double(rank) / double(groups), 1 / double(each));
    room = std::min(rows, ptrdiff_t(2 * kept * double(rows)) + 64);
  }

  // The ends of the columns [begin, end).
  void find(ptrdiff_t begin, ptrdiff_t end, T* low, T* high) {
    width = end - begin;
    for (Side* side : {&below, &above}) side->reset(width, room);
    bound(begin);
    pass(begin);
    for (ptrdiff_t j = 0; j < width; ++j)
      if (!choose(j, low[j], high[j])) alone(begin + j, low[j], high[j]);
  }

 private:
  using Bits = BitsOf<T>;

  struct Side {
    std::vector<T> limit;
    std::vector<IntOf<T>> equal;   // values at the limit
    std::vector<ptrdiff_t> count;  // values beyond it, of which the first `room` are kept
    std::unique_ptr<T[]> kept;
    ptrdiff_t held = 0;

    void reset(ptrdiff_t width, ptrdiff_t room) {
      limit.resize(size_t(width));
      equal.assign(size_t(width), 0);
      count.assign(size_t(width), 0);
      if (held < width * room) held = width * room, kept.reset(new T[size_t(held)]);  // not written, unlike a vector
    }
    HILBIN_INLINE void keep(Bits hits, const T* x, ptrdiff_t first, ptrdiff_t room) {
      for (; hits; hits &= hits - 1) {
        const ptrdiff_t j = first + __builtin_ctzll(hits);
        const ptrdiff_t at = count[size_t(j)]++;
        if (at < room) kept[size_t(j * room + at)] = x[j];
      }
    }
  };

  const T* numbers;
  ptrdiff_t rows, columns;
  double share, q;
  ptrdiff_t groups, each, rank, room, width = 0;  // of the sample, rows in each, among groups; for values that are kept
  Side below, above;
  std::vector<T> least, greatest, scratch;

  void bound(ptrdiff_t begin) {
    constexpr T none = std::numeric_limits<T>::infinity();
    std::fill(below.limit.begin(), below.limit.end(), none);
    std::fill(above.limit.begin(), above.limit.end(), -none);
    if (rank == groups) return;
    least.assign(size_t(groups * width), none);
    greatest.assign(size_t(groups * width), -none);
    uint64_t at = 0;
    for (ptrdiff_t k = 0; k < groups; ++k)
      for (ptrdiff_t r = 0; r < each; ++r) {
        const ptrdiff_t i = ptrdiff_t(((at += 0x9E3779B97F4A7C15ull) >> 32) * uint64_t(rows) >> 32);
        dense_extremes(numbers + i * columns + begin, 1, width, least.data() + k * width, greatest.data() + k * width);
      }
    sort_rows(least.data());
    sort_rows(greatest.data());
    std::copy_n(least.data() + rank * width, width, below.limit.data());
    std::copy_n(greatest.data() + (groups - 1 - rank) * width, width, above.limit.data());
  }

  // Sorts every column of `groups` rows, a power of 2: Batcher's network of pairs of rows.
  void sort_rows(T* x) const {
    for (ptrdiff_t p = 1; p < groups; p *= 2)
      for (ptrdiff_t k = p; k >= 1; k /= 2)
        for (ptrdiff_t j = k % p; j + k < groups; j += 2 * k)
          for (ptrdiff_t i = j; i < std::min(j + k, groups - k); ++i)
            if (i / (2 * p) == (i + k) / (2 * p)) order(x + i * width, x + (i + k) * width);
  }
  void order(T* __restrict lower, T* __restrict upper) const {
    for (ptrdiff_t c = 0; c < width; ++c) {
      const T a = lower[c], b = upper[c];
      lower[c] = std::min(a, b), upper[c] = std::max(a, b);
    }
  }

  void pass(ptrdiff_t begin) {
    const T* x = numbers + begin;
    for (ptrdiff_t i = 0; i < rows; ++i, x += columns)
      for (ptrdiff_t first = 0; first < width; first += word<T>) part(x, first, std::min(width, first + word<T>));
  }

  // Columns [first, last) of one row, as many as a number has bits.
  HILBIN_INLINE void part(const T* x, ptrdiff_t first, ptrdiff_t last) {
    const ptrdiff_t count = last - first;
    const T *at = x + first, *low = below.limit.data() + first, *high = above.limit.data() + first;
    const Bits fewer = bits_of<T>(count, [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA { return load(at + j) < load(low + j); },
                                  [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA { return at[j] < low[j]; });
    const Bits greater = bits_of<T>(count, [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA { return load(at + j) > load(high + j); },
                                    [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA { return at[j] > high[j]; });
    IntOf<T> *at_low = below.equal.data() + first, *at_high = above.equal.data() + first;
    for (ptrdiff_t j = 0; j < count; ++j) at_low[j] += at[j] == low[j], at_high[j] += at[j] == high[j];
    below.keep(fewer, x, first, room);
    above.keep(greater, x, first, room);
  }

  // Whether what was kept says both ends of a column.
  bool choose(ptrdiff_t j, T& low, T& high) {
    const ptrdiff_t nth = nth_of(share, rows);
    if (!nth_kept(below, j, nth, std::less<T>(), low)) return false;
    const ptrdiff_t fewer = below.count[size_t(j)];
    const T* x = below.kept.get() + j * room;
    const ptrdiff_t left = rows - (nth < fewer ? count_up_to(x, fewer, low) : fewer + below.equal[size_t(j)]);
    if (left > 0) return nth_kept(above, j, left - 1 - nth_of(q, left), std::greater<T>(), high);
    high = low;
    return true;
  }
  template <class Order> bool nth_kept(const Side& side, ptrdiff_t j, ptrdiff_t nth, Order order, T& out) {
    const ptrdiff_t count = side.count[size_t(j)];
    if (nth >= count) {
      out = side.limit[size_t(j)];
      return nth < count + side.equal[size_t(j)];
    }
    T* const x = side.kept.get() + j * room;
    if (count > room) return false;
    std::nth_element(x, x + nth, x + count, order);
    out = x[nth];
    return true;
  }

  void alone(ptrdiff_t column, T& low, T& high) {
    std::vector<T> values(static_cast<size_t>(rows));
    for (ptrdiff_t i = 0; i < rows; ++i) values[size_t(i)] = numbers[i * columns + column];
    low = column_quantile(values.data(), rows, -std::numeric_limits<T>::infinity(), share, scratch);
    high = column_quantile(values.data(), rows, low, q, scratch);
  }
};

}  // namespace hilbin
