// What only benchmarks compare with, compiled by native.py: the ceiling of a loop of minima, and two other ways to
// store the look-up tables of the intersection kernel. The descent is the package's own.
#include "descent.hpp"
#include "lookup.hpp"

using namespace hilbin;

// The table of Wu (ECCV 2010): T itself, of any length; add() touches all of it. places: where the cells begin, the
// levels, and how many cells there are, filled up to whole vectors.
struct Plain {
  static constexpr int per_slot = 3;
  template <class F> static HILBIN_INLINE F at(const Place<F>& p, ptrdiff_t slot, uint32_t r) {
    return p.cells[p.places[slot * per_slot] + r];
  }
  template <class F> static HILBIN_INLINE void add(const Place<F>& p, ptrdiff_t slot, uint32_t r, F c) {
    const int64_t* at = p.places + slot * per_slot;
    for (int64_t k = 0; k < at[2]; k += lanes<F>)
      add_minima<lanes<F>>(p.cells + at[0] + k, p.levels + at[1] + k, p.levels[at[1] + r], c);
  }
};

// Sums of c and of c x in binary indexed trees; both functions take log2(m) steps. places: where the pairs begin, the
// levels, and how many levels there are. The first pair holds the sum of c.
struct Fenwick {
  static constexpr int per_slot = 3;
  template <class F> static HILBIN_INLINE F at(const Place<F>& p, ptrdiff_t slot, uint32_t r) {
    const int64_t* at = p.places + slot * per_slot;
    const F* t = p.cells + at[0];
    F below = 0, product = 0;
    for (uint32_t k = r; k > 0; k &= k - 1) below += t[2 * k], product += t[2 * k + 1];
    return product + p.levels[at[1] + r] * (t[0] - below);
  }
  template <class F> static HILBIN_INLINE void add(const Place<F>& p, ptrdiff_t slot, uint32_t r, F c) {
    const int64_t* at = p.places + slot * per_slot;
    F* t = p.cells + at[0];
    const F product = c * p.levels[at[1] + r];
    if (r == 0) return;
    t[0] += c;
    for (int64_t k = r; k < at[2]; k += k & -k) t[2 * k] += c, t[2 * k + 1] += product;
  }
};

template <class Kind, class Codes> struct OneKind {
  Codes codes;
  Place<float> place;
  double score(ptrdiff_t row) const { return sum<Kind>(place, codes.part(row, 0)); }
  void update(ptrdiff_t row, double change) const { add<Kind>(place, codes.part(row, 0), float(change)); }
  void prefetch(ptrdiff_t row) const { codes.prefetch(row); }
};

// Everything that a sweep reads and changes, as native.py declares it.
struct Course {
  const void* codes;  // ranks of `width` features, or entries where width is 0
  int64_t width, bytes;
  const int64_t* second;  // the first slots of the groups, or row pointers
  const float* levels;
  const int64_t* places;
  float* cells;
  Sample* samples;
  int32_t* order;
  int64_t active;
  double above, below, epsilon, constant;
  Totals* totals;
  uint64_t* random;
  double highest, lowest;
};

template <class Kind, class Codes> void run(Course& c, Codes codes) {
  Random random{*c.random};
  const OneKind<Kind, Codes> state{codes, {c.cells, c.levels, 0, c.places}};
  const Sweep done = sweep(state, c.samples, c.order, c.active, c.above, c.below, c.epsilon, c.constant, *c.totals, random);
  *c.random = random.state;
  c.active = done.active, c.highest = done.highest, c.lowest = done.lowest;
}

template <class Kind> void run(Course& c) {
  auto dense = [&](auto code) { run<Kind>(c, DenseCodes<decltype(code)>{static_cast<const decltype(code)*>(c.codes), ptrdiff_t(c.width), c.second}); };
  auto sparse = [&](auto entry) { run<Kind>(c, SparseCodes<decltype(entry)>{static_cast<const decltype(entry)*>(c.codes), c.second, 1}); };
  if (c.width == 0) return c.bytes == 4 ? sparse(uint32_t()) : sparse(uint64_t());
  if (c.bytes == 1) return dense(uint8_t());
  c.bytes == 2 ? dense(uint16_t()) : dense(uint32_t());
}

extern "C" {

void sweep_plain(Course* course) { run<Plain>(*course); }
void sweep_fenwick(Course* course) { run<Fenwick>(*course); }

// Independent min+add chains that touch no memory: the ceiling of the intersection kernel's loop.
// Returns the number of pairs done, and keeps the sums alive.
double peak_minimum(int64_t rounds) {
  constexpr int chains = 12;
  Vec<float> sum[chains] = {}, x = splat(3e-9f), y[2] = {splat(1e-9f), splat(2e-9f)};
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) {
#if defined(__x86_64__)
      asm volatile("" : "+x"(x));  // else the minimum is the same in every round, and is computed once
#else
      asm volatile("" : "+w"(x));
#endif
      sum[i] += smaller(y[i & 1], x);
    }
  }
  volatile float keep = 0;
  for (auto& s : sum) keep = keep + s[0];
  return double(rounds) * chains * lanes<float>;
}
}
