// Steps of sequential minimal optimization on a sparse Gram matrix.
#pragma once
#include <vector>

#include "smo.hpp"

namespace hilbin {

// Rows of a CSR matrix, columns in ascending order.
template <class T, class Index> struct SparseRows {
  const T* values;
  const int32_t* columns;
  const Index* indptr;

  // Columns of a row differ, so several may be read before the first is written.
  void add(double* to, ptrdiff_t i, double change) const {
    Index p = indptr[i];
    const Index end = indptr[i + 1];
    for (; p + 4 <= end; p += 4) {
      double sums[4];
      for (int k = 0; k < 4; ++k) sums[k] = to[columns[p + k]] + change * double(values[p + k]);
      for (int k = 0; k < 4; ++k) to[columns[p + k]] = sums[k];
    }
    for (; p < end; ++p) to[columns[p]] += change * double(values[p]);
  }
  // The first lines of a row that may be next: the processor fetches the rest on its own.
  void prefetch(ptrdiff_t i) const {
    const Index begin = indptr[i];
    for (int line = 0; line < 4; ++line) {
      __builtin_prefetch(reinterpret_cast<const char*>(values + begin) + 64 * line);
      __builtin_prefetch(reinterpret_cast<const char*>(columns + begin) + 64 * line);
    }
  }
  double at(ptrdiff_t i, ptrdiff_t j) const {
    const int32_t *end = columns + indptr[i + 1], *found = std::lower_bound(columns + indptr[i], end, int32_t(j));
    return found < end && *found == j ? double(values[found - columns]) : 0;
  }
};

template <class T> inline Vec<double> pick(const T* from, const int32_t* at) {
  Vec<double> picked;
  for (int l = 0; l < lanes<double>; ++l) picked[l] = from[at[l]];
  return picked;
}

// As choose_partner, among the rows that share an entry with row i; `best` is b^2 and `curve` a of the partner known
// so far. Returns the place of the entry, or -1. The diagonal is not read if it is constant.
template <bool constant_diagonal, class T, class Index>
Index choose_neighbor(const Machine& m, Choice i, const SparseRows<T, Index>& rows, double best, double curve) {
  Index p = rows.indptr[i.row], found = -1;
  const Index end = rows.indptr[i.row + 1];
  const Vec<double> own = splat(m.diagonal[i.row]), least = splat(least_curvature);
  Vec<double> slope2 = splat(best), curves = splat(curve), at = splat(-1.0);
  for (; p + lanes<double> <= end; p += lanes<double>) {
    const int32_t* columns = rows.columns + p;
    const Vec<double> b = larger(splat(i.gain) + (pick(m.gradient, columns) + splat(m.unit) * pick(m.down, columns)), Vec<double>{});
    const Vec<double> other = constant_diagonal ? own : pick(m.diagonal, columns);
    const Vec<double> both = own + other;
    const Vec<double> a = larger(larger(both - 2.0 * load_doubles(rows.values + p), least_share * both), least);
    const auto more = b * b * curves > slope2 * a;
    slope2 = more ? b * b : slope2;
    curves = more ? a : curves;
    at = more ? splat(double(p)) : at;
  }
  auto meet = [&](double b2, double a, Index place) {
    if (b2 * curve > best * a) best = b2, curve = a, found = place;
  };
  for (int l = 0; l < lanes<double>; ++l)
    if (at[l] >= 0) meet(slope2[l], curves[l], Index(at[l]) + l);
  for (; p < end; ++p) {
    const ptrdiff_t j = rows.columns[p];
    const double b = std::max(0.0, i.gain + m.slope_down(j));
    meet(b * b, curvature(m, i.row, j, double(rows.values[p])), p);
  }
  return found;
}

// Rows that gain much by a change: the best of every segment.
struct Candidates {
  static constexpr ptrdiff_t segments = 64;
  std::vector<ptrdiff_t> up, down;

  // Finds them anew; returns the largest violation of any pair of rows.
  double find(const Machine& m) {
    up.clear(), down.clear();
    double most_up = -infinite, most_down = -infinite;
    const ptrdiff_t size = (m.rows + segments - 1) / segments;
    for (ptrdiff_t begin = 0; begin < m.rows; begin += size) {
      const Pair pair = extremes(m, begin, std::min(begin + size, m.rows));
      if (pair.gains_up.row >= 0) up.push_back(pair.gains_up.row);
      if (pair.gains_down.row >= 0) down.push_back(pair.gains_down.row);
      most_up = std::max(most_up, pair.gains_up.gain), most_down = std::max(most_down, pair.gains_down.gain);
    }
    return std::max(0.0, most_up + most_down);
  }
  // `next` is the one that would be best to change up without the best.
  Pair best(const Machine& m, ptrdiff_t& next) const {
    Pair pair;
    for (ptrdiff_t k : up) {
      const double gain = -m.slope_up(k);
      if (gain > pair.gains_up.gain) next = pair.gains_up.row, pair.gains_up = {k, gain};
    }
    for (ptrdiff_t k : down)
      if (const double gain = m.slope_down(k); gain > pair.gains_down.gain) pair.gains_down = {k, gain};
    return pair;
  }
};

// A change reaches few rows, so looking at all of them would cost most of a step: row i is the best of a few
// candidates, found anew every so many steps, or once they are much worse than they were. Its partner is one of them
// or any row that shares an entry with it.
template <class T, class Index> Steps descend(const Machine& m, const SparseRows<T, Index>& rows, int64_t most, double tol) {
  constexpr int64_t between = 32;
  const bool constant = m.has_equal_diagonal();
  Steps steps;
  Candidates candidates;
  for (;;) {
    steps.violation = candidates.find(m);
    if (steps.violation <= tol || steps.done >= most) return steps;
    for (int64_t left = std::min(between, most - steps.done); left > 0; --left) {
      ptrdiff_t next = -1;
      const Pair pair = candidates.best(m, next);
      const Choice i = pair.gains_up;
      const double b = i.gain + pair.gains_down.gain;
      if (!(b > std::max(tol, 0.5 * steps.violation))) break;
      ptrdiff_t j = pair.gains_down.row;
      double k = rows.at(i.row, j);
      const double a = curvature(m, i.row, j, k);
      const Index place = constant ? choose_neighbor<true>(m, i, rows, b * b, a) : choose_neighbor<false>(m, i, rows, b * b, a);
      if (place >= 0) j = rows.columns[place], k = double(rows.values[place]);
      const double change = move(m, i.row, j, k);
      if (next >= 0) rows.prefetch(next);
      rows.add(m.gradient, i.row, change);
      rows.add(m.gradient, j, -change);
      ++steps.done;
    }
  }
}

}  // namespace hilbin
