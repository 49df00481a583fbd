// What the files of Python bindings share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

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

void define_maps(nb::module_& m);
void define_icd(nb::module_& m);
void define_codes(nb::module_& m);
void define_vision(nb::module_& m);
void define_words(nb::module_& m);
void define_smo(nb::module_& m);

}  // namespace hilbin
