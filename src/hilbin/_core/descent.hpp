// Dual coordinate descent for the box-constrained duals of support vector machines:
//
//   min over c  of  1/2 c'Kc + 1/2 sum_i D_i c_i^2 - t'c + eps sum_i |c_i|,   low_i <= c_i <= high_i.
//
// K is known by a state that scores row i, f_i = sum_j K_ij c_j, and takes a change of c_i. Shrinking and the bounds
// it goes by are those of LIBLINEAR (Hsieh et al., ICML 2008). LIBLINEAR's variables of a classifier are the |c_i|, so
// rows whose c_i cannot be positive come with their sign turned: their t_i, bounds and c_i, and so their gradients.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "simd.hpp"

namespace hilbin {

// One row of the problem: a cache line, because the order of visits is random.
struct Sample {
  double sign, linear, low, high, diagonal, curvature, coef, unused;  // all numbers after `sign` are turned by it

  // What the row adds to the duality gap, given the gradient without eps.
  double gap(double gradient, double epsilon) const {
    const double slope = diagonal * coef - gradient;
    const double beyond = std::copysign(std::max(std::fabs(slope) - epsilon, 0.0), slope);
    const double free = beyond == 0 ? 0 : beyond / diagonal, best = std::min(std::max(free, low), high);
    return best * beyond - 0.5 * (diagonal * best) * best - (slope - 0.5 * diagonal * coef) * coef + epsilon * std::fabs(coef);
  }
};
static_assert(sizeof(Sample) == 64);

// The sum of all coefficients, the duality gap of the rows of the last sweep as it came to them, and how much all
// sweeps have raised the dual value.
struct Totals {
  double offset, gap, gain;
};
static_assert(sizeof(Totals) == 24);

// A problem of `size` rows as Python has it, in arrays.
struct Columns {
  const double *linear, *low, *high, *diagonal;
  size_t size;

  // With k(x, x) of every row, the constant of the kernel, and coefficients to start from (or none).
  void pack(const double* norms, double constant, const double* start, Sample* to) const {
    for (size_t i = 0; i < size; ++i) {
      const bool turned = high[i] <= 0;
      const double sign = turned ? -1 : 1, coef = std::min(std::max(start ? start[i] : 0.0, low[i]), high[i]);
      to[i] = {sign, sign * linear[i], turned ? -high[i] : low[i], turned ? -low[i] : high[i], diagonal[i],
               norms[i] + constant + diagonal[i], sign * coef, 0};
    }
  }

  // max over c in [low, high] of (linear - score) c - diagonal c^2 / 2 - epsilon |c|
  void losses(const double* scores, double epsilon, double* out) const {
    for (size_t i = 0; i < size; ++i) {
      const double slope = linear[i] - scores[i], beyond = std::copysign(std::max(std::fabs(slope) - epsilon, 0.0), slope);
      const double free = beyond == 0 ? 0 : beyond / diagonal[i], best = std::min(std::max(free, low[i]), high[i]);
      out[i] = best * beyond - 0.5 * (diagonal[i] * best) * best;
    }
  }
};

struct Random {  // xorshift64*
  uint64_t state;
  uint64_t below(uint64_t n) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const uint64_t bits = (state * 2685821657736338717ull) >> 32;
    return (bits * n) >> 32;  // n < 2^32
  }
  void shuffle(int32_t* order, int64_t n) {
    for (int64_t i = 0; i < n; ++i) std::swap(order[i], order[i + int64_t(below(uint64_t(n - i)))]);
  }
};

struct Sweep {
  double highest = -std::numeric_limits<double>::infinity();
  double lowest = std::numeric_limits<double>::infinity();
  int64_t active = 0;
  int64_t missing = -1;  // a row that is needed and not there: the sweep ends before it
};

// The rows of a Gram matrix, and the scores of all rows.
template <class F> struct GramState {
  const F* gram;
  F* scores;
  ptrdiff_t rows;

  double score(ptrdiff_t row) const { return scores[row]; }
  void update(ptrdiff_t row, double change) const {
    const F *k = gram + row * rows, c = F(change);
    ptrdiff_t j = 0;
    for (; j + lanes<F> <= rows; j += lanes<F>) store(scores + j, load(scores + j) + splat(c) * load(k + j));
    for (; j < rows; ++j) scores[j] += c * k[j];
  }
  void prefetch(ptrdiff_t) const {}
};

// The same for a CSR matrix.
template <class F, class Index> struct SparseGramState {
  const F* values;
  const int32_t* columns;
  const Index* indptr;
  F* scores;

  double score(ptrdiff_t row) const { return scores[row]; }
  void update(ptrdiff_t row, double change) const {
    for (Index p = indptr[row]; p < indptr[row + 1]; ++p) scores[columns[p]] += F(change) * values[p];
  }
  void prefetch(ptrdiff_t) const {}
};

// Some rows of a Gram matrix; `slots` says where row i is, -1 that it is not there.
template <class F> struct CachedGramState {
  const F* cache;
  const int32_t* slots;
  int64_t *stamps, *clock;
  double* scores;
  ptrdiff_t rows;

  bool has(ptrdiff_t row) const { return slots[row] >= 0; }
  double score(ptrdiff_t row) const { return scores[row]; }
  void update(ptrdiff_t row, double change) const {
    const F* k = cache + slots[row] * rows;
    stamps[slots[row]] = ++*clock;
    ptrdiff_t j = 0;
    for (; j + lanes<double> <= rows; j += lanes<double>)
      store(scores + j, load(scores + j) + splat(change) * load_doubles(k + j));
    for (; j < rows; ++j) scores[j] += change * double(k[j]);
  }
  void prefetch(ptrdiff_t) const {}
};

// Other states have all rows.
template <class State> bool has(const State&, ptrdiff_t) { return true; }
template <class F> bool has(const CachedGramState<F>& state, ptrdiff_t row) { return state.has(row); }

// The best value of a coefficient, given the gradient without eps.
inline double best_coef(const Sample& s, double gradient, double epsilon) {
  double at;
  if (s.curvature > 0) {
    const double free = s.curvature * s.coef - gradient;  // the minimum, before eps, times the curvature
    at = free > epsilon ? (free - epsilon) / s.curvature : free < -epsilon ? (free + epsilon) / s.curvature : 0;
  } else {
    at = gradient < -epsilon ? s.high : gradient > epsilon ? s.low : 0;
  }
  return std::min(std::max(at, s.low), s.high);
}

constexpr int look_ahead = 3;

// One visit of every active row in random order. A row whose gradient says that it stays at its bound,
// by more than the largest violation of the last sweep (`above`, `below`), leaves the active set: it adds nothing to the
// gap. The kernel has a `constant` added.
template <class State>
Sweep sweep(const State& state, Sample* samples, int32_t* order, int64_t active, double above, double below,
            double epsilon, double constant, Totals& totals, Random& random) {
  Sweep done;
  totals.gap = 0;
  random.shuffle(order, active);
  for (int64_t at = 0; at < active; ++at) {
    if (at + look_ahead < active) {
      state.prefetch(order[at + look_ahead]);
      __builtin_prefetch(samples + order[at + look_ahead]);
    }
    const int32_t i = order[at];
    Sample& s = samples[i];
    const double gradient = s.sign * (state.score(i) + constant * totals.offset) - s.linear + s.diagonal * s.coef;
    const double up = gradient + (s.coef >= 0 ? epsilon : -epsilon), down = gradient + (s.coef > 0 ? epsilon : -epsilon);
    const bool at_low = s.coef <= s.low, at_high = s.coef >= s.high;
    if ((at_high || up > above) && (at_low || down < below)) {
      std::swap(order[at--], order[--active]);
      continue;
    }
    const double violation = !at_high && up < 0 ? up : !at_low && down > 0 ? down : 0;
    done.highest = std::max(done.highest, violation);
    done.lowest = std::min(done.lowest, violation);
    if (std::fabs(violation) <= 1e-12) continue;
    const double best = best_coef(s, gradient, epsilon), step = best - s.coef;
    if (step == 0) continue;
    if (!has(state, i)) {
      done.missing = i;
      break;
    }
    totals.gap += s.gap(gradient, epsilon);
    totals.gain -= (gradient + 0.5 * s.curvature * step) * step + epsilon * (std::fabs(best) - std::fabs(s.coef));
    s.coef = best;
    state.update(i, s.sign * step);
    totals.offset += s.sign * step;
  }
  done.active = active;
  return done;
}

// The dual of Crammer and Singer, one coefficient c_ik per class k, whose sum over k is 0 and which is at most `most_i` for
// the class of row i and 0 for the others. With g_k = f_k(x_i) + 1[k is not the class], the best c_ik is
// min(bound, (beta - g_k + A c_ik) / A) for the beta that makes their sum 0.
struct MultiSample {
  double most, curvature;
  int64_t label;
};

// `gradient` are the g_k; fills `best`. `sorted` is scratch.
inline void best_coefs(const MultiSample& s, const double* gradient, const double* coef, int classes, double* best,
                       double* sorted) {
  const double A = s.curvature;
  if (A <= 0) {  // no score depends on this row
    for (int k = 0; k < classes; ++k) best[k] = k == s.label ? s.most : -s.most / (classes - 1);
    return;
  }
  for (int k = 0; k < classes; ++k) {
    best[k] = gradient[k] - A * coef[k];
    sorted[k] = best[k] + (k == s.label ? A * s.most : 0);
  }
  std::sort(sorted, sorted + classes, [](double a, double b) { return a > b; });
  double beta = sorted[0] - A * s.most;
  int r = 1;
  for (; r < classes && beta < r * sorted[r]; ++r) beta += sorted[r];
  beta /= r;
  for (int k = 0; k < classes; ++k) best[k] = std::min(k == s.label ? s.most : 0.0, (beta - best[k]) / A);
}

// One visit of every active row; `above` is the largest violation of the last sweep. A row that has no
// coefficients, and whose class leads by more than that, leaves the active set.
template <class State>
Sweep sweep_classes(const State* states, int classes, const MultiSample* samples, double* coefs, int32_t* order,
                    int64_t active, double above, double constant, double* offsets, Random& random) {
  Sweep done;
  done.lowest = 0;
  std::vector<double> scratch(3 * size_t(classes));
  double *gradient = scratch.data(), *best = gradient + classes, *sorted = best + classes;
  random.shuffle(order, active);
  for (int64_t at = 0; at < active; ++at) {
    const int32_t i = order[at];
    const MultiSample& s = samples[i];
    double* coef = coefs + int64_t(i) * classes;
    double highest = -std::numeric_limits<double>::infinity(), other = highest, lowest = -highest;
    for (int k = 0; k < classes; ++k) {
      gradient[k] = states[k].score(i) + constant * offsets[k] + (k != s.label);
      highest = std::max(highest, gradient[k]);
      if (k != s.label) other = std::max(other, gradient[k]);
      const double room = (k == s.label ? s.most : 0) - coef[k];
      if (room > 1e-12 * s.most) lowest = std::min(lowest, gradient[k]);  // rounding is no room
    }
    const double violation = highest - lowest;
    if (coef[s.label] == 0 && gradient[s.label] - other > above) {
      std::swap(order[at--], order[--active]);
      continue;
    }
    done.highest = std::max(done.highest, violation);
    if (violation <= 1e-12) continue;
    best_coefs(s, gradient, coef, classes, best, sorted);
    for (int k = 0; k < classes; ++k) {
      const double change = best[k] - coef[k];
      if (std::fabs(change) <= 1e-14 * s.most) continue;
      coef[k] = best[k];
      states[k].update(i, change);
      offsets[k] += change;
    }
  }
  done.active = active;
  return done;
}

}  // namespace hilbin
