// Python's door to the core. Every function is single-threaded and releases the GIL.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "bindings.hpp"
#include "gram.hpp"
#include "neighbors.hpp"
#include "order.hpp"
#include "series.hpp"
#include "upper.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

template <class T> using Plane = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T> using Planes = std::vector<Plane<T>>;

// Calls use(op) for the op of that name; `numbers` serves those made from a profile, and is null
// where only the op's shape matters.
template <class T, class Use> void with_op(const std::string& name, const T* numbers, Use use) {
  if (name == "minimum") return use(Minimum{});
  if (name == "harmonic") return use(Harmonic{});
  if (name == "jensen_shannon") return use(JensenShannon{});
  if (name == "harmonic_difference") return use(HarmonicDifference{});
  if (name == "absolute") return use(AbsoluteDifference{});
  if (name == "squared") return use(SquaredDifference{});
  if (name == "log_difference") return use(LogDifference{});
  if (name == "powers2") return use(Powers<T, 2>(numbers));
  if (name == "powers6") return use(Powers<T, 6>(numbers));
  if (name == "powers10") return use(Powers<T, 10>(numbers));
  if (name == "table") return use(Table<T>{numbers});
  throw std::invalid_argument("unknown op: " + name);
}

template <class T> DenseRows<T> dense_rows(const Planes<T>& planes, int needed) {
  require(int(planes.size()) == needed, "wrong number of planes");
  DenseRows<T> rows{};
  rows.columns = int(planes[0].shape(1));
  for (int p = 0; p < needed; ++p) {
    require(planes[p].shape(0) == planes[0].shape(0) && planes[p].shape(1) == planes[0].shape(1),
            "planes differ in shape");
    rows.plane[p] = planes[p].data();
    rows.row_stride[p] = planes[p].stride(0);
    rows.column_stride[p] = planes[p].stride(1);
  }
  return rows;
}

// A CSR matrix as Python passes it.
template <class T> struct CsrArgument {
  std::vector<Vector<const T>> planes;
  Vector<const int32_t> indices;
  Vector<const int64_t> indptr;

  size_t rows() const { return indptr.shape(0) - 1; }
  CsrRows<T> view(const Vector<const T>& zero, int columns, int needed) const {
    require(int(planes.size()) == needed && zero.shape(0) == size_t(needed), "wrong number of planes");
    require_pointers(indptr, indices.shape(0), "indptr is out of range");
    require_below(indices.data(), indices.shape(0), uint64_t(columns), "a column is out of range");
    CsrRows<T> rows{};
    rows.columns = columns;
    rows.indices = indices.data();
    rows.indptr = indptr.data();
    for (int p = 0; p < needed; ++p) {
      require(planes[p].shape(0) == indices.shape(0), "values and indices differ in length");
      rows.plane[p] = planes[p].data();
      rows.zero[p] = zero.data()[p];
    }
    return rows;
  }
};

// The smallest number, and whether all are finite, in one pass over memory.
template <class T> nb::tuple least_and_finite(Vector<const T> x) {
  T low = std::numeric_limits<T>::infinity(), zeros = 0;
  {
    nb::gil_scoped_release release;
    const ptrdiff_t count = x.shape(0), whole = count / (4 * lanes<T>) * (4 * lanes<T>);
    Vec<T> least[4], zero[4] = {};  // 0 * x is 0 for finite x alone
    for (auto& v : least) v = splat(low);
    for (ptrdiff_t i = 0; i < whole; i += 4 * lanes<T>)
      for (int j = 0; j < 4; ++j) {
        const Vec<T> v = load(x.data() + i + j * lanes<T>);
        least[j] = smaller(v, least[j]);
        zero[j] += v * T(0);
      }
    for (int j = 0; j < 4; ++j)
      for (int lane = 0; lane < lanes<T>; ++lane) low = std::min(low, least[j][lane]), zeros += zero[j][lane];
    for (ptrdiff_t i = whole; i < count; ++i) low = std::min(low, x.data()[i]), zeros += x.data()[i] * T(0);
  }
  return nb::make_tuple(low, zeros == 0);
}

// What is wrong with the first row of a CSR matrix that is not in canonical format, and its number: a "pointer" that
// leaves the indices, an "index" beyond the columns, or indices that are not in ascending "order". The faults are
// looked for in this order; a matrix without one has the row -1 and "".
template <class Index> std::pair<int64_t, std::string> check_csr(Vector<const Index> indices, Vector<const Index> indptr, int64_t columns) {
  using Unsigned = std::make_unsigned_t<Index>;
  nb::gil_scoped_release release;
  const int64_t rows = int64_t(indptr.shape(0)) - 1;
  require(rows >= 0 && columns >= 0, "indptr is empty");
  const Index *begin = indptr.data(), *column = indices.data();
  for (int64_t i = 0; i < rows; ++i)
    if (begin[i] > begin[i + 1] || (i == 0 && begin[0] != 0) || uint64_t(begin[i + 1]) > indices.shape(0)) return {i, "pointer"};
  if (rows == 0 && begin[0] != 0) return {0, "pointer"};
  // All indices in one pass, which is vectors of them: where one is not above that before it, a row must begin.
  const int64_t stored = begin[rows];
  Unsigned highest = stored > 0 ? Unsigned(column[0]) : 0;  // negative indices are the highest
  int64_t descents = 0, at_rows = 0;
  for (int64_t first = 1; first < stored; first += 1 << 20) {
    const int64_t last = std::min<int64_t>(first + (1 << 20), stored);
    Index some = 0;
    for (int64_t k = first; k < last; ++k) {
      highest = std::max(highest, Unsigned(column[k]));
      some += column[k] <= column[k - 1];
    }
    descents += some;
  }
  for (int64_t i = 1; i < rows; ++i) {
    const int64_t k = begin[i];
    if (0 < k && k < begin[i + 1]) at_rows += column[k] <= column[k - 1];  // the row is not empty
  }
  const bool inside = stored == 0 || uint64_t(highest) < uint64_t(columns);
  if (inside && descents == at_rows) return {-1, ""};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = begin[i]; k < begin[i + 1]; ++k) {
      if (!inside && uint64_t(Unsigned(column[k])) >= uint64_t(columns)) return {i, "index"};
      if (inside && k > begin[i] && column[k] <= column[k - 1]) return {i, "order"};
    }
  return {-1, ""};
}

size_t pairs_of(size_t n) { return n * (n - (n > 0)) / 2; }

template <class T> void define_pairwise(nb::module_& m, const char* panel_rows_name) {
  using Values = Vector<const T>;
  using ValueList = std::vector<Values>;
  using Indices = Vector<const int32_t>;
  using Pointers = Vector<const int64_t>;

  m.def("least_and_finite", &least_and_finite<T>, "x"_a);
  m.def(panel_rows_name, [](const std::string& op) {
    int width = 0;
    with_op<T>(op, nullptr, [&](auto o) { width = panel_rows<decltype(o), T>; });
    return width;
  }, "op"_a);

  m.def("pack", [](const std::string& op, Planes<T> planes, Vector<T> packed, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    with_op<T>(op, nullptr, [&](auto o) {
      using Op = decltype(o);
      const auto rows = dense_rows<T>(planes, Op::planes);
      const size_t width = panel_rows<Op, T>, n = planes[0].shape(0);
      require_range(begin, end, n);
      require(begin % ptrdiff_t(width) == 0, "begin is not the start of a panel");
      require(packed.shape(0) >= (n + width - 1) / width * width * rows.columns * Op::planes, "packed is too small");
      pack<Op, T>(rows, begin, end, packed.data());
    });
  }, "op"_a, "planes"_a, "packed"_array, "begin"_a, "end"_a);

  m.def("band", [](const std::string& op, Values numbers, Planes<T> planes, Values packed, Matrix<T> out,
                   ptrdiff_t begin, ptrdiff_t end, bool symmetric) {
    nb::gil_scoped_release release;
    with_op<T>(op, numbers.data(), [&](auto o) {
      using Op = decltype(o);
      const auto rows = dense_rows<T>(planes, Op::planes);
      const size_t width = panel_rows<Op, T>;
      require(numbers.shape(0) >= size_t(Op::least_numbers), "too few numbers");
      require_range(begin, end, planes[0].shape(0));
      require(out.shape(0) == planes[0].shape(0), "out has the wrong number of rows");
      require(!symmetric || (out.shape(0) == out.shape(1) && begin % ptrdiff_t(width) == 0),
              "a symmetric band begins at a panel of a square matrix");
      require(packed.shape(0) >= (out.shape(1) + width - 1) / width * width * rows.columns * Op::planes,
              "packed is too small");
      band(o, rows, begin, end, packed.data(), out.shape(1), out.data(), out.shape(1), symmetric);
    });
  }, "op"_a, "numbers"_a, "planes"_a, "packed"_array, "out"_array, "begin"_a, "end"_a, "symmetric"_a);

  m.def("columns", [](const std::string& op, Values numbers, Values zero, int n_features, ValueList x, Indices x_indices,
                      Pointers x_indptr, ValueList y, Indices y_indices, Pointers y_indptr, bool vanishes,
                      Matrix<T> out, ptrdiff_t begin, ptrdiff_t end, bool upper) {
    nb::gil_scoped_release release;
    const CsrArgument<T> a{x, x_indices, x_indptr}, b{y, y_indices, y_indptr};
    with_op<T>(op, numbers.data(), [&](auto o) {
      using Op = decltype(o);
      require(numbers.shape(0) >= size_t(Op::least_numbers), "too few numbers");
      const auto A = a.view(zero, n_features, Op::planes), B = b.view(zero, n_features, Op::planes);
      require_range(begin, end, b.rows());
      require(out.shape(0) == a.rows() && out.shape(1) == b.rows(), "out has the wrong shape");
      columns(o, A, B, vanishes, begin, end, out.data(), out.shape(0), out.shape(1), upper);
    });
  }, "op"_a, "numbers"_a, "zero"_a, "n_features"_a, "x"_a, "x_indices"_a, "x_indptr"_a, "y"_a, "y_indices"_a,
     "y_indptr"_a, "vanishes"_a, "out"_array, "begin"_a, "end"_a, "upper"_a);

  m.def("upper_sums", [](const std::string& op, Values numbers, Planes<T> planes, Vector<T> upper, ptrdiff_t begin,
                         ptrdiff_t end) {
    nb::gil_scoped_release release;
    with_op<T>(op, numbers.data(), [&](auto o) {
      using Op = decltype(o);
      const auto rows = dense_rows<T>(planes, Op::planes);
      const size_t n = planes[0].shape(0);
      require(numbers.shape(0) >= size_t(Op::least_numbers), "too few numbers");
      require_range(begin, end, n);
      require(upper.shape(0) == pairs_of(n), "upper has the wrong length");
      upper_sums(o, rows, ptrdiff_t(n), begin, end, upper.data());
    });
  }, "op"_a, "numbers"_a, "planes"_a, "upper"_array, "begin"_a, "end"_a);

  m.def("fold_upper", [](Matrix<const T> matrix, Vector<T> upper) {
    nb::gil_scoped_release release;
    require(matrix.shape(0) == matrix.shape(1), "matrix is not square");
    require(upper.shape(0) == pairs_of(matrix.shape(0)), "upper has the wrong length");
    fold_upper(matrix.data(), ptrdiff_t(matrix.shape(0)), upper.data());
  }, "matrix"_array, "upper"_array);

  m.def("unfold_upper", [](Values upper, Values diagonal, Matrix<T> out) {
    nb::gil_scoped_release release;
    const size_t n = diagonal.shape(0);
    require(out.shape(0) == n && out.shape(1) == n, "out has the wrong shape");
    require(upper.shape(0) == pairs_of(n), "upper has the wrong length");
    unfold_upper(upper.data(), diagonal.data(), ptrdiff_t(n), out.data());
  }, "upper"_array, "diagonal"_array, "out"_array);

  m.def("ranked", [](Values values, ptrdiff_t rank) {
    nb::gil_scoped_release release;
    require(0 <= rank && rank < ptrdiff_t(values.shape(0)), "rank is out of range");
    return ranked(values.data(), ptrdiff_t(values.shape(0)), rank);
  }, "values"_array, "rank"_a);

  m.def("mirror", [](Matrix<T> out, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    require(out.shape(0) == out.shape(1), "out is not square");
    require_range(begin, end, out.shape(0));
    mirror(out.data(), out.shape(0), out.shape(1), begin, end);
  }, "out"_array, "begin"_a, "end"_a);
}

// Rows of a symmetric matrix from `begin` on, of which `band` has the columns from `begin` on.
template <class S, class T> void define_spread(nb::module_& m) {
  m.def("spread", [](Matrix<const S> band, Matrix<T> out, ptrdiff_t begin) {
    nb::gil_scoped_release release;
    const ptrdiff_t n = out.shape(0);
    require(out.shape(1) == out.shape(0), "out is not square");
    require_range(begin, begin + ptrdiff_t(band.shape(0)), n);
    require(ptrdiff_t(band.shape(1)) == n - begin, "band has the wrong number of columns");
    spread(band.data(), band.shape(0), band.shape(1), out.data() + begin * n + begin, n);
  }, "band"_array, "out"_array, "begin"_a);
}

Candidates candidates(const Matrix<const float>& cross, const Vector<const float>& x_norms,
                      const Vector<const float>& y_norms, double support, double slack) {
  require(cross.shape(0) == x_norms.shape(0) && cross.shape(1) == y_norms.shape(0), "norms and cross differ");
  return {cross.data(), x_norms.data(), y_norms.data(), ptrdiff_t(cross.shape(1)), float(support), float(slack)};
}

template <class T> void define_neighbors(nb::module_& m) {
  using Norms = Vector<const float>;

  m.def("fill_dense", [](Matrix<const float> cross, Norms x_norms, Norms y_norms, double support, double slack,
                         Vector<const double> table, Matrix<const T> x, Matrix<const T> y, ptrdiff_t first_row,
                         Vector<int32_t> indices, Vector<T> values, Vector<int64_t> row_counts) {
    nb::gil_scoped_release release;
    const Candidates c = candidates(cross, x_norms, y_norms, support, slack);
    require(x.shape(1) == y.shape(1) && y.shape(0) == cross.shape(1), "x, y and cross differ");
    require_range(first_row, first_row + cross.shape(0), x.shape(0));
    require(row_counts.shape(0) == cross.shape(0), "row_counts has the wrong length");
    require(indices.shape(0) >= cross.size() && values.shape(0) >= cross.size(), "no room for the band");
    const DenseDistance<T> distance{x.data(), y.data(), ptrdiff_t(x.shape(1))};
    return fill<T>(c, distance, first_row, cross.shape(0), {table.data(), ptrdiff_t(table.shape(0)) / 4, support},
                   indices.data(), values.data(), row_counts.data());
  }, "cross"_a, "x_norms"_a, "y_norms"_a, "support"_a, "slack"_a, "table"_a, "x"_a, "y"_a, "first_row"_a,
     "indices"_a, "values"_a, "row_counts"_a);

  m.def("fill_csr", [](Matrix<const float> cross, Norms x_norms, Norms y_norms, double support, double slack,
                       Vector<const double> table, int n_features, Vector<const T> x, Vector<const int32_t> x_indices,
                       Vector<const int64_t> x_indptr, Vector<const T> y, Vector<const int32_t> y_indices,
                       Vector<const int64_t> y_indptr, ptrdiff_t first_row, Vector<int32_t> indices,
                       Vector<T> values, Vector<int64_t> row_counts) {
    nb::gil_scoped_release release;
    const Candidates c = candidates(cross, x_norms, y_norms, support, slack);
    CsrRows<T> a{}, b{};
    a.plane[0] = x.data(), a.indices = x_indices.data(), a.indptr = x_indptr.data(), a.columns = n_features;
    b.plane[0] = y.data(), b.indices = y_indices.data(), b.indptr = y_indptr.data(), b.columns = n_features;
    require(x.shape(0) == x_indices.shape(0) && y.shape(0) == y_indices.shape(0), "values and indices differ in length");
    require_pointers(x_indptr, x.shape(0), "indptr of x is out of range");
    require_pointers(y_indptr, y.shape(0), "indptr of y is out of range");
    require_range(first_row, first_row + cross.shape(0), x_indptr.shape(0) - 1);
    require(y_indptr.shape(0) == cross.shape(1) + 1, "y and cross differ");
    require(row_counts.shape(0) == cross.shape(0), "row_counts has the wrong length");
    require(indices.shape(0) >= cross.size() && values.shape(0) >= cross.size(), "no room for the band");
    return fill<T>(c, CsrDistance<T>{a, b}, first_row, cross.shape(0),
                   {table.data(), ptrdiff_t(table.shape(0)) / 4, support}, indices.data(), values.data(),
                   row_counts.data());
  }, "cross"_a, "x_norms"_a, "y_norms"_a, "support"_a, "slack"_a, "table"_a, "n_features"_a, "x"_a, "x_indices"_a,
     "x_indptr"_a, "y"_a, "y_indices"_a, "y_indptr"_a, "first_row"_a, "indices"_a, "values"_a, "row_counts"_a);
}

// The highest level that processor and system have what is compiled for: x86-64-v3 for "avx2", x86-64-v4 for "avx512".
// Asked by hand: the compilers' own __builtin_cpu_supports is a library function, which clang-cl does not link.
const char* highest_level() {
#if defined(__x86_64__)
  const auto all = [](unsigned value, unsigned wanted) { return (value & wanted) == wanted; };
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !all(c, bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C)) return "baseline";
  unsigned saved, high;  // registers that the system keeps when it switches between threads
  __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  const unsigned sse_and_avx = 6, masks_and_wide = 0xe0;
  if (!all(saved, sse_and_avx)) return "baseline";
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !all(b, bit_BMI | bit_AVX2 | bit_BMI2)) return "baseline";
  // Processors that have VBMI, too, do not slow down when they work on wide vectors.
  const unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  const bool avx512 = all(saved, masks_and_wide) && all(b, wide) && all(c, bit_AVX512VBMI);
  const unsigned lzcnt = 1 << 5;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !all(c, lzcnt)) return "baseline";
  return avx512 ? "avx512" : "avx2";
#else
  return "baseline";
#endif
}

}  // namespace
}  // namespace hilbin

NB_MODULE(HILBIN_MODULE, m) {
  using namespace hilbin;
  m.attr("level") = HILBIN_LEVEL;
  m.attr("compiler") = __VERSION__;
  m.attr("vector_bytes") = vector_bytes;
  m.attr("short_vector_bytes") = int(sizeof(Short<float>::V));
  m.attr("table_cells_per_octave") = 1 << Table<float>::cell_bits;
  m.def("highest_level", &highest_level);
  m.def("check_csr", &check_csr<int32_t>, "indices"_array, "indptr"_array, "columns"_a);
  m.def("check_csr", &check_csr<int64_t>, "indices"_array, "indptr"_array, "columns"_a);
  define_pairwise<float>(m, "panel_rows_float32");
  define_pairwise<double>(m, "panel_rows_float64");
  m.def("center_upper", [](Vector<double> upper, Vector<double> diagonal) {
    nb::gil_scoped_release release;
    require(upper.shape(0) == pairs_of(diagonal.shape(0)), "upper has the wrong length");
    center_upper(upper.data(), diagonal.data(), ptrdiff_t(diagonal.shape(0)));
  }, "upper"_array, "diagonal"_array);
  define_spread<float, float>(m);
  define_spread<float, double>(m);
  define_spread<double, float>(m);
  define_spread<double, double>(m);
  define_neighbors<float>(m);
  define_neighbors<double>(m);
  define_maps(m);
  define_icd(m);
  define_codes(m);
  define_vision(m);
  define_words(m);
  define_smo(m);
  define_boxes(m);
  define_pyramid(m);
}
