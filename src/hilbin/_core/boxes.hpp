// The box of the highest score in a grid of cells.
//
// Scores that are sums over cells: for every pair of rows, the best run of columns (Kadane), which takes
// O(rows^2 columns).
//
// Other scores: best-first branch and bound (Lampert, Blaschko and Hofmann, Efficient Subwindow Search, PAMI 2009). A
// set of boxes is four intervals of whole numbers, for top, bottom, left and right; the box is [top, bottom) x
// [left, right). Every box of the set holds the smallest one, if that is not empty, and lies in the largest one. The set
// of the highest bound is split in halves at its widest interval, until the set at the top of the heap is a single box;
// since its bound is its score, and no other bound is higher, it is the best. Bounds are in double precision.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hilbin {

constexpr int top = 0, bottom = 1, left = 2, right = 3;
constexpr ptrdiff_t most_cells_along_a_side = 32767;

struct CellBox {
  int32_t edge[4];

  int32_t height() const { return edge[bottom] - edge[top]; }
  int32_t width() const { return edge[right] - edge[left]; }
  bool empty() const { return height() <= 0 || width() <= 0; }
  double area() const { return empty() ? 0.0 : double(height()) * width(); }
};

struct BoxSet {
  double bound;
  int16_t low[4], high[4];

  CellBox largest() const { return {{low[top], high[bottom], low[left], high[right]}}; }
  CellBox smallest() const { return {{high[top], low[bottom], high[left], low[right]}}; }
  // The same part of every box, of those that cutting it into `side` times `side` parts makes: a corner moves with the
  // corners of the box, in the same direction.
  BoxSet part(int y, int x, int side) const {
    BoxSet cut = *this;
    const int place[4] = {y, y + 1, x, x + 1};
    for (int i = 0; i < 4; ++i) {
      const int first = i & ~1, last = i | 1;  // top and bottom, or left and right
      cut.low[i] = int16_t(low[first] + (low[last] - low[first]) * place[i] / side);
      cut.high[i] = int16_t(high[first] + (high[last] - high[first]) * place[i] / side);
    }
    return cut;
  }
  int extent() const {
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += high[i] - low[i];
    return sum;
  }
  // Of equal bounds the smaller set is first, as it is nearer to a single box.
  bool operator<(const BoxSet& other) const {
    return bound < other.bound || (bound == other.bound && extent() > other.extent());
  }
};

// The best run of columns for every pair of rows. Cells of -infinity are in no box; the score is then -infinity if no
// cell is left.
inline double best_run_of_columns(const double* scores, ptrdiff_t rows, ptrdiff_t columns, CellBox& box) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  double best = none;
  std::vector<double> sums(static_cast<size_t>(columns));
  for (ptrdiff_t first = 0; first < rows; ++first) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (ptrdiff_t last = first; last < rows; ++last) {
      const double* row = scores + last * columns;
      double run = none, highest = none;
      for (ptrdiff_t x = 0; x < columns; ++x) {
        sums[size_t(x)] += row[x];
        run = std::max(run, 0.0) + sums[size_t(x)];
        highest = std::max(highest, run);
      }
      if (highest <= best) continue;
      best = highest;
      run = none;  // once more, for the places
      ptrdiff_t begin = 0;
      for (ptrdiff_t x = 0; x < columns; ++x) {
        if (run <= 0) run = 0, begin = x;
        run += sums[size_t(x)];
        if (run == highest) {
          box = {{int32_t(first), int32_t(last + 1), int32_t(begin), int32_t(x + 1)}};
          break;
        }
      }
    }
  }
  return best;
}

// Sums over boxes, of the cells that have one sign.
struct Integral {
  ptrdiff_t columns;
  std::vector<double> sums;

  Integral(const double* cells, ptrdiff_t rows, ptrdiff_t cols, bool positive)
      : columns(cols + 1), sums(size_t((rows + 1) * (cols + 1)), 0.0) {
    for (ptrdiff_t y = 0; y < rows; ++y) {
      double run = 0;
      for (ptrdiff_t x = 0; x < cols; ++x) {
        const double value = cells[y * cols + x];
        run += positive ? std::max(value, 0.0) : std::min(value, 0.0);
        sums[size_t((y + 1) * columns + x + 1)] = sums[size_t(y * columns + x + 1)] + run;
      }
    }
  }
  double at(int32_t y, int32_t x) const { return sums[size_t(y * columns + x)]; }
  double operator()(const CellBox& b) const {
    if (b.empty()) return 0;
    return at(b.edge[bottom], b.edge[right]) - at(b.edge[top], b.edge[right]) - at(b.edge[bottom], b.edge[left]) +
           at(b.edge[top], b.edge[left]);
  }
};

// The sum of the scores of cells: the positive ones of the largest box and the negative ones of the smallest.
struct LinearScore {
  Integral positive, negative;

  LinearScore(const double* cells, ptrdiff_t rows, ptrdiff_t columns)
      : positive(cells, rows, columns, true), negative(cells, rows, columns, false) {}
  double operator()(const BoxSet& set) const { return positive(set.largest()) + negative(set.smallest()); }
};

// Counts of all words in a box, from sums over all boxes that begin in the first cell, words innermost.
struct WordCounts {
  const int32_t* integral;
  ptrdiff_t columns, words;  // columns of the integral, one more than of cells

  struct Corners {
    const int32_t *a, *b, *c, *d;
    int32_t operator[](ptrdiff_t j) const { return a[j] - b[j] - c[j] + d[j]; }
  };
  const int32_t* at(int32_t y, int32_t x) const { return integral + (y * columns + x) * words; }
  Corners operator()(const CellBox& box) const {
    if (box.empty()) return {integral, integral, integral, integral};
    return {at(box.edge[bottom], box.edge[right]), at(box.edge[top], box.edge[right]),
            at(box.edge[bottom], box.edge[left]), at(box.edge[top], box.edge[left])};
  }
};

// Sum counts over all boxes that begin in the first cell: out[y + 1, x + 1, j] for the cells [0, y] x [0, x]. `add` adds
// the counts of a cell to those of its row.
template <class Add> inline void integrate_counts(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t words, Add add, int32_t* out) {
  std::vector<int32_t> row(static_cast<size_t>(words));
  const ptrdiff_t band = (columns + 1) * words;
  std::fill(out, out + band, 0);
  for (ptrdiff_t y = 0; y < rows; ++y) {
    std::fill(row.begin(), row.end(), 0);
    const int32_t* above = out + y * band;
    int32_t* here = out + (y + 1) * band;
    std::fill(here, here + words, 0);
    for (ptrdiff_t x = 0; x < columns; ++x) {
      add(y * columns + x, row.data());
      for (ptrdiff_t j = 0, at = (x + 1) * words; j < words; ++j, ++at) here[at] = above[at] + row[size_t(j)];
    }
  }
}

// A function of the count of every word, the sum of one that rises and one that falls: their tables. In a spatial pyramid
// there are as many for each of the parts of a box: level 0 is the box, level l has 2^l times 2^l parts.
struct Tables {
  const double *rising, *falling;
  ptrdiff_t length;
  int levels;

  // Sum score(part, at) over the parts of a set of boxes, whose tables begin `at` numbers behind the first ones.
  template <class Score> double over_parts(const BoxSet& set, ptrdiff_t words, Score score) const {
    double sum = score(set, 0);
    ptrdiff_t at = words * length;
    for (int side = 2; side < 1 << levels; side *= 2)
      for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x, at += words * length) sum += score(set.part(y, x, side), at);
    return sum;
  }
};

// The sum of functions of counts, which are at most those of the largest box and at least those of the smallest.
struct CountScore {
  WordCounts counts;
  Tables tables;

  double operator()(const BoxSet& set) const {
    return tables.over_parts(set, counts.words, [this](const BoxSet& part, ptrdiff_t at) { return of_part(part, at); });
  }
  // Not inlined: the loop over words is a third slower within another one.
  __attribute__((noinline)) double of_part(const BoxSet& part, ptrdiff_t at) const {
    const WordCounts::Corners most = counts(part.largest()), least = counts(part.smallest());
    const double *rising = tables.rising + at, *falling = tables.falling + at;
    const int32_t last = int32_t(tables.length - 1);
    double sum = 0;
    for (ptrdiff_t j = 0; j < counts.words; ++j)
      sum += rising[j * tables.length + std::clamp(most[j], 0, last)] +
             falling[j * tables.length + std::clamp(least[j], 0, last)];
    return sum;
  }
};

// The sum of functions of counts per cell of the box, linear between nodes that are evenly spaced.
struct DensityScore {
  WordCounts counts;
  Tables tables;
  double nodes_per_density;

  double interpolated(const double* table, double density) const {
    const double place = std::clamp(density * nodes_per_density, 0.0, double(tables.length - 1));
    const ptrdiff_t node = std::min(ptrdiff_t(place), tables.length - 2);
    return table[node] + (place - double(node)) * (table[node + 1] - table[node]);
  }
  double operator()(const BoxSet& set) const {
    const CellBox inner = set.smallest();
    // no box is smaller than one cell, nor than the smallest box in either direction
    const double area = double(std::max(inner.height(), 1)) * std::max(inner.width(), 1), largest = set.largest().area();
    return tables.over_parts(set, counts.words, [&](const BoxSet& part, ptrdiff_t at) {
      return of_part(part, at, area, largest);
    });
  }
  __attribute__((noinline)) double of_part(const BoxSet& part, ptrdiff_t at, double area, double largest) const {
    const WordCounts::Corners most = counts(part.largest()), least = counts(part.smallest());
    double sum = 0;
    for (ptrdiff_t j = 0; j < counts.words; ++j)
      sum += interpolated(tables.rising + at + j * tables.length, most[j] / area) +
             interpolated(tables.falling + at + j * tables.length, least[j] / largest);
    return sum;
  }
};

// Intersection over union with one box, from the smallest to the largest of a set.
struct Overlap {
  double edge[4];

  double area() const { return (edge[bottom] - edge[top]) * (edge[right] - edge[left]); }
  double common(const CellBox& b) const {
    if (b.empty()) return 0;
    const double height = std::min<double>(edge[bottom], b.edge[bottom]) - std::max<double>(edge[top], b.edge[top]);
    const double width = std::min<double>(edge[right], b.edge[right]) - std::max<double>(edge[left], b.edge[left]);
    return std::max(height, 0.0) * std::max(width, 0.0);
  }
  double covered(const CellBox& b) const { return area() + b.area() - common(b); }
  double least(const BoxSet& set) const { return common(set.smallest()) / covered(set.largest()); }
  double most(const BoxSet& set) const { return common(set.largest()) / covered(set.smallest()); }
};

enum class Loss { none, added, multiplied };

// A score with the loss 1 - IoU of the true box: added to it, or times one plus its difference from a reference.
template <class Score> struct Augmented {
  Score score;
  Loss loss;
  Overlap truth;
  double reference;

  double operator()(const BoxSet& set) const {
    const double value = score(set);
    if (loss == Loss::none) return value;
    const double most = 1 - truth.least(set);
    if (loss == Loss::added) return value + most;
    const double margin = 1 + value - reference;
    return margin * (margin >= 0 ? most : 1 - truth.most(set));
  }
};

struct BoxSearch {
  ptrdiff_t count = 0;  // boxes found
  int64_t nodes = 0;    // sets taken from the heap
  double gap = 0;       // how much better than the last box another one might be
};

// Find the best boxes, by falling score, of which none overlaps a better one by more than `limit`. After `max_nodes` the
// best of the middle boxes of all sets left takes the place of the next box, and the search ends.
template <class Bound> class BestBoxes {
 public:
  BestBoxes(const Bound& bound, double limit) : bound_(bound), limit_(limit) {}

  BoxSearch operator()(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t k, int64_t max_nodes, CellBox* boxes, double* scores) {
    BoxSearch search;
    push({0, {0, 1, 0, 1}, {int16_t(rows - 1), int16_t(rows), int16_t(columns - 1), int16_t(columns)}});
    while (!heap_.empty() && search.count < k) {
      if (search.nodes >= max_nodes) {
        finish(search, boxes, scores);
        break;
      }
      std::pop_heap(heap_.begin(), heap_.end());
      const BoxSet set = heap_.back();
      heap_.pop_back();
      ++search.nodes;
      if (taken(set)) continue;
      if (set.extent() > 0) {
        split(set);
        continue;
      }
      keep(search, set, boxes, scores);
    }
    return search;
  }

 private:
  void push(BoxSet set) {
    set.bound = bound_(set);
    heap_.push_back(set);
    std::push_heap(heap_.begin(), heap_.end());
  }

  void keep(BoxSearch& search, const BoxSet& set, CellBox* boxes, double* scores) {
    boxes[search.count] = set.largest();
    scores[search.count++] = set.bound;
    Overlap box;
    for (int i = 0; i < 4; ++i) box.edge[i] = set.low[i];
    found_.push_back(box);
  }

  // Whether all boxes of a set overlap one that was found by more than the limit.
  bool taken(const BoxSet& set) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Overlap& box) { return box.least(set) > limit_; });
  }

  void split(const BoxSet& set) {
    int widest = 0;
    for (int i = 1; i < 4; ++i)
      if (set.high[i] - set.low[i] > set.high[widest] - set.low[widest]) widest = i;
    const int16_t middle = int16_t((set.low[widest] + set.high[widest]) / 2);
    BoxSet lower = set, upper = set;
    lower.high[widest] = middle;
    upper.low[widest] = int16_t(middle + 1);
    for (BoxSet half : {lower, upper}) {
      for (int i : {top, left}) {  // boxes are not empty
        half.low[i + 1] = std::max(half.low[i + 1], int16_t(half.low[i] + 1));
        half.high[i] = std::min(half.high[i], int16_t(half.high[i + 1] - 1));
      }
      bool some = true;
      for (int i = 0; i < 4; ++i) some &= half.low[i] <= half.high[i];
      if (some) push(half);
    }
  }

  // Take the best middle box of all sets that are left; no box is above the highest bound.
  void finish(BoxSearch& search, CellBox* boxes, double* scores) {
    double highest = -std::numeric_limits<double>::infinity();
    BoxSet best{highest, {}, {}};
    for (const BoxSet& set : heap_) {
      if (taken(set)) continue;
      highest = std::max(highest, set.bound);
      const BoxSet middle = middle_of(set);
      if (!taken(middle) && best.bound < middle.bound) best = middle;
    }
    if (best.low[bottom] == 0) return;  // there is none
    keep(search, best, boxes, scores);
    search.gap = std::max(highest - best.bound, 0.0);
  }

  BoxSet middle_of(const BoxSet& set) const {
    BoxSet middle = set;
    for (int i : {top, left}) {
      middle.low[i] = int16_t((set.low[i] + set.high[i]) / 2);
      middle.low[i + 1] = std::max(int16_t((set.low[i + 1] + set.high[i + 1]) / 2), int16_t(middle.low[i] + 1));
    }
    std::copy(middle.low, middle.low + 4, middle.high);
    middle.bound = bound_(middle);
    return middle;
  }

  const Bound& bound_;
  double limit_;
  std::vector<BoxSet> heap_;
  std::vector<Overlap> found_;
};

}  // namespace hilbin
