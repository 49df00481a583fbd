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
// Steps with the rows that `made(given..., number of rows)` makes. `slopes` is scratch, kept from call to call.
template <class... Given, class Make, class... Names>
void define_steps(nb::module_& m, const char* name, Make made, Names... names) {
  m.def(name, [made](Given... given, Vector<double> coef, Vector<double> gradient, Doubles low, Doubles high, Doubles diagonal,
                     Matrix<float> slopes, double epsilon, int64_t most, double tol) {
    nb::gil_scoped_release release;
    const size_t n = coef.shape(0);
    for (size_t length : {gradient.shape(0), low.shape(0), high.shape(0), diagonal.shape(0)}) require(length == n, "the arrays differ in length");
    require(slopes.shape(0) == 2 && slopes.shape(1) == n, "slopes have the wrong shape");
    const Machine machine{ptrdiff_t(n), coef.data(), gradient.data(), slopes.data(), slopes.data() + n, low.data(), high.data(), diagonal.data(), epsilon};
    for (size_t i = 0; i < n; ++i) machine.refresh(ptrdiff_t(i));
    const Steps steps = descend(machine, made(given..., n), most, tol);
    return std::tuple{steps.done, steps.violation, int64_t(steps.missing)};
  }, names..., "coef"_array, "gradient"_array, "low"_array, "high"_array, "diagonal"_array, "slopes"_array, "epsilon"_a, "most"_a, "tol"_a);
}

template <class T> void define_dense(nb::module_& m) {
  using Gram = Matrix<const T>;
  using Numbers = Vector<const int32_t>;
  auto part = [](const Gram& gram, const Numbers& which, const Matrix<T>& copies, const Vector<uint8_t>& copied, size_t n) {
    require(which.shape(0) == n && copies.shape(0) == n && copies.shape(1) == n && copied.shape(0) == n, "copies have the wrong shape");
    for (size_t i = 0; i < n; ++i) require(0 <= which.data()[i] && which.data()[i] < int64_t(gram.shape(0)), "a row is out of range");
    return PartRows<T>{gram.data(), ptrdiff_t(gram.shape(1)), which.data(), ptrdiff_t(n), copies.data(), copied.data()};
  };

  define_steps<Gram>(m, "smo_gram", [](const Gram& gram, size_t n) {
    require(gram.shape(0) == n && gram.shape(1) == n, "gram has the wrong shape");
    return WholeRows<T>{gram.data(), ptrdiff_t(n)};
  }, "gram"_array);

  // The part of the rows and columns `which`, whose copies are made as they are needed, or of `needed` at once.
  define_steps<Gram, Numbers, Matrix<T>, Vector<uint8_t>>(m, "smo_part", part, "gram"_array, "which"_array, "copies"_array, "copied"_array);

  m.def("copy_part", [part](Gram gram, Numbers which, Matrix<T> copies, Vector<uint8_t> copied, Vector<const bool> needed) {
    nb::gil_scoped_release release;
    require(needed.shape(0) == which.shape(0), "needed has the wrong length");
    const PartRows<T> rows = part(gram, which, copies, copied, which.shape(0));
    for (ptrdiff_t i = 0; i < rows.rows; ++i)
      if (needed.data()[i]) rows.row(i);
  }, "gram"_array, "which"_array, "copies"_array, "copied"_array, "needed"_array);

  // The blocks from `begin` to `end`.
  m.def("smo_blocks", [](Gram gram, Numbers which, Vector<const int64_t> offsets, Vector<const int64_t> limits, Vector<double> coef,
                         Vector<double> gradient, Vector<double> products, Doubles low, Doubles high, Vector<int64_t> steps,
                         Vector<double> violations, double epsilon, double tol, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    const size_t n = which.shape(0), blocks = limits.shape(0);
    require(gram.shape(0) == gram.shape(1), "gram is not square");
    require_below(which.data(), n, gram.shape(0), "a row is out of range");
    require(offsets.shape(0) == blocks + 1, "offsets have the wrong length");
    require_pointers(offsets, n, "offsets are out of range");
    const bool summed = products.shape(0) != 0;  // or nobody wants the products
    for (size_t length : {coef.shape(0), gradient.shape(0), summed ? products.shape(0) : n, low.shape(0), high.shape(0)}) require(length == n, "the arrays differ in length");
    require(steps.shape(0) == blocks && violations.shape(0) == blocks, "there is a number for every block");
    require_range(begin, end, blocks);
    const Blocks<T> all{gram.data(), ptrdiff_t(gram.shape(1)), which.data(), offsets.data(), limits.data(), coef.data(),
                        gradient.data(), summed ? products.data() : nullptr, low.data(), high.data(), epsilon};
    all.solve(begin, end, tol, steps.data(), violations.data());
  }, "gram"_array, "which"_array, "offsets"_array, "limits"_array, "coef"_array, "gradient"_array, "products"_array, "low"_array,
     "high"_array, "steps"_array, "violations"_array, "epsilon"_a, "tol"_a, "begin"_a, "end"_a);

  // The first entry of some rows that is larger than their norms allow, as (row, column), or (-1, -1).
  m.def("first_beyond", [](Gram gram, Vector<const int64_t> which, Doubles norms, double tolerance) {
    nb::gil_scoped_release release;
    const ptrdiff_t n = ptrdiff_t(gram.shape(1));
    require(gram.shape(0) == gram.shape(1) && norms.shape(0) == gram.shape(1), "norms have the wrong length");
    require_below(which.data(), which.shape(0), gram.shape(0), "a row is out of range");
    for (size_t k = 0; k < which.shape(0); ++k) {
      const int64_t i = which.data()[k];
      const ptrdiff_t j = first_beyond(gram.data() + i * n, n, norms.data()[i], norms.data(), tolerance);
      if (j >= 0) return std::tuple{i, int64_t(j)};
    }
    return std::tuple{int64_t(-1), int64_t(-1)};
  }, "gram"_array, "which"_array, "norms"_array, "tolerance"_a);

  // out += coefficients' rows: in float64, a few rows at a time.
  m.def("add_gram", [](Gram rows, Doubles coefficients, Vector<double> out) {
    nb::gil_scoped_release release;
    require(rows.shape(0) == coefficients.shape(0) && rows.shape(1) == out.shape(0), "rows have the wrong shape");
    add_rows(rows.data(), ptrdiff_t(rows.shape(0)), ptrdiff_t(rows.shape(1)), coefficients.data(), out.data());
  }, "gram"_array, "coefficients"_array, "out"_array);
}

void define_cached(nb::module_& m) {
  using Cache = Matrix<const float>;
  using Slots = Vector<const int32_t>;
  using Stamps = Vector<int64_t>;
  define_steps<Cache, Slots, Stamps, Stamps>(m, "smo_cached_gram", [](const Cache& cache, const Slots& slots, const Stamps& stamps, const Stamps& clock, size_t n) {
    require_cache(cache, slots, stamps, clock, n);
    return CachedRows<float>{cache.data(), ptrdiff_t(n), slots.data(), stamps.data(), clock.data()};
  }, "cache"_array, "slots"_array, "stamps"_array, "clock"_array);
}

template <class T, class Index> void define_sparse(nb::module_& m) {
  using Values = Vector<const T>;
  using Columns = Vector<const int32_t>;
  using Indptr = Vector<const Index>;
  auto made = [](const Values& values, const Columns& columns, const Indptr& indptr, size_t n) {
    require(indptr.shape(0) == n + 1 && values.shape(0) == columns.shape(0), "gram has the wrong shape");
    require_pointers(indptr, values.shape(0), "indptr of gram is out of range");
    return SparseRows<T, Index>{values.data(), columns.data(), indptr.data()};
  };
  define_steps<Values, Columns, Indptr>(m, "smo_sparse_gram", made, "values"_array, "columns"_array, "indptr"_array);

  m.def("add_sparse_gram", [made](Values values, Columns columns, Indptr indptr, Doubles coefficients, Vector<double> out) {
    nb::gil_scoped_release release;
    const size_t n = coefficients.shape(0);
    require(out.shape(0) == n, "out has the wrong length");
    const SparseRows<T, Index> rows = made(values, columns, indptr, n);
    for (size_t i = 0; i < n; ++i)
      if (coefficients.data()[i] != 0) rows.add(out.data(), ptrdiff_t(i), coefficients.data()[i]);
  }, "values"_array, "columns"_array, "indptr"_array, "coefficients"_array, "out"_array);

  // Single entries, columns ascending in every row: SciPy walks through whole rows for them.
  m.def("sparse_entries", [](Values values, Columns columns, Indptr indptr, Vector<const int64_t> at,
                             Vector<const int64_t> across, Vector<T> out) {
    nb::gil_scoped_release release;
    require(at.shape(0) == across.shape(0) && at.shape(0) == out.shape(0), "places have the wrong length");
    require_pointers(indptr, values.shape(0), "indptr of gram is out of range");
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
  define_cached(m);
  define_sparse<float, int32_t>(m);
  define_sparse<float, int64_t>(m);
  define_sparse<double, int32_t>(m);
  define_sparse<double, int64_t>(m);
}

}  // namespace hilbin
