// Steps of sequential minimal optimization on the dual of a kernel machine, in signed coefficients:
//
//   min over c  of  1/2 c'Kc - t'c + eps |c|_1,   low_i <= c_i <= high_i,   sum of c given.
//
// A step moves weight from row j to row i, which keeps the sum: i is the row that gains most per unit, j the one that
// with i lowers the objective most, by the second order (Fan, Chen and Lin, JMLR 2005). What a row gains by a change
// up is -(g_i + unit up_i), by a change down g_i + unit down_i, g = Kc - t: `unit up` and `unit down` are +-eps, or
// infinite where the row is at its bound. A coefficient stops at zero if eps is not 0, where the slope changes.
//
// A step reads the gradient and two rows of the matrix twice, mostly from the second cache, and its bandwidth is the
// limit: `up` and `down` are single precision, a diagonal of equal numbers is not read, and maxima are taken without
// their places, which are looked for in the best block alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "simd.hpp"

namespace hilbin {

constexpr double infinite = std::numeric_limits<double>::infinity();
// The curvature of a pair is at least this share of its diagonal entries, which rounding makes of nothing; and above 0.
constexpr double least_share = 5e-13, least_curvature = 1e-300;

struct Machine {
  ptrdiff_t rows;
  double *coef, *gradient;
  float *up, *down;
  const double *low, *high, *diagonal;
  double epsilon;
  double unit = epsilon > 0 ? epsilon : 1;

  void refresh(ptrdiff_t i) const {
    constexpr float never = std::numeric_limits<float>::infinity();
    const float sign = epsilon > 0 ? 1 : 0;
    const double c = coef[i];
    up[i] = c >= high[i] ? never : c >= 0 ? sign : -sign;
    down[i] = c <= low[i] ? -never : c > 0 ? sign : -sign;
  }
  double slope_up(ptrdiff_t i) const { return gradient[i] + unit * double(up[i]); }
  double slope_down(ptrdiff_t i) const { return gradient[i] + unit * double(down[i]); }
  Vec<double> slopes_up(ptrdiff_t i) const { return load(gradient + i) + splat(unit) * load_doubles(up + i); }
  Vec<double> slopes_down(ptrdiff_t i) const { return load(gradient + i) + splat(unit) * load_doubles(down + i); }
  bool has_equal_diagonal() const {
    return std::all_of(diagonal, diagonal + rows, [&](double k) { return k == diagonal[0]; });
  }
};

// A row and what it gains.
struct Choice {
  ptrdiff_t row = -1;
  double gain = -infinite;
};

// The largest of values met in vectors, and where: every lane keeps its own.
struct Largest {
  Vec<double> value = splat(-infinite), at = splat(-1.0);
  void meet(Vec<double> candidate, Vec<double> place) {
    const auto more = candidate > value;
    value = more ? candidate : value;
    at = more ? place : at;
  }
  Choice best() const {
    Choice found;
    for (int l = 0; l < lanes<double>; ++l)
      if (value[l] > found.gain) found = {ptrdiff_t(at[l]), value[l]};
    return found;
  }
};

inline Vec<double> places_from(ptrdiff_t begin) {
  Vec<double> places;
  for (int l = 0; l < lanes<double>; ++l) places[l] = double(begin + l);
  return places;
}

// Calls block(j) for whole vectors and one(j) for the rest.
template <class Block, class One> HILBIN_INLINE void each_vector(ptrdiff_t j, ptrdiff_t end, Block block, One one) {
  for (; j + lanes<double> <= end; j += lanes<double>) block(j);
  for (; j < end; ++j) one(j);
}

struct Pair {
  Choice gains_up, gains_down;
};

// The rows of a range that gain most by a change up and by a change down.
inline Pair extremes(const Machine& m, ptrdiff_t begin, ptrdiff_t end) {
  Largest up, down;
  Pair rest;
  Vec<double> places = places_from(begin);
  each_vector(
      begin, end,
      [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
        up.meet(-m.slopes_up(j), places);
        down.meet(m.slopes_down(j), places);
        places += splat(double(lanes<double>));
      },
      [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
        const double up_gain = -m.slope_up(j), down_gain = m.slope_down(j);
        if (up_gain > rest.gains_up.gain) rest.gains_up = {j, up_gain};
        if (down_gain > rest.gains_down.gain) rest.gains_down = {j, down_gain};
      });
  Pair best{up.best(), down.best()};
  if (rest.gains_up.gain > best.gains_up.gain) best.gains_up = rest.gains_up;
  if (rest.gains_down.gain > best.gains_down.gain) best.gains_down = rest.gains_down;
  return best;
}

constexpr ptrdiff_t block_rows = 128;  // among which a maximum is looked for
constexpr ptrdiff_t page = 4096;
// Asks for a block of a row some blocks ahead: the processor does it on its own only within a page.
template <class T> HILBIN_INLINE void prefetch_block(const T* row, ptrdiff_t begin) {
  constexpr ptrdiff_t ahead = page / ptrdiff_t(sizeof(T)), line = 64 / ptrdiff_t(sizeof(T));
  for (ptrdiff_t j = 0; j < block_rows; j += line) __builtin_prefetch(row + begin + ahead + j);
}

// g += change * (first row - second row), and the row that then gains most by a change up.
template <class T> Choice add_two(const Machine& m, const T* first, const T* second, double change) {
  Largest blocks;
  for (ptrdiff_t begin = 0; begin < m.rows; begin += block_rows) {
    Vec<double> slopes = splat(infinite);
    prefetch_block(second, begin);
    each_vector(
        begin, std::min(begin + block_rows, m.rows),
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
          const Vec<double> g = load(m.gradient + j) + splat(change) * (load_doubles(first + j) - load_doubles(second + j));
          store(m.gradient + j, g);
          slopes = smaller(g + splat(m.unit) * load_doubles(m.up + j), slopes);  // NaN is passed over
        },
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
          m.gradient[j] += change * (double(first[j]) - double(second[j]));
          slopes = smaller(splat(m.slope_up(j)), slopes);
        });
    blocks.meet(-slopes, splat(double(begin)));
  }
  const Choice best = blocks.best();
  return best.row < 0 ? best : extremes(m, best.row, std::min(best.row + block_rows, m.rows)).gains_up;
}

inline double curvature(const Machine& m, ptrdiff_t i, ptrdiff_t j, double k) {
  const double both = m.diagonal[i] + m.diagonal[j];
  return std::max({both - 2 * k, least_share * both, least_curvature});
}

// The partner in a range of row i that lowers the objective most, by b^2 / a for the slope b and the curvature a.
template <class T> Choice best_partner(const Machine& m, Choice i, const T* row, ptrdiff_t begin, ptrdiff_t end) {
  const Vec<double> own = splat(m.diagonal[i.row]), least = splat(least_curvature);
  Choice best{-1, 0};
  Largest largest;
  Vec<double> places = places_from(begin);
  each_vector(
      begin, end,
      [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
        const Vec<double> b = larger(m.slopes_down(j) + splat(i.gain), Vec<double>{});
        const Vec<double> both = own + load(m.diagonal + j);
        const Vec<double> a = larger(larger(both - 2.0 * load_doubles(row + j), least_share * both), least);
        largest.meet(b * b / a, places);
        places += splat(double(lanes<double>));
      },
      [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
        const double b = std::max(0.0, i.gain + m.slope_down(j)), score = b * b / curvature(m, i.row, j, row[j]);
        if (score > best.gain) best = {j, score};
      });
  const Choice found = largest.best();
  return found.gain > best.gain ? found : best;
}

// A number that grows with x / y up to a twentieth: the difference of two logarithms, which are nearly the bits of a number.
// x is 0 or about 2^800, and y is not 0 and below 2^700: the difference is then a number above 0, or below it for an x of 0.
inline Vec<double> rough_ratio(Vec<double> x, Vec<double> y) {
  return (Vec<double>)((IntVec<double>)x - (IntVec<double>)y);
}

// The partner of row i; `most_down` is the largest gain of any change down, and comes with its value before. Blocks are
// compared roughly, with slopes in units of the violation before.
template <bool equal_diagonal, class T> Choice choose_partner(const Machine& m, Choice i, const T* row, double& most_down) {
  const double own = m.diagonal[i.row], size = 0x1p400 / std::max(i.gain + most_down, 1e-150);
  const Vec<double> size_ = splat(size), gain = splat(size * i.gain), floor = splat(std::max(2 * least_share * own, least_curvature));
  Vec<double> most = splat(-infinite);
  Largest blocks;
  auto meet = [&](Vec<double> slope, Vec<double> k, Vec<double> other, Vec<double>& scores) HILBIN_INLINE_LAMBDA {
    most = larger(slope, most);
    const Vec<double> b = larger(slope * size_ + gain, Vec<double>{});
    const Vec<double> a = larger(splat(own) + other - 2.0 * k, floor);
    scores = larger(rough_ratio(b * b, a), scores);
  };
  for (ptrdiff_t begin = 0; begin < m.rows; begin += block_rows) {
    Vec<double> scores{};
    prefetch_block(row, begin);
    each_vector(
        begin, std::min(begin + block_rows, m.rows),
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
          meet(m.slopes_down(j), load_doubles(row + j), equal_diagonal ? splat(own) : load(m.diagonal + j), scores);
        },
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA { meet(splat(m.slope_down(j)), splat(double(row[j])), splat(m.diagonal[j]), scores); });
    blocks.meet(scores, splat(double(begin)));
  }
  most_down = most[0];
  for (int l = 1; l < lanes<double>; ++l) most_down = std::max(most_down, most[l]);
  const Choice best = blocks.best();
  return best.row < 0 || !(best.gain > 0) ? Choice{} : best_partner(m, i, row, best.row, std::min(best.row + block_rows, m.rows));
}

// Moves weight from row j to row i, as far as helps; returns how much.
inline double move(const Machine& m, ptrdiff_t i, ptrdiff_t j, double k) {
  const double slope = m.slope_down(j) - m.slope_up(i);
  const bool i_stops = m.epsilon > 0 && m.coef[i] < 0, j_stops = m.epsilon > 0 && m.coef[j] > 0;
  const double i_end = i_stops ? 0 : m.high[i], j_end = j_stops ? 0 : m.low[j];
  const double i_room = i_end - m.coef[i], j_room = m.coef[j] - j_end;
  const double step = std::min({slope / curvature(m, i, j, k), i_room, j_room});
  m.coef[i] = step == i_room ? i_end : m.coef[i] + step;
  m.coef[j] = step == j_room ? j_end : m.coef[j] - step;
  m.refresh(i);
  m.refresh(j);
  return step;
}

// All rows of a dense matrix.
template <class T> struct WholeRows {
  const T* values;
  ptrdiff_t width;

  bool has(ptrdiff_t) const { return true; }
  const T* row(ptrdiff_t i) const { return values + i * width; }
};

// Some rows of a dense matrix: `slots` says where row i is, -1 that it is not there.
template <class T> struct CachedRows {
  const T* values;
  ptrdiff_t width;
  const int32_t* slots;
  int64_t *stamps, *clock;

  bool has(ptrdiff_t i) const { return slots[i] >= 0; }
  const T* row(ptrdiff_t i) const {
    stamps[slots[i]] = ++*clock;
    return values + slots[i] * width;
  }
};

// Copies the entries `which` of a row side by side.
template <class T> void copy_entries(const T* from, const int32_t* which, ptrdiff_t count, T* to) {
  for (ptrdiff_t j = 0; j < count; ++j) {
    __builtin_prefetch(from + which[j] + page / ptrdiff_t(sizeof(T)));
    to[j] = from[which[j]];
  }
}

// Some rows and columns of a dense matrix: a row is copied to its place when it is first used.
template <class T> struct PartRows {
  const T* values;
  ptrdiff_t width;
  const int32_t* which;
  ptrdiff_t rows;
  T* copies;
  uint8_t* copied;

  bool has(ptrdiff_t) const { return true; }
  const T* row(ptrdiff_t i) const {
    if (!copied[i]) copy_entries(values + which[i] * width, which, rows, copies + i * rows), copied[i] = 1;
    return copies + i * rows;
  }
};

// out += sum of coefficients times rows, four rows in one pass; rows of coefficient 0 are not read.
template <class T> void add_rows(const T* rows, ptrdiff_t n, ptrdiff_t width, const double* coefficients, double* out) {
  constexpr int most = 4;
  ptrdiff_t which[most] = {};
  for (ptrdiff_t i = 0; i < n;) {
    int k = 0;
    for (; i < n && k < most; ++i)
      if (coefficients[i] != 0) which[k++] = i;
    double c[most] = {};
    const T* row[most];
    for (int r = 0; r < most; ++r) {
      row[r] = rows + which[r < k ? r : 0] * width;
      if (r < k) c[r] = coefficients[which[r]];
    }
    if (k == 0) break;
    each_vector(
        0, width,
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
          Vec<double> sum = load(out + j);
          for (int r = 0; r < most; ++r) sum += splat(c[r]) * load_doubles(row[r] + j);
          store(out + j, sum);
        },
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA {
          for (int r = 0; r < most; ++r) out[j] += c[r] * double(row[r][j]);
        });
  }
}

// As PartRows, with copies one after the other, in the order of first use: the few of the next problem are then written where
// the cache has those of this one. `slots` says where row i is, -1 that it is not there.
template <class T> struct QueuedRows {
  const T* values;
  ptrdiff_t width;
  const int32_t* which;
  ptrdiff_t rows;
  T* copies;
  int32_t *slots, *count;

  bool has(ptrdiff_t) const { return true; }
  const T* row(ptrdiff_t i) const {
    if (slots[i] < 0) {
      slots[i] = (*count)++;
      copy_entries(values + which[i] * width, which, rows, copies + slots[i] * rows);
    }
    return copies + slots[i] * rows;
  }
  // out += the products of all rows and the coefficients.
  void add(const double* coefficients, double* out) const {
    for (ptrdiff_t i = 0; i < rows; ++i)
      if (coefficients[i] != 0) row(i);
    std::vector<double> by_slot(static_cast<size_t>(*count));
    for (ptrdiff_t i = 0; i < rows; ++i)
      if (slots[i] >= 0) by_slot[size_t(slots[i])] = coefficients[i];
    add_rows(copies, *count, rows, by_slot.data(), out);
  }
};

// The first entry of a row beyond what two rows of these norms can have, or -1.
template <class T> ptrdiff_t first_beyond(const T* row, ptrdiff_t n, double norm, const double* norms, double tolerance) {
  for (ptrdiff_t begin = 0; begin < n; begin += block_rows) {
    const ptrdiff_t end = std::min(begin + block_rows, n);
    Vec<double> excess{};
    double rest = 0;
    each_vector(
        begin, end,
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA { excess = larger(magnitude(load_doubles(row + j)) - splat(norm) * load(norms + j), excess); },
        [&](ptrdiff_t j) HILBIN_INLINE_LAMBDA { rest = std::max(rest, std::fabs(double(row[j])) - norm * norms[j]); });
    for (int l = 0; l < lanes<double>; ++l) rest = std::max(rest, excess[l]);
    for (ptrdiff_t j = begin; rest > tolerance && j < end; ++j)
      if (std::fabs(double(row[j])) - norm * norms[j] > tolerance) return j;
  }
  return -1;
}

struct Steps {
  int64_t done = 0;
  double violation = infinite;
  ptrdiff_t missing = -1;  // a row that is needed and not there
};

template <bool equal_diagonal, class Rows> Steps descend_by_pairs(const Machine& m, const Rows& rows, int64_t most, double tol) {
  Steps steps;
  const Pair first = extremes(m, 0, m.rows);
  Choice i = first.gains_up;
  double most_down = first.gains_down.gain;
  for (;;) {
    if (i.row < 0) return steps.violation = 0, steps;
    if (!rows.has(i.row)) return steps.missing = i.row, steps;
    const auto* up = rows.row(i.row);
    const Choice j = choose_partner<equal_diagonal>(m, i, up, most_down);
    steps.violation = std::max(0.0, i.gain + most_down);
    if (steps.violation <= tol || j.row < 0 || steps.done == most) return steps;
    if (!rows.has(j.row)) return steps.missing = j.row, steps;
    const auto* down = rows.row(j.row);
    const double change = move(m, i.row, j.row, up[j.row]);
    i = add_two(m, up, down, change);
    ++steps.done;
  }
}

template <class Rows> Steps descend(const Machine& m, const Rows& rows, int64_t most, double tol) {
  return m.has_equal_diagonal() ? descend_by_pairs<true>(m, rows, most, tol) : descend_by_pairs<false>(m, rows, most, tol);
}

// Steps until the tolerance or the limit is reached, or what they change is rounding of the largest K_ii c_i.
template <class Rows> Steps descend_or_stall(const Machine& m, const Rows& rows, int64_t most, double tol) {
  constexpr int64_t round = 1000;
  Steps all;
  while (all.done < most) {
    const Steps some = descend(m, rows, std::min(round, most - all.done), tol);
    all.done += some.done;
    all.violation = some.violation;
    double norm = 0, largest = 0;
    for (ptrdiff_t i = 0; i < m.rows; ++i) norm = std::max(norm, m.diagonal[i]), largest = std::max(largest, std::fabs(m.coef[i]));
    const double rounding = std::numeric_limits<double>::epsilon() * norm * largest;
    if (some.violation <= tol || some.done == 0 || !(some.violation > rounding)) break;
  }
  return all;
}

// Many problems, each of some rows and columns of one dense matrix, one after the other. Block k has the rows
// which[offsets[k]] to which[offsets[k + 1] - 1], and its numbers stand there in all arrays; `limits` are its steps, 0 for a
// block that is left alone. Products are those of its matrix and coefficients; they are left out without a place for them.
template <class T> struct Blocks {
  const T* values;
  ptrdiff_t width;
  const int32_t* which;
  const int64_t *offsets, *limits;
  double *coef, *gradient, *products;
  const double *low, *high;
  double epsilon;

  void solve(ptrdiff_t begin, ptrdiff_t end, double tol, int64_t* steps, double* violations) const {
    std::vector<double> diagonals;
    std::vector<float> slopes;
    ptrdiff_t largest = 0;
    for (ptrdiff_t k = begin; k < end; ++k) largest = std::max<ptrdiff_t>(largest, offsets[k + 1] - offsets[k]);
    const std::unique_ptr<T[]> copies(new T[size_t(largest * largest)]);  // what is not written takes no memory
    std::vector<int32_t> slots;
    for (ptrdiff_t k = begin; k < end; ++k) {
      if (limits[k] == 0) continue;
      const ptrdiff_t first = offsets[k], n = offsets[k + 1] - first;
      diagonals.resize(n), slopes.resize(2 * n);
      double* diagonal = diagonals.data();
      const Machine m{n, coef + first, gradient + first, slopes.data(), slopes.data() + n, low + first, high + first, diagonal, epsilon};
      const int32_t* own = which + first;
      for (ptrdiff_t i = 0; i < n; ++i) diagonal[i] = values[own[i] * width + own[i]], m.refresh(i);
      double* out = products == nullptr ? nullptr : products + first;
      if (out != nullptr) std::fill(out, out + n, 0.0);
      bool whole = n == width;
      for (ptrdiff_t i = 0; whole && i < n; ++i) whole = own[i] == i;
      Steps done;
      if (whole) {
        done = descend_or_stall(m, WholeRows<T>{values, n}, limits[k], tol);
        if (out != nullptr) add_rows(values, n, n, m.coef, out);
      } else {
        slots.assign(n, -1);
        int32_t count = 0;
        const QueuedRows<T> rows{values, width, own, n, copies.get(), slots.data(), &count};
        done = descend_or_stall(m, rows, limits[k], tol);
        if (out != nullptr) rows.add(m.coef, out);
      }
      steps[k] = done.done, violations[k] = done.violation;
    }
  }
};

}  // namespace hilbin
