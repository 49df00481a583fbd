// Bindings of the feature maps. Every function is single-threaded and releases the GIL.
#include <cmath>
#include <limits>

#include "bindings.hpp"
#include "cells.hpp"
#include "hadamard.hpp"
#include "series.hpp"
#include "trig.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

using Int32s = Vector<const int32_t>;

// Calls use(cells). Python describes cells by numbers: those of values >= 0 by the shift that leaves
// the leading bits, the bits of cell 1 and its start, those of equal width by the first start, the
// number of cells per unit and 0.
template <class T, class Use> void with_cells(bool by_bits, const double* numbers, ptrdiff_t count, Use use) {
  const IntOf<T> last = IntOf<T>(count - 1);
  if (by_bits)
    use(BitCells<T>{IntOf<T>(numbers[1]), int(numbers[0]), T(1 / numbers[2]), last});
  else
    use(EvenCells<T>{T(numbers[0]), T(numbers[1]), last});
}

void require_cells(bool by_bits, const Vector<const double>& numbers, int mantissa_bits) {
  require(numbers.shape(0) == 3, "cells are described by three numbers");
  for (int k = 0; k < 3; ++k) require(std::isfinite(numbers.data()[k]), "the numbers of cells are not finite");
  const double bits = double(int64_t(1) << (mantissa_bits > 30 ? 62 : 30));
  require(!by_bits || (numbers.data()[0] >= 1 && numbers.data()[0] <= mantissa_bits && std::abs(numbers.data()[1]) <= bits),
          "shift out of range");
}

template <class T> void define_for(nb::module_& m) {
  using Values = Vector<const T>;

  m.def("series", [](Values x, Values k, Values twice_root, Vector<T> out, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    const int terms = int(k.shape(0));
    require(terms >= 1 && terms <= most_terms && twice_root.shape(0) == k.shape(0), "wrong number of terms");
    require_range(begin, end, x.shape(0));
    require(out.shape(0) == x.shape(0) * terms, "out has the wrong length");
    auto use = [&](auto run) { run(x.data() + begin, end - begin, k.data(), twice_root.data(), terms, out.data() + begin * terms); };
    switch (terms) {
      case 3: return use(series<T, 3>);
      case 4: return use(series<T, 4>);
      case 5: return use(series<T, 5>);
      case 7: return use(series<T, 7>);
      default: return use(series<T, 0>);
    }
  }, "x"_array, "k"_a, "twice_root"_a, "out"_array, "begin"_a, "end"_a);

  m.def("cubics", [](bool by_bits, Vector<const double> cells, Values coefficients, int functions, Values x,
                     Vector<T> out, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    require_cells(by_bits, cells, Simd<T>::mantissa_bits);
    constexpr int L = Short<T>::lanes;
    const int stride = (functions + L - 1) / L * L;
    require(functions >= 1 && functions <= most_functions && coefficients.shape(0) % (4 * stride) == 0, "wrong number of coefficients");
    const ptrdiff_t count = coefficients.shape(0) / (4 * stride);
    require(count >= 1, "there is no cell");
    require_range(begin, end, x.shape(0));
    require(out.shape(0) == x.shape(0) * functions, "out has the wrong length");
    with_cells<T>(by_bits, cells.data(), count, [&](auto located) {
      auto use = [&](auto run) { run(located, coefficients.data(), x.data() + begin, end - begin, functions, out.data() + begin * functions); };
      using Cells = decltype(located);
      switch (stride / L) {
        case 1: return use(cubics<T, 1, Cells>);
        case 2: return use(cubics<T, 2, Cells>);
        default: return use(cubics<T, 0, Cells>);
      }
    });
  }, "by_bits"_a, "cells"_a, "coefficients"_a, "functions"_a, "x"_array, "out"_array, "begin"_a, "end"_a);

  // Rows [begin, end); `indptr` is that of the result. Without `columns` the rows are dense, and those
  // zeros are left out for which `indptr` has no room.
  m.def("two_nodes", [](bool by_bits, Vector<const double> cells, Int32s node, Values coefficients, Values start,
                        Values per_width, int nodes, Values x, Int32s columns, int n_columns, bool skip_zeros,
                        Vector<const int64_t> indptr, Vector<int32_t> indices, Vector<T> weights, ptrdiff_t begin,
                        ptrdiff_t end) {
    nb::gil_scoped_release release;
    require_cells(by_bits, cells, Simd<T>::mantissa_bits);
    const ptrdiff_t parts = per_width.shape(0), count = ptrdiff_t(node.shape(0)) - parts;
    require(count >= 1 && coefficients.shape(0) == node.shape(0) * 8, "wrong number of coefficients");
    require(ptrdiff_t(start.shape(0)) == parts + 1 && start.data()[parts] == std::numeric_limits<T>::infinity(), "start does not end in infinity");
    require(nodes >= 2 && double(nodes) * n_columns < 2147483648.0, "too many columns");
    require(indptr.shape(0) >= 1, "indptr is empty");
    require_range(begin, end, indptr.shape(0) - 1);
    // cells that nodes divide lead to a part, the others to a node
    int32_t lowest = 0, highest = 0, first_part = 0;
    for (ptrdiff_t k = 0; k < count; ++k) lowest = std::min(lowest, node.data()[k]), highest = std::max(highest, node.data()[k]);
    for (ptrdiff_t k = count; k < count + parts; ++k)
      first_part = std::min(first_part, node.data()[k]), highest = std::max(highest, node.data()[k]);
    require(lowest >= -parts && first_part >= 0 && highest < nodes - 1, "a node is out of range");
    for (ptrdiff_t row = begin; row < end; ++row) require(0 <= indptr.data()[row] && indptr.data()[row] <= indptr.data()[row + 1], "indptr is out of range");
    const bool dense = columns.shape(0) == 0;
    const int64_t* to = indptr.data();
    require(indices.shape(0) >= size_t(to[end]) && weights.shape(0) == indices.shape(0), "no room for the entries");
    require(dense ? x.shape(0) == (indptr.shape(0) - 1) * size_t(n_columns)
                  : columns.shape(0) == x.shape(0) && 2 * x.shape(0) >= size_t(to[end]), "x has the wrong length");
    const TwoNodes<T> map{node.data(), coefficients.data(), count, start.data(), per_width.data(), nodes};
    with_cells<T>(by_bits, cells.data(), count, [&](auto located) {
      if (!dense) {
        const ptrdiff_t first = to[begin] / 2;
        const int32_t* column = columns.data() + first;
        auto of = [=](ptrdiff_t i) { return column[i]; };
        map.stored(located, x.data() + first, of, to[end] / 2 - first, indices.data() + 2 * first,
                   weights.data() + 2 * first);
        return;
      }
      for (ptrdiff_t row = begin; row < end; ++row)
        map.row(located, x.data() + row * n_columns, n_columns, skip_zeros, to[row + 1] - to[row],
                indices.data() + to[row], weights.data() + to[row]);
    });
  }, "by_bits"_a, "cells"_a, "node"_a, "coefficients"_a, "start"_a, "per_width"_a, "nodes"_a, "x"_array, "columns"_a,
     "n_columns"_a, "skip_zeros"_a, "indptr"_a, "indices"_array, "weights"_array, "begin"_a, "end"_a);

  m.def("cosines_sines", [](Matrix<const T> x, Matrix<T> out, double scale, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    const ptrdiff_t columns = x.shape(1);
    require(out.shape(0) == x.shape(0) && out.shape(1) == 2 * x.shape(1), "out has the wrong shape");
    require_range(begin, end, x.shape(0));
    for (ptrdiff_t i = begin; i < end; ++i)
      cosines_sines(x.data() + i * columns, columns, T(scale), out.data() + 2 * i * columns);
  }, "x"_array, "out"_array, "scale"_a, "begin"_a, "end"_a);

  m.def("hadamard", [](Matrix<T> rows, Matrix<const T> signs, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    const ptrdiff_t length = rows.shape(1);
    require(length >= 1 && (length & (length - 1)) == 0, "the length is not a power of two");
    require(signs.shape(1) == rows.shape(1), "signs and rows differ in length");
    require_range(begin, end, rows.shape(0));
    for (ptrdiff_t i = begin; i < end; ++i)
      for (size_t round = 0; round < signs.shape(0); ++round)
        hadamard(rows.data() + i * length, signs.data() + round * length, length);
  }, "rows"_array, "signs"_a, "begin"_a, "end"_a);
}

// out[p * width + j] = indices[p] * width + j: the columns of a block of `width` per column.
void spread_indices(Int32s indices, int width, Vector<int32_t> out, ptrdiff_t begin, ptrdiff_t end) {
  nb::gil_scoped_release release;
  require(width >= 0 && out.shape(0) == indices.shape(0) * size_t(width), "out has the wrong length");
  require_range(begin, end, indices.shape(0));
  for (ptrdiff_t p = begin; p < end; ++p) {
    const int32_t first = int32_t(uint32_t(indices.data()[p]) * uint32_t(width));
    for (int j = 0; j < width; ++j) out.data()[p * width + j] = first + j;
  }
}

}  // namespace

void define_maps(nb::module_& m) {
  define_for<float>(m);
  define_for<double>(m);
  m.def("spread_indices", &spread_indices, "indices"_array, "width"_a, "out"_array, "begin"_a, "end"_a);
}

}  // namespace hilbin
