// Parts of a template that may move: the best place of each around its anchor.
//
//   D[y, x] = max over |dy|, |dx| <= reach of S[y + dy, x + dx] - (d1 dx^2 + d2 dx + d3 dy^2 + d4 dy)
//
// The maximum over a square is one along rows and then one along columns, for any d. Places outside count as -infinity.
//
// Parts lie on nodes, at half the distance of cells: a template at (Y, X) has the part p with anchor (a, b) at the node
// (2Y + a, 2X + b). Most templates are no candidates by the score of their root alone; scores of parts are computed around
// the others only, in runs of places of a row.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "filters.hpp"

namespace hilbin {

constexpr float nowhere = -std::numeric_limits<float>::infinity();
constexpr ptrdiff_t places_of_run = 4;  // places of a row whose parts are computed together

// d1 t^2 + d2 t
inline float bend(float square, float linear, ptrdiff_t t) { return square * float(t * t) + linear * float(t); }

// The bounded maximum of all places of a grid, and where it is.
inline void deform(const float* scores, const Grid& grid, const float* d, ptrdiff_t reach, float* out, int8_t* down, int8_t* across) {
  std::vector<float> best(size_t(grid.size()));
  std::vector<int8_t> at(size_t(grid.size()));
  for (ptrdiff_t y = 0; y < grid.rows; ++y)
    for (ptrdiff_t x = 0; x < grid.columns; ++x) {
      const ptrdiff_t i = y * grid.columns + x;
      best[size_t(i)] = nowhere;
      for (ptrdiff_t t = std::max(-reach, -x); t <= std::min(reach, grid.columns - 1 - x); ++t) {
        const float value = scores[i + t] - bend(d[0], d[1], t);
        if (value > best[size_t(i)]) best[size_t(i)] = value, at[size_t(i)] = int8_t(t);
      }
    }
  for (ptrdiff_t y = 0; y < grid.rows; ++y)
    for (ptrdiff_t x = 0; x < grid.columns; ++x) {
      const ptrdiff_t i = y * grid.columns + x;
      out[i] = nowhere;
      for (ptrdiff_t t = std::max(-reach, -y); t <= std::min(reach, grid.rows - 1 - y); ++t) {
        const size_t other = size_t(i + t * grid.columns);
        const float value = best[other] - bend(d[2], d[3], t);
        if (value > out[i]) out[i] = value, down[i] = int8_t(t), across[i] = at[other];
      }
    }
}

// Which runs of places of a grid are wanted: those with a score of at least `least`, and those `margin` around them.
class Runs {
 public:
  Runs(const float* scores, const Grid& places, float least, ptrdiff_t margin)
      : count((places.columns + places_of_run - 1) / places_of_run), rows_(places.rows),
        wanted(size_t(places.rows * count), 0), near(size_t(places.rows * count), 0) {
    for (ptrdiff_t y = 0; y < places.rows; ++y)
      for (ptrdiff_t x = 0; x < places.columns; ++x)
        if (scores[y * places.columns + x] >= least) mark(y, x, places.columns, margin);
  }

  ptrdiff_t count;

  // Whether a run holds a candidate, or a place around one.
  bool holds(ptrdiff_t y, ptrdiff_t run) const { return wanted[size_t(y * count + run)]; }
  bool is_near(ptrdiff_t y, ptrdiff_t run) const { return near[size_t(y * count + run)]; }

 private:
  void mark(ptrdiff_t y, ptrdiff_t x, ptrdiff_t columns, ptrdiff_t margin) {
    wanted[size_t(y * count + x / places_of_run)] = 1;
    const ptrdiff_t first = std::max<ptrdiff_t>(x - margin, 0) / places_of_run, last = std::min(x + margin, columns - 1) / places_of_run;
    for (ptrdiff_t j = std::max<ptrdiff_t>(y - margin, 0); j <= std::min(y + margin, rows_ - 1); ++j)
      for (ptrdiff_t run = first; run <= last; ++run) near[size_t(j * count + run)] = 1;
  }

  ptrdiff_t rows_;
  std::vector<uint8_t> wanted, near;
};

// The scores of one part on nodes, shifted so that its anchor is at 0, with a border of `reach` and whole vectors; places
// outside the nodes have -infinity. Rows come in pairs, like the nodes of a row of cells.
class PartScores {
 public:
  PartScores(const Grid& places, ptrdiff_t reach)
      : reach_(reach), columns_(2 * (places.columns + places_of_run) + 2 * reach + lanes<float>), rows_(2 * places.rows + 2 * reach),
        scores_(size_t(rows_ * columns_), nowhere), best_(size_t(columns_)), moved_(size_t(columns_)) {}

  // At the nodes of the runs that are near candidates; those side by side are filtered together.
  void filter(const float* nodes, const Grid& grid, ptrdiff_t channels, const float* weights, const Grid& filter, const int32_t* anchor,
              const Grid& places, const Runs& runs) {
    const Grid fits = grid.places(filter);
    for (ptrdiff_t y = -reach_; y < 2 * places.rows + reach_; ++y) {
      const ptrdiff_t from = y + anchor[0];
      if (from < 0 || from >= fits.rows) continue;
      const ptrdiff_t row = std::min(std::max<ptrdiff_t>(y, 0) / 2, places.rows - 1);
      for (ptrdiff_t run = 0, next; run < runs.count; run = next) {
        for (next = run; next < runs.count && runs.is_near(row, next);) ++next;
        if (next == run && ++next) continue;
        const ptrdiff_t low = run == 0 ? -reach_ : 2 * run * places_of_run;
        const ptrdiff_t high = next == runs.count ? 2 * places.columns + reach_ : 2 * next * places_of_run;
        const ptrdiff_t begin = std::max(low, -ptrdiff_t(anchor[1])), end = std::min(high, fits.columns - anchor[1]);
        if (begin < end)
          filter_row<1>(nodes + from * channels * grid.columns + begin + anchor[1], grid.columns, channels, weights, filter,
                        at(y, begin), 0, end - begin);
      }
    }
  }

  // Adds the best around every place of the runs that hold candidates to `out`.
  void add(const float* d, const Grid& places, const Runs& runs, float* out) {
    constexpr int L = lanes<float>;
    for (ptrdiff_t y = 0; y < places.rows; ++y)
      for (ptrdiff_t run = 0; run < runs.count; ++run) {
        if (!runs.holds(y, run)) continue;
        const ptrdiff_t first = run * places_of_run, count = std::min(places_of_run, places.columns - first);
        for (ptrdiff_t x = 0; x < 2 * count + 2 * reach_; x += L) {
          Vec<float> best = splat(nowhere);
          for (ptrdiff_t t = -reach_; t <= reach_; ++t)
            best = larger(best, load(at(2 * y + t, 2 * first - reach_ + x)) - bend(d[2], d[3], t));
          store(best_.data() + x, best);
        }
        for (ptrdiff_t x = 0; x < 2 * count; x += L) {
          Vec<float> best = splat(nowhere);
          for (ptrdiff_t t = -reach_; t <= reach_; ++t) best = larger(best, load(best_.data() + x + reach_ + t) - bend(d[0], d[1], t));
          store(moved_.data() + x, best);
        }
        for (ptrdiff_t x = 0; x < count; ++x) out[y * places.columns + first + x] += moved_[size_t(2 * x)];
      }
  }

 private:
  float* at(ptrdiff_t y, ptrdiff_t x) { return scores_.data() + (y + reach_) * columns_ + x + reach_; }

  ptrdiff_t reach_, columns_, rows_;
  std::vector<float> scores_, best_, moved_;
};

struct Parts {
  ptrdiff_t count;
  Grid filter;
  const float* weights;      // (count, rows, channels, columns)
  const int32_t* anchors;    // (count, 2)
  const float* deformation;  // (count, 4)
  ptrdiff_t reach;
};

// Adds the scores of parts to those of roots at one level. Roots below `least` get -infinity.
inline void add_parts(const float* nodes, const Grid& grid, ptrdiff_t channels, const Parts& parts, const Grid& places, float least,
                      float* scores) {
  const Runs runs(scores, places, least, (parts.reach + 1) / 2);
  for (ptrdiff_t i = 0; i < places.size(); ++i) scores[i] = scores[i] >= least ? scores[i] : nowhere;
  const ptrdiff_t size = parts.filter.rows * channels * parts.filter.columns;
  for (ptrdiff_t p = 0; p < parts.count; ++p) {
    PartScores part(places, parts.reach);
    part.filter(nodes, grid, channels, parts.weights + p * size, parts.filter, parts.anchors + 2 * p, places, runs);
    part.add(parts.deformation + 4 * p, places, runs, scores);
  }
}

}  // namespace hilbin
