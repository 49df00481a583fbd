// Sums of minima kept as look-up tables. A feature has levels v_0 = 0 < v_1 < ... < v_m, a row holds the rank
// of its value in every feature, and T(r) = sum_i c_i min(x_i, v_r) is what the rows i with
// coefficients c_i contribute to the score of a row of rank r. A kind of table says how T is stored:
// at(r) reads T(r), and add(r, c) makes T the sum with one more row.
//
//   Flat<N>    T itself, N cells; add() touches all of them.
//   Two<N>     N blocks of 16 levels: T(r) = P[q] + L[q] v_r + I[r], q = r / 16. add() changes L of
//              the blocks before q by c, P of those after it by c v_r, and I within block q alone.
//   Deep<D>    the same with D levels of blocks of blocks: 16^(D+1) levels, of which add() touches 32 D + 16 cells.
//   Hinge      H(r) = sum_i c_i max(x_i - v_r, 0), T(r) = H(0) - H(r); add() touches r cells.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "simd.hpp"

namespace hilbin {

constexpr int block = 16;  // levels in a block, and blocks in a block of blocks

// Wider vectors would lie on two lines of the cache.
template <class F> constexpr int most_at_once = Short<F>::lanes;

// Which of 16 siblings change when a row falls into sibling q: those after it and, interleaved, those
// before it.
template <class F> struct Siblings {
  alignas(64) F change[block][2 * block];
  constexpr Siblings() : change{} {
    for (int q = 0; q < block; ++q)
      for (int b = 0; b < block; ++b) {
        change[q][2 * b] = b > q;
        change[q][2 * b + 1] = b < q;
      }
  }
};
template <class F> inline constexpr Siblings<F> siblings;

// pairs[2b] += c x for the siblings b after q, pairs[2b + 1] += c for those before it.
template <int count, class F> HILBIN_INLINE void add_to_siblings(F* pairs, int q, F x, F c) {
  using Some = Few<F, 2 * count < most_at_once<F> ? 2 * count : most_at_once<F>>;
  using V = typename Some::V;
  V both;
  for (int lane = 0; lane < Some::lanes; lane += 2) both[lane] = c * x, both[lane + 1] = c;
  for (int k = 0; k < 2 * count; k += Some::lanes)
    store(pairs + k, load_as_vector<V>(pairs + k) + both * load_as_vector<V>(siblings<F>.change[q] + k));
}

// t[k] += c min(x, v[k])
template <int count, class F> HILBIN_INLINE void add_minima(F* t, const F* v, F x, F c) {
  using Some = Few<F, count < most_at_once<F> ? count : most_at_once<F>>;
  using V = typename Some::V;
  const V xs = x - V{}, cs = c - V{};
  for (int k = 0; k < count; k += Some::lanes)
    store(t + k, load_as_vector<V>(t + k) + cs * smaller(xs, load_as_vector<V>(v + k)));
}

// Where the tables of one kind lie. Slot s begins at cells + s * stride or, for kinds of no fixed
// size, at the places of s; its levels at levels + s * level_stride, or at the last of its places.
template <class F> struct Place {
  F* cells;
  const F* levels;
  ptrdiff_t level_stride;
  const int64_t* places;
};

template <int N> struct Flat {
  static constexpr ptrdiff_t stride = N, capacity = N;
  template <class F> static HILBIN_INLINE F at(const Place<F>& p, ptrdiff_t slot, uint32_t r) {
    return p.cells[slot * stride + r];
  }
  template <class F> static HILBIN_INLINE void add(const Place<F>& p, ptrdiff_t slot, uint32_t r, F c) {
    const F* v = p.levels + slot * p.level_stride;
    add_minima<N>(p.cells + slot * stride, v, v[r], c);
  }
};

template <int N> struct Two {
  static constexpr ptrdiff_t stride = (2 + block) * N, capacity = block * N;
  template <class F> static HILBIN_INLINE F at(const Place<F>& p, ptrdiff_t slot, uint32_t r) {
    const F* t = p.cells + slot * stride;
    const uint32_t q = r / block;
    return t[2 * q] + t[2 * N + r] + t[2 * q + 1] * p.levels[slot * p.level_stride + r];
  }
  template <class F> static HILBIN_INLINE void add(const Place<F>& p, ptrdiff_t slot, uint32_t r, F c) {
    F* t = p.cells + slot * stride;
    const F* v = p.levels + slot * p.level_stride;
    const uint32_t q = r / block;
    const F x = v[r];
    add_to_siblings<N>(t, int(q), x, c);
    add_minima<block>(t + 2 * N + q * block, v + q * block, x, c);
  }
};

// places: where the pairs of every level of blocks begin, the innermost cells, and the levels.
template <int D> struct Deep {
  static constexpr int per_slot = D + 2;
  template <class F> static HILBIN_INLINE F at(const Place<F>& p, ptrdiff_t slot, uint32_t r) {
    const int64_t* begin = p.places + slot * per_slot;
    F base = p.cells[begin[D] + r], slope = 0;
    for (int d = 0; d < D; ++d) {
      const F* pair = p.cells + begin[d] + 2 * ptrdiff_t(r >> (4 * (D - d)));
      base += pair[0];
      slope += pair[1];
    }
    return base + slope * p.levels[begin[D + 1] + r];
  }
  template <class F> static HILBIN_INLINE void add(const Place<F>& p, ptrdiff_t slot, uint32_t r, F c) {
    const int64_t* begin = p.places + slot * per_slot;
    const F* v = p.levels + begin[D + 1];
    const F x = v[r];
    for (int d = 0; d < D; ++d) {
      const uint32_t node = r >> (4 * (D - d)), first = node & ~uint32_t(block - 1);
      add_to_siblings<block>(p.cells + begin[d] + 2 * ptrdiff_t(first), int(node - first), x, c);
    }
    const uint32_t first = r & ~uint32_t(block - 1);
    add_minima<block>(p.cells + begin[D] + first, v + first, x, c);
  }
};

struct Hinge {
  static constexpr int per_slot = 2;
  template <class F> static HILBIN_INLINE F at(const Place<F>& p, ptrdiff_t slot, uint32_t r) {
    const F* t = p.cells + p.places[slot * per_slot];
    return t[0] - t[r];
  }
  template <class F> static HILBIN_INLINE void add(const Place<F>& p, ptrdiff_t slot, uint32_t r, F c) {
    F* t = p.cells + p.places[slot * per_slot];
    const F* v = p.levels + p.places[slot * per_slot + 1];
    const Vec<F> x = splat(v[r]), cs = splat(c);
    for (uint32_t k = 0; k < r; k += lanes<F>)
      store(t + k, load(t + k) + cs * larger(x - load(v + k), Vec<F>{}));
  }
};

enum class Kind : int { flat8, flat16, flat32, two4, two8, two16, deep2, deep3, deep4, hinge };

// Calls use(Kind struct) for a kind known at run time.
template <class Use> HILBIN_INLINE void with_kind(int kind, Use use) {
  switch (Kind(kind)) {
    case Kind::flat8: return use(Flat<8>{});
    case Kind::flat16: return use(Flat<16>{});
    case Kind::flat32: return use(Flat<32>{});
    case Kind::two4: return use(Two<4>{});
    case Kind::two8: return use(Two<8>{});
    case Kind::two16: return use(Two<16>{});
    case Kind::deep2: return use(Deep<2>{});
    case Kind::deep3: return use(Deep<3>{});
    case Kind::deep4: return use(Deep<4>{});
    case Kind::hinge: return use(Hinge{});
  }
}

// The ranks of one row in the slots of one group.
template <class Code> struct DensePart {
  const Code* codes;
  ptrdiff_t size;
  ptrdiff_t slot(ptrdiff_t k) const { return k; }
  uint32_t rank(ptrdiff_t k) const { return codes[k]; }
};
template <class Entry> struct SparsePart {  // an entry is slot * 2^bits + rank
  static constexpr int bits = sizeof(Entry) == 4 ? 8 : 32;
  const Entry* entries;
  ptrdiff_t size;
  ptrdiff_t slot(ptrdiff_t k) const { return ptrdiff_t(entries[k] >> bits); }
  uint32_t rank(ptrdiff_t k) const { return uint32_t(entries[k] & ((Entry(1) << bits) - 1)); }
};

template <class Code> struct DenseCodes {
  const Code* codes;
  ptrdiff_t width;
  const int64_t* first;  // the first slot of every group, and the number of all slots

  DensePart<Code> part(ptrdiff_t row, int group) const {
    return {codes + row * width + first[group], first[group + 1] - first[group]};
  }
  void prefetch(ptrdiff_t row) const {
    const char* p = reinterpret_cast<const char*>(codes + row * width);
    for (ptrdiff_t b = 0; b < std::min<ptrdiff_t>(width * sizeof(Code), 4096); b += 64) __builtin_prefetch(p + b);
  }
};
template <class Entry> struct SparseCodes {
  const Entry* entries;
  const int64_t* indptr;  // of every group of every row
  int groups;

  SparsePart<Entry> part(ptrdiff_t row, int group) const {
    const int64_t* at = indptr + row * groups + group;
    return {entries + at[0], at[1] - at[0]};
  }
  void prefetch(ptrdiff_t row) const {
    const int64_t* at = indptr + row * groups;
    const char *p = reinterpret_cast<const char*>(entries + at[0]), *end = reinterpret_cast<const char*>(entries + at[groups]);
    for (end = std::min(end, p + 4096); p < end; p += 64) __builtin_prefetch(p);
  }
};

// T of one row, summed over the slots of a group of kind K.
template <class K, class F, class Part> HILBIN_INLINE F sum(const Place<F>& p, Part part) {
  F a = 0, b = 0, c = 0, d = 0;
  ptrdiff_t k = 0;
  for (; k + 4 <= part.size; k += 4) {
    a += K::at(p, part.slot(k), part.rank(k));
    b += K::at(p, part.slot(k + 1), part.rank(k + 1));
    c += K::at(p, part.slot(k + 2), part.rank(k + 2));
    d += K::at(p, part.slot(k + 3), part.rank(k + 3));
  }
  for (; k < part.size; ++k) a += K::at(p, part.slot(k), part.rank(k));
  return (a + b) + (c + d);
}
template <class K, class F, class Part> HILBIN_INLINE void add(const Place<F>& p, Part part, F change) {
  for (ptrdiff_t k = 0; k < part.size; ++k) K::add(p, part.slot(k), part.rank(k), change);
}

constexpr int most_groups = 10;  // one of every kind

// The look-up tables of all features, in groups of one kind each, and the rows that index them.
template <class F, class Codes> struct Lookup {
  Codes codes;
  int groups;
  int kind[most_groups];
  Place<F> place[most_groups];

  double score(ptrdiff_t row) const {
    double total = 0;
    for (int g = 0; g < groups; ++g)
      with_kind(kind[g], [&](auto k) HILBIN_INLINE_LAMBDA { total += sum<decltype(k)>(place[g], codes.part(row, g)); });
    return total;
  }
  void update(ptrdiff_t row, double change) const {
    for (int g = 0; g < groups; ++g)
      with_kind(kind[g], [&](auto k) HILBIN_INLINE_LAMBDA { add<decltype(k)>(place[g], codes.part(row, g), F(change)); });
  }
  void prefetch(ptrdiff_t row) const { codes.prefetch(row); }
};

}  // namespace hilbin
