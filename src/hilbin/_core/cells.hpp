// Functions of values given cell by cell as cubics in t, the position within the cell, 0 <= t <= 1.
// Beyond the first and the last cell a function keeps the value it has at the end.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simd.hpp"

namespace hilbin {

constexpr int most_functions = 128;
template <class T> using ShortVec = typename Short<T>::V;
template <class T> using ShortIntVec = typename Short<T>::I;

// Cells of values >= 0: cell 0 is [0, start of cell 1), every further one has its own leading bits.
template <class T> struct BitCells {
  IntOf<T> first;  // the leading bits of cell 1
  int shift;
  T per_first;  // 1 / start of cell 1
  IntOf<T> last;

  HILBIN_INLINE void locate(ShortVec<T> x, ShortIntVec<T>& cell, ShortVec<T>& t) const {
    constexpr IntOf<T> mantissa = (IntOf<T>(1) << Simd<T>::mantissa_bits) - 1;
    const ShortVec<T> one = T(1) - ShortVec<T>{};
    const ShortIntVec<T> bits = (ShortIntVec<T>)x;
    cell = (bits >> shift) - (first - 1);
    t = (ShortVec<T>)(((bits << (Simd<T>::mantissa_bits - shift)) & mantissa) | (ShortIntVec<T>)one) - one;
    const ShortIntVec<T> below = cell < 1, above = cell > last;
    t = below ? x * per_first : above ? one : t;
    cell = below ? ShortIntVec<T>{} : above ? last - ShortIntVec<T>{} : cell;
  }
};

// Cells of equal width.
template <class T> struct EvenCells {
  T low, per_unit;
  IntOf<T> last;

  HILBIN_INLINE void locate(ShortVec<T> x, ShortIntVec<T>& cell, ShortVec<T>& t) const {
    const ShortVec<T> at = smaller(larger((x - low) * per_unit, ShortVec<T>{}), T(last + 1) - ShortVec<T>{});
    cell = __builtin_convertvector(at, ShortIntVec<T>);
    cell = cell > last ? last - ShortIntVec<T>{} : cell;
    t = at - __builtin_convertvector(cell, ShortVec<T>);
  }
};

// Calls use(i, cell, t) for every x[i].
template <class T, class Cells, class Use>
HILBIN_INLINE void each_cell(const Cells& cells, const T* x, ptrdiff_t count, Use use) {
  alignas(vector_bytes) T t[Short<T>::lanes], last[Short<T>::lanes] = {};
  alignas(vector_bytes) IntOf<T> cell[Short<T>::lanes];
  auto find = [&](const T* from) HILBIN_INLINE_LAMBDA {
    ShortVec<T> position;
    ShortIntVec<T> number;
    cells.locate(load_as_vector<ShortVec<T>>(from), number, position);
    store(t, position);
    std::memcpy(cell, &number, sizeof cell);
  };
  ptrdiff_t i = 0;
  for (; i + Short<T>::lanes <= count; i += Short<T>::lanes) {
    find(x + i);
#pragma GCC unroll 8
    for (int lane = 0; lane < Short<T>::lanes; ++lane) use(i + lane, ptrdiff_t(cell[lane]), t[lane]);
  }
  if (i == count) return;
  std::copy(x + i, x + count, last);
  find(last);
  for (int lane = 0; i + lane < count; ++lane) use(i + lane, ptrdiff_t(cell[lane]), t[lane]);
}

// out[i * functions + j] = function j of x[i]. A cell has 4 rows of coefficients, constant first,
// each padded to whole short vectors. `Vectors` is their number, or 0 where it is known at run time only.
template <class T, int Vectors, class Cells>
void cubics(const Cells& cells, const T* coefficients, const T* x, ptrdiff_t count, int functions, T* out) {
  using V = ShortVec<T>;
  constexpr int L = Short<T>::lanes;
  const int vectors = Vectors ? Vectors : (functions + L - 1) / L, stride = vectors * L;
  const ptrdiff_t whole = count * functions - stride;
  each_cell(cells, x, count, [=](ptrdiff_t i, ptrdiff_t cell, T t) HILBIN_INLINE_LAMBDA {
    const T* c = coefficients + cell * 4 * stride;
    T tail[Vectors ? Vectors * L : most_functions];
    T* const to = out + i * functions;
    // what is too much, the next value writes over; there is no next one at the end
    T* const at = i * functions <= whole ? to : tail;
    for (int j = 0; j < stride; j += L) {
      V value = load_as_vector<V>(c + 3 * stride + j);
      for (int power = 2; power >= 0; --power) value = value * t + load_as_vector<V>(c + power * stride + j);
      store(at + j, value);
    }
    if (at == tail) std::copy(tail, tail + functions, to);
  });
}

// A value as a combination of two neighboring nodes: entries node and node + 1 of its column's block.
// A cell that nodes divide has node -1 - p, where p is the first of its parts; a part has its own
// start and width, and the last part of a cell ends where the cell ends.
template <class T> struct TwoNodes {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));

  const int32_t* node;    // of every cell, then of every part
  const T* coefficients;  // of every cell, then of every part: 4 pairs, constant first
  ptrdiff_t cells;
  const T *start, *per_width;  // of every part, and infinity at the end
  int32_t nodes;

  // Values with their columns.
  template <class Cells, class Column>
  void stored(const Cells& located, const T* x, Column column, ptrdiff_t count, int32_t* indices, T* weights) const {
    const TwoNodes map = *this;
    each_cell(located, x, count, [=](ptrdiff_t i, ptrdiff_t cell, T t) HILBIN_INLINE_LAMBDA {
      map.put(x[i], cell, t, column(i), indices + 2 * i, weights + 2 * i);
    });
  }

  // A dense row that makes `entries`: zeros are left out if they are to be skipped.
  template <class Cells>
  void row(const Cells& located, const T* x, int32_t columns, bool skip_zeros, ptrdiff_t entries, int32_t* indices,
           T* weights) const {
    if (entries == 2 * ptrdiff_t(columns))
      return stored(located, x, [](ptrdiff_t i) { return int32_t(i); }, columns, indices, weights);
    const TwoNodes map = *this;
    ptrdiff_t filled = 0, *const at = &filled;
    each_cell(located, x, columns, [=](ptrdiff_t i, ptrdiff_t cell, T t) HILBIN_INLINE_LAMBDA {
      if (*at == entries) return;  // the rest is zeros
      map.put(x[i], cell, t, int32_t(i), indices + *at, weights + *at);
      *at += !skip_zeros || x[i] != 0 ? 2 : 0;  // after a 0 the next value writes over it
    });
  }

 private:
  HILBIN_INLINE void put(T x, ptrdiff_t cell, T t, int32_t column, int32_t* __restrict indices,
                         T* __restrict weights) const {
    int32_t at = node[cell];
    if (__builtin_expect(at < 0, 0)) {
      ptrdiff_t part = -1 - at;
      while (x >= start[part + 1]) ++part;
      t = std::min(std::max((x - start[part]) * per_width[part], T(0)), T(1));
      cell = cells + part;
      at = node[cell];
    }
    const Four low = four(coefficients + cell * 8), high = four(coefficients + cell * 8 + 4);
    const Four even_odd = low + high * (t * t);
    const Four both = even_odd + upper_half(even_odd) * t;
    std::memcpy(weights, &both, 2 * sizeof(T));
    const int32_t first = column * nodes + at, entries[2] = {first, first + 1};
    std::memcpy(indices, entries, sizeof entries);
  }

  // The last two numbers, first.
  static Four upper_half(Four v) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(v, v, 2, 3, 2, 3);
#else
    return Four{v[2], v[3], v[2], v[3]};
#endif
  }

  static Four four(const T* p) {
    Four v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
};

}  // namespace hilbin
