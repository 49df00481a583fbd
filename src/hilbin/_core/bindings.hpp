// What the files of Python bindings share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace nb = nanobind;

namespace hilbin {

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Names an array that must have the right type: a converted copy would not be what the caller sees change.
inline auto operator""_array(const char* name, size_t) { return nb::arg(name).noconvert(); }

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

inline void require_range(ptrdiff_t begin, ptrdiff_t end, size_t size) {
  require(0 <= begin && begin <= end && end <= ptrdiff_t(size), "range out of bounds");
}

// Where runs begin that follow each other, and where the last one ends: within `size` numbers.
template <class Index> inline void require_pointers(const Index* pointers, size_t runs, size_t size, const char* message) {
  bool rising = pointers[0] >= 0;
  for (size_t i = 0; i < runs; ++i) rising &= pointers[i] <= pointers[i + 1];
  require(rising && uint64_t(pointers[runs]) <= size, message);
}
template <class Index> inline void require_pointers(const Vector<const Index>& pointers, size_t size, const char* message) {
  require(pointers.shape(0) >= 1, message);
  require_pointers(pointers.data(), pointers.shape(0) - 1, size, message);
}

// Numbers that choose one of `count` things. Several maxima side by side, which do not wait for each other.
template <class Number> inline void require_below(const Number* numbers, size_t size, uint64_t count, const char* message) {
  using Unsigned = std::make_unsigned_t<Number>;
  if (count > uint64_t(Unsigned(-1))) return;
  constexpr size_t at_once = 128 / sizeof(Number);
  Unsigned highest[at_once] = {};  // negative numbers are the highest
  size_t i = 0;
  for (; i + at_once <= size; i += at_once)
    for (size_t k = 0; k < at_once; ++k) highest[k] = std::max(highest[k], Unsigned(numbers[i + k]));
  for (; i < size; ++i) highest[0] = std::max(highest[0], Unsigned(numbers[i]));
  require(size == 0 || *std::max_element(highest, highest + at_once) < count, message);
}

// Some rows of an n x n matrix: the slot of every row, and of every slot when it was last used.
inline void require_cache(const Matrix<const float>& cache, const Vector<const int32_t>& slots, const Vector<int64_t>& stamps,
                          const Vector<int64_t>& clock, size_t n) {
  require(cache.shape(1) == n && slots.shape(0) == n, "the cache has the wrong shape");
  require(stamps.shape(0) == cache.shape(0) && clock.shape(0) == 1, "there is a stamp for every row of the cache");
  for (size_t i = 0; i < n; ++i) require(slots.data()[i] < int64_t(cache.shape(0)), "a slot is out of range");
}

void define_maps(nb::module_& m);
void define_icd(nb::module_& m);
void define_codes(nb::module_& m);
void define_vision(nb::module_& m);
void define_words(nb::module_& m);
void define_smo(nb::module_& m);
void define_boxes(nb::module_& m);
void define_pyramid(nb::module_& m);

}  // namespace hilbin
