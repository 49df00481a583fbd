// Bindings of the decomposition solver. Every function is single-threaded and releases the GIL.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings.hpp"
#include "smo.hpp"
#include "smo_sparse.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

using Doubles = Vector<const double>;
enum { state_coef, state_gradient, state_up, state_down, state_low, state_high, state_diagonal, state_numbers };
using Report = std::tuple<int64_t, double, int64_t>;

Machine machine(const Matrix<double>& state, double epsilon) {
  require(state.shape(0) == state_numbers, "state has the wrong shape");
  const ptrdiff_t n = state.shape(1);
  double* at = state.data();
  const Machine m{n,           at + state_coef * n,     at + state_gradient * n, at + state_up * n,
                  at + state_down * n, at + state_low * n, at + state_high * n,     at + state_diagonal * n, epsilon};
  for (ptrdiff_t i = 0; i < n; ++i) m.refresh(i);
  return m;
}

Report report(const Steps& steps) { return {steps.done, steps.violation, steps.missing}; }

template <class T> void define_dense(nb::module_& m) {
  auto part = [](const Matrix<const T>& gram, const Vector<const int32_t>& which, const Matrix<T>& copies, const Vector<uint8_t>& copied) {
    const size_t n = which.shape(0);
    require(copies.shape(0) == n && copies.shape(1) == n && copied.shape(0) == n, "copies have the wrong shape");
    for (size_t i = 0; i < n; ++i) require(0 <= which.data()[i] && which.data()[i] < int64_t(gram.shape(0)), "a row is out of range");
    return PartRows<T>{gram.data(), ptrdiff_t(gram.shape(1)), which.data(), ptrdiff_t(n), copies.data(), copied.data()};
  };

  m.def("smo_dense", [](Matrix<const T> gram, Matrix<double> state, double epsilon, int64_t most, double tol) {
    nb::gil_scoped_release release;
    require(gram.shape(0) == gram.shape(1) && gram.shape(0) == state.shape(1), "gram has the wrong shape");
    return report(descend(machine(state, epsilon), DenseRows<T>{gram.data(), ptrdiff_t(gram.shape(1)), nullptr, nullptr, nullptr}, most, tol));
  }, "gram"_array, "state"_array, "epsilon"_a, "most"_a, "tol"_a);

  m.def("smo_cached", [](Matrix<const T> cache, Vector<const int32_t> slots, Vector<int64_t> stamps, Vector<int64_t> clock,
                         Matrix<double> state, double epsilon, int64_t most, double tol) {
    nb::gil_scoped_release release;
    require(cache.shape(1) == state.shape(1) && slots.shape(0) == state.shape(1), "the cache has the wrong shape");
    require(stamps.shape(0) == cache.shape(0) && clock.shape(0) == 1, "there is a stamp for every row of the cache");
    for (size_t i = 0; i < slots.shape(0); ++i) require(slots.data()[i] < int64_t(cache.shape(0)), "a slot is out of range");
    return report(descend(machine(state, epsilon),
                          DenseRows<T>{cache.data(), ptrdiff_t(cache.shape(1)), slots.data(), stamps.data(), clock.data()}, most, tol));
  }, "cache"_array, "slots"_array, "stamps"_array, "clock"_array, "state"_array, "epsilon"_a, "most"_a, "tol"_a);

  // out += coefficients' rows: in float64, a few rows at a time.
  m.def("add_rows", [](Matrix<const T> rows, Doubles coefficients, Vector<double> out) {
    nb::gil_scoped_release release;
    require(rows.shape(0) == coefficients.shape(0) && rows.shape(1) == out.shape(0), "rows have the wrong shape");
    add_rows(rows.data(), ptrdiff_t(rows.shape(0)), ptrdiff_t(rows.shape(1)), coefficients.data(), out.data());
  }, "rows"_array, "coefficients"_array, "out"_array);

  // The part of the rows and columns `which`, whose copies are made as they are needed, or of `needed` at once.
  m.def("smo_part", [part](Matrix<const T> gram, Vector<const int32_t> which, Matrix<T> copies, Vector<uint8_t> copied,
                           Matrix<double> state, double epsilon, int64_t most, double tol) {
    nb::gil_scoped_release release;
    require(which.shape(0) == state.shape(1), "state has the wrong shape");
    return report(descend(machine(state, epsilon), part(gram, which, copies, copied), most, tol));
  }, "gram"_array, "which"_array, "copies"_array, "copied"_array, "state"_array, "epsilon"_a, "most"_a, "tol"_a);

  m.def("copy_part", [part](Matrix<const T> gram, Vector<const int32_t> which, Matrix<T> copies, Vector<uint8_t> copied,
                            Vector<const bool> needed) {
    nb::gil_scoped_release release;
    require(needed.shape(0) == which.shape(0), "needed has the wrong length");
    const PartRows<T> rows = part(gram, which, copies, copied);
    for (ptrdiff_t i = 0; i < rows.rows; ++i)
      if (needed.data()[i]) rows.row(i);
  }, "gram"_array, "which"_array, "copies"_array, "copied"_array, "needed"_array);
}

template <class T, class Index> void define_sparse(nb::module_& m) {
  m.def("smo_sparse", [](Vector<const T> values, Vector<const int32_t> columns, Vector<const Index> indptr, Matrix<double> state,
                         double epsilon, int64_t most, double tol) {
    nb::gil_scoped_release release;
    const size_t n = state.shape(1);
    require(indptr.shape(0) == n + 1 && values.shape(0) == columns.shape(0) && int64_t(indptr.data()[n]) <= int64_t(values.shape(0)),
            "gram has the wrong shape");
    return report(descend_sparse(machine(state, epsilon), SparseRows<T, Index>{values.data(), columns.data(), indptr.data()}, most, tol));
  }, "values"_array, "columns"_array, "indptr"_array, "state"_array, "epsilon"_a, "most"_a, "tol"_a);

  m.def("add_sparse_rows", [](Vector<const T> values, Vector<const int32_t> columns, Vector<const Index> indptr,
                              Doubles coefficients, Vector<double> out) {
    nb::gil_scoped_release release;
    const size_t n = coefficients.shape(0);
    require(indptr.shape(0) == n + 1 && out.shape(0) == n, "gram has the wrong shape");
    const SparseRows<T, Index> rows{values.data(), columns.data(), indptr.data()};
    for (size_t i = 0; i < n; ++i)
      if (coefficients.data()[i] != 0) rows.add(out.data(), ptrdiff_t(i), coefficients.data()[i]);
  }, "values"_array, "columns"_array, "indptr"_array, "coefficients"_array, "out"_array);

  // Single entries, columns ascending in every row: SciPy walks through whole rows for them.
  m.def("sparse_entries", [](Vector<const T> values, Vector<const int32_t> columns, Vector<const Index> indptr,
                             Vector<const int64_t> at, Vector<const int64_t> across, Vector<T> out) {
    nb::gil_scoped_release release;
    require(at.shape(0) == across.shape(0) && at.shape(0) == out.shape(0), "places have the wrong length");
    const SparseRows<T, Index> rows{values.data(), columns.data(), indptr.data()};
    for (size_t k = 0; k < at.shape(0); ++k) {
      require(0 <= at.data()[k] && at.data()[k] + 1 < int64_t(indptr.shape(0)), "a row is out of range");
      out.data()[k] = T(rows.at(at.data()[k], across.data()[k]));
    }
  }, "values"_array, "columns"_array, "indptr"_array, "at"_array, "across"_array, "out"_array);
}

}  // namespace

void define_smo(nb::module_& m) {
  define_dense<float>(m);
  define_dense<double>(m);
  define_sparse<float, int32_t>(m);
  define_sparse<float, int64_t>(m);
  define_sparse<double, int32_t>(m);
  define_sparse<double, int64_t>(m);
}

}  // namespace hilbin
