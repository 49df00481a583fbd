// Bindings of dual coordinate descent on look-up tables and Gram matrices. Every function is single-threaded and releases the GIL.
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <vector>

#include "descent.hpp"
#include "lines.hpp"
#include "lookup.hpp"
#include "rows_state.hpp"
#include "with_codes.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

enum { group_kind, group_cells, group_levels, group_level_stride, group_places, group_numbers };

// The look-up tables as Python describes them: a row of numbers for every group.
template <class F, class Codes>
Lookup<F, Codes> lookup(Codes codes, const Matrix<const int64_t>& groups, F* cells, const F* levels, const int64_t* places) {
  require(groups.shape(0) <= most_groups && groups.shape(1) == group_numbers, "wrong description of groups");
  Lookup<F, Codes> made{codes, int(groups.shape(0)), {}, {}};
  for (int g = 0; g < made.groups; ++g) {
    const int64_t* numbers = groups.data() + g * group_numbers;
    made.kind[g] = int(numbers[group_kind]);
    made.place[g] = {cells + numbers[group_cells], levels + numbers[group_levels], numbers[group_level_stride],
                     places + numbers[group_places]};
  }
  return made;
}

// One sweep of the descent. `made(given..., memory)` is the state that has its numbers in this memory.
template <class F, class... Given, class Make, class... Names>
void define_sweep(nb::module_& m, const char* name, Make made, Names... names) {
  m.def(name, [made](Given... given, Vector<F> memory, Matrix<double> samples, Vector<int32_t> order, int64_t active,
                     double above, double below, double epsilon, double constant, Vector<double> totals, Vector<uint64_t> random) {
    nb::gil_scoped_release release;
    require(samples.shape(1) * sizeof(double) == sizeof(Sample) && order.shape(0) == samples.shape(0), "samples have the wrong shape");
    require(0 <= active && active <= int64_t(order.shape(0)), "active is out of range");
    require(totals.shape(0) * sizeof(double) == sizeof(Totals) && random.shape(0) == 1, "totals or random have the wrong size");
    const auto state = made(given..., memory.data(), memory.shape(0), samples.shape(0));
    Random generator{random.data()[0]};
    const Sweep done = sweep(state, reinterpret_cast<Sample*>(samples.data()), order.data(), active, above, below, epsilon,
                             constant, *reinterpret_cast<Totals*>(totals.data()), generator);
    random.data()[0] = generator.state;
    return std::tuple{done.active, done.highest, done.lowest, done.missing};
  }, names..., "memory"_array, "samples"_array, "order"_array, "active"_a, "above"_a, "below"_a, "epsilon"_a, "constant"_a,
     "totals"_array, "random"_array);
}

// One sweep of Crammer and Singer's problem, with a row of memory for every class.
template <class F, class... Given, class Make, class... Names>
void define_sweep_classes(nb::module_& m, const char* name, Make made, Names... names) {
  m.def(name, [made](Given... given, Matrix<F> memory, Vector<const double> most, Vector<const double> curvature,
                     Vector<const int64_t> labels, Matrix<double> coefs, Vector<int32_t> order, int64_t active, double above,
                     double constant, Vector<double> offsets, Vector<uint64_t> random) {
    nb::gil_scoped_release release;
    const size_t rows = coefs.shape(0), classes = coefs.shape(1);
    require(memory.shape(0) == classes && offsets.shape(0) == classes, "wrong number of classes");
    require(most.shape(0) == rows && curvature.shape(0) == rows && labels.shape(0) == rows && order.shape(0) == rows,
            "the arrays differ in length");
    require(0 <= active && active <= int64_t(rows) && random.shape(0) == 1, "active is out of range");
    std::vector<decltype(made(given..., memory.data(), rows, rows))> states;
    for (size_t k = 0; k < classes; ++k)
      states.push_back(made(given..., memory.data() + k * memory.shape(1), memory.shape(1), rows));
    std::vector<MultiSample> samples;
    for (size_t i = 0; i < rows; ++i) samples.push_back({most.data()[i], curvature.data()[i], labels.data()[i]});
    Random generator{random.data()[0]};
    const Sweep done = sweep_classes(states.data(), int(classes), samples.data(), coefs.data(), order.data(), active, above,
                                     constant, offsets.data(), generator);
    random.data()[0] = generator.state;
    return std::tuple{done.active, done.highest, done.lowest, done.missing};
  }, names..., "memory"_array, "most"_array, "curvature"_array, "labels"_array, "coefs"_array, "order"_array, "active"_a,
     "above"_a, "constant"_a, "offsets"_array, "random"_array);
}

// Adds rows times coefficients to the memory of a state.
template <class F, class... Given, class Make, class... Names>
void define_add(nb::module_& m, const char* name, Make made, Names... names) {
  m.def(name, [made](Given... given, Vector<F> memory, Vector<const double> coefficients) {
    nb::gil_scoped_release release;
    const auto state = made(given..., memory.data(), memory.shape(0), coefficients.shape(0));
    for (size_t i = 0; i < coefficients.shape(0); ++i)
      if (coefficients.data()[i] != 0) state.update(ptrdiff_t(i), coefficients.data()[i]);
  }, names..., "memory"_array, "coefficients"_array);
}

template <class F> void define_gram(nb::module_& m) {
  using Gram = Matrix<const F>;
  auto made = [](const Gram& gram, F* scores, size_t size, size_t rows) {
    require(gram.shape(0) == gram.shape(1) && gram.shape(0) == rows && size == rows, "gram has the wrong shape");
    return GramState<F>{gram.data(), scores, ptrdiff_t(rows)};
  };
  define_sweep<F, Gram>(m, "sweep_gram", made, "gram"_array);
  define_sweep_classes<F, Gram>(m, "sweep_classes_gram", made, "gram"_array);
}

template <class F, class Index> void define_sparse_gram(nb::module_& m) {
  using Values = Vector<const F>;
  using Columns = Vector<const int32_t>;
  using Indptr = Vector<const Index>;
  auto made = [](const Values& values, const Columns& columns, const Indptr& indptr, F* scores, size_t size, size_t rows) {
    require(indptr.shape(0) == rows + 1 && size == rows, "gram has the wrong shape");
    require_pointers(indptr, std::min(values.shape(0), columns.shape(0)), "indptr of gram is out of range");
    return SparseGramState<F, Index>{values.data(), columns.data(), indptr.data(), scores};
  };
  define_sweep<F, Values, Columns, Indptr>(m, "sweep_sparse_gram", made, "values"_array, "columns"_array, "indptr"_array);
  define_sweep_classes<F, Values, Columns, Indptr>(m, "sweep_classes_sparse_gram", made, "values"_array, "columns"_array, "indptr"_array);
}

void define_cached_gram(nb::module_& m) {
  using Cache = Matrix<const float>;
  using Slots = Vector<const int32_t>;
  using Stamps = Vector<int64_t>;
  auto made = [](const Cache& cache, const Slots& slots, const Stamps& stamps, const Stamps& clock, double* scores, size_t size, size_t rows) {
    require(size == rows, "there is a score for every row");
    require_cache(cache, slots, stamps, clock, rows);
    return CachedGramState<float>{cache.data(), slots.data(), stamps.data(), clock.data(), scores, ptrdiff_t(rows)};
  };
  define_sweep<double, Cache, Slots, Stamps, Stamps>(m, "sweep_cached_gram", made, "cache"_array, "slots"_array, "stamps"_array, "clock"_array);
}

// Sweeps over the rows of a linear model, whose weights are the memory.
template <class R, class F> void define_rows(nb::module_& m) {
  using Rows = Matrix<const R>;
  define_sweep<F, Rows>(m, "sweep_rows", [](const Rows& rows, F* weights, size_t size, size_t n) {
    require(rows.shape(0) == n && rows.shape(1) == size, "rows have the wrong shape");
    return RowsState<R, F>{rows.data(), weights, ptrdiff_t(size)};
  }, "rows"_array);
}

template <class R, class F, class Index> void define_sparse_rows(nb::module_& m) {
  using Values = Vector<const R>;
  using Columns = Vector<const int32_t>;
  using Indptr = Vector<const Index>;
  auto made = [](const Values& values, const Columns& columns, const Indptr& indptr, F* weights, size_t, size_t n) {
    require(indptr.shape(0) == n + 1, "rows have the wrong shape");
    require_pointers(indptr, std::min(values.shape(0), columns.shape(0)), "indptr of rows is out of range");
    return SparseRowsState<R, F, Index>{values.data(), columns.data(), indptr.data(), weights};
  };
  define_sweep<F, Values, Columns, Indptr>(m, "sweep_sparse_rows", made, "values"_array, "columns"_array, "indptr"_array);
  define_add<F, Values, Columns, Indptr>(m, "add_sparse_rows", made, "values"_array, "columns"_array, "indptr"_array);
  m.def("score_sparse_rows", [made](Values values, Columns columns, Indptr indptr, Vector<F> weights, Vector<F> out) {
    nb::gil_scoped_release release;
    const auto state = made(values, columns, indptr, weights.data(), weights.shape(0), out.shape(0));
    for (size_t i = 0; i < out.shape(0); ++i) out.data()[i] = F(state.score(ptrdiff_t(i)));
  }, "values"_array, "columns"_array, "indptr"_array, "weights"_array, "out"_array);

  // Scores with a constant part, and out += the sum of the rows times their curvatures and scores: a row is read once.
  m.def("curve_sparse_rows", [made](Values values, Columns columns, Indptr indptr, Vector<F> weights, double constant,
                                    Vector<const F> curvatures, Vector<F> scores, Vector<F> out) {
    nb::gil_scoped_release release;
    require(curvatures.shape(0) == scores.shape(0) && out.shape(0) == weights.shape(0), "the arrays differ in length");
    const auto state = made(values, columns, indptr, weights.data(), weights.shape(0), scores.shape(0));
    const SparseRowsState<R, F, Index> sum{values.data(), columns.data(), indptr.data(), out.data()};
    for (size_t i = 0; i < scores.shape(0); ++i) {
      scores.data()[i] = F(state.score(ptrdiff_t(i)) + constant);
      sum.update(ptrdiff_t(i), curvatures.data()[i] * scores.data()[i]);
    }
  }, "values"_array, "columns"_array, "indptr"_array, "weights"_array, "constant"_a, "curvatures"_array, "scores"_array, "out"_array);
}

// The sums of the squares of rows.
template <class R, class Index> void define_sparse_norms(nb::module_& m) {
  m.def("sparse_norms", [](Vector<const R> values, Vector<const Index> indptr, Vector<double> out) {
    nb::gil_scoped_release release;
    require(indptr.shape(0) == out.shape(0) + 1, "out has the wrong length");
    require_pointers(indptr, values.shape(0), "indptr of rows is out of range");
    for (size_t i = 0; i < out.shape(0); ++i) {
      double sum = 0;
      for (Index p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p) sum += double(values.data()[p]) * double(values.data()[p]);
      out.data()[i] = sum;
    }
  }, "values"_array, "indptr"_array, "out"_array);
}

// Weights of sparse rows are doubles: look-ups of single numbers are no faster in float.
template <class R> void define_linear(nb::module_& m) {
  define_rows<R, double>(m);
  define_sparse_rows<R, double, int32_t>(m);
  define_sparse_rows<R, double, int64_t>(m);
  define_sparse_norms<R, int32_t>(m);
  define_sparse_norms<R, int64_t>(m);
}

// Sweeps over look-up tables. `rows(codes, second, groups, number of rows)` are the ranks of rows.
template <class F, class Codes, class Rows, class... Names>
void define_lookup(nb::module_& m, const char* const (&names)[3], Rows rows, Names... arguments) {
  using Groups = Matrix<const int64_t>;
  using Levels = Vector<const F>;
  auto made = [rows](const Codes& codes, const Int64s& second, const Groups& groups, const Levels& levels, const Int64s& places,
                     F* cells, size_t, size_t n) {
    return lookup<F>(rows(codes, second, groups.shape(0), n), groups, cells, levels.data(), places.data());
  };
  define_sweep<F, Codes, Int64s, Groups, Levels, Int64s>(m, names[0], made, arguments..., "groups"_array, "levels"_array, "places"_array);
  define_sweep_classes<F, Codes, Int64s, Groups, Levels, Int64s>(m, names[1], made, arguments..., "groups"_array, "levels"_array, "places"_array);
  define_add<F, Codes, Int64s, Groups, Levels, Int64s>(m, names[2], made, arguments..., "groups"_array, "levels"_array, "places"_array);
}

template <class F, class Code> void define_dense(nb::module_& m) {
  auto rows = [](const Matrix<const Code>& codes, const Int64s& first, size_t groups, size_t n) {
    require(codes.shape(0) == n && first.shape(0) == groups + 1, "codes have the wrong shape");
    return DenseCodes<Code>{codes.data(), ptrdiff_t(codes.shape(1)), first.data()};
  };
  define_lookup<F, Matrix<const Code>>(m, {"sweep_dense", "sweep_classes_dense", "add_dense"}, rows, "codes"_array, "first"_array);
}

template <class F, class Entry> void define_sparse(nb::module_& m) {
  auto rows = [](const Vector<const Entry>& entries, const Int64s& indptr, size_t groups, size_t n) {
    require(indptr.shape(0) == n * groups + 1, "indptr has the wrong length");
    require_pointers(indptr, entries.shape(0), "indptr is out of range");
    return SparseCodes<Entry>{entries.data(), indptr.data(), int(groups)};
  };
  define_lookup<F, Vector<const Entry>>(m, {"sweep_sparse", "sweep_classes_sparse", "add_sparse"}, rows, "entries"_array, "indptr"_array);
}

// The place of every feature in the tables: a slot of its group, or slot -1 for none.
struct Slots {
  const int32_t *slot, *group;
  ptrdiff_t features;
  int groups;
};

// Entries of codes, slot and code in one number, every row in the order of groups. No branch: what is left out, codes 0 and
// features without a slot, is written over, so that `out` has room for one entry more.
template <class Code, class Entry> void pack(SparseMatrix<Code> codes, ptrdiff_t rows, Slots at, Entry* out, int64_t* indptr) {
  int64_t free = 0;
  for (ptrdiff_t i = 0; i < rows; ++i) {
    const auto row = codes.row(i);
    for (int g = 0; g < at.groups; ++g) {
      *indptr++ = free;
      for (ptrdiff_t k = 0; k < row.size; ++k) {
        const ptrdiff_t j = row.feature(k);
        out[free] = Entry(at.slot[j]) << SparsePart<Entry>::bits | Entry(row.codes[k]);
        free += row.codes[k] != 0 && at.slot[j] >= 0 && at.group[j] == g;
      }
    }
  }
  *indptr = free;
}
template <class Code, class Entry> void pack(DenseMatrix<Code> codes, ptrdiff_t rows, Slots at, Entry* out, int64_t* indptr) {
  std::vector<std::vector<std::pair<int32_t, Entry>>> features(static_cast<size_t>(at.groups));  // and their slots
  for (ptrdiff_t j = 0; j < at.features; ++j)
    if (at.slot[j] >= 0) features[size_t(at.group[j])].emplace_back(int32_t(j), Entry(at.slot[j]) << SparsePart<Entry>::bits);
  int64_t free = 0;
  for (ptrdiff_t i = 0; i < rows; ++i) {
    const auto row = codes.row(i);
    for (const auto& group : features) {
      *indptr++ = free;
      for (const auto& [j, slot] : group) {
        out[free] = slot | Entry(row.codes[j]);
        free += row.codes[j] != 0;
      }
    }
  }
  *indptr = free;
}

// Rows as the tables of several groups want them; `indptr_out` has the beginning of every group of every row.
template <class Code, class Entry> void define_packing(nb::module_& m) {
  m.def("pack_entries", [](Vector<const Code> codes, Vector<const int32_t> indices, Int64s indptr, Vector<const int32_t> slots,
                           Vector<const int32_t> group, int groups, Vector<Entry> out, Vector<int64_t> indptr_out) {
    nb::gil_scoped_release release;
    require(groups >= 1, "wrong number of groups");
    const ptrdiff_t rows = (ptrdiff_t(indptr_out.shape(0)) - 1) / groups;
    require(groups >= 1 && groups <= most_groups && ptrdiff_t(indptr_out.shape(0)) == rows * groups + 1, "wrong number of groups");
    require(slots.shape(0) == group.shape(0), "slots and groups differ in length");
    require_below(group.data(), group.shape(0), uint64_t(groups), "a group is out of range");
    require(uint64_t(std::count(codes.data(), codes.data() + codes.shape(0), Code(0))) + out.shape(0) > codes.shape(0), "out is too short");
    with_codes(codes, indices, indptr, ptrdiff_t(slots.shape(0)), 0, rows, [&](auto matrix) {
      pack(matrix, rows, Slots{slots.data(), group.data(), ptrdiff_t(slots.shape(0)), groups}, out.data(), indptr_out.data());
    });
  }, "codes"_array, "indices"_array, "indptr"_array, "slots"_array, "group"_array, "groups"_a, "out"_array, "indptr_out"_array);
}

template <class F> void define_all(nb::module_& m) {
  define_gram<F>(m);
  define_sparse_gram<F, int32_t>(m);
  define_sparse_gram<F, int64_t>(m);
  define_dense<F, uint8_t>(m);
  define_dense<F, uint16_t>(m);
  define_dense<F, uint32_t>(m);
  define_sparse<F, uint32_t>(m);
  define_sparse<F, uint64_t>(m);
}

void define_problem(nb::module_& m) {
  using Doubles = Vector<const double>;
  auto columns = [](const Doubles& linear, const Doubles& low, const Doubles& high, const Doubles& diagonal, size_t rows) {
    require(linear.shape(0) == rows && low.shape(0) == rows && high.shape(0) == rows && diagonal.shape(0) == rows,
            "the arrays differ in length");
    return Columns{linear.data(), low.data(), high.data(), diagonal.data(), rows};
  };
  m.def("pack_samples", [columns](Doubles linear, Doubles low, Doubles high, Doubles diagonal, Doubles norms, double constant,
                                  Doubles start, Matrix<double> out) {
    nb::gil_scoped_release release;
    require(out.shape(1) * sizeof(double) == sizeof(Sample) && out.shape(0) == norms.shape(0), "out has the wrong shape");
    require(start.shape(0) == 0 || start.shape(0) == norms.shape(0), "start has the wrong length");
    columns(linear, low, high, diagonal, norms.shape(0))
        .pack(norms.data(), constant, start.shape(0) ? start.data() : nullptr, reinterpret_cast<Sample*>(out.data()));
  }, "linear"_array, "low"_array, "high"_array, "diagonal"_array, "norms"_array, "constant"_a, "start"_array, "out"_array);
  m.def("losses", [columns](Doubles linear, Doubles low, Doubles high, Doubles diagonal, Doubles scores, double epsilon, Vector<double> out) {
    nb::gil_scoped_release release;
    require(out.shape(0) == scores.shape(0), "out has the wrong length");
    columns(linear, low, high, diagonal, scores.shape(0)).losses(scores.data(), epsilon, out.data());
  }, "linear"_array, "low"_array, "high"_array, "diagonal"_array, "scores"_array, "epsilon"_a, "out"_array);
}

template <class T> void define_lines(nb::module_& m) {
  using Scores = Matrix<const T>;
  m.def("hinge_lines", [](Scores old_scores, Scores new_scores, Scores targets, Vector<const double> weights,
                          Matrix<const double> steps, bool squared, Matrix<double> values) {
    nb::gil_scoped_release release;
    const size_t rows = targets.shape(0), tasks = targets.shape(1), count = steps.shape(1);
    for (const Scores* scores : {&old_scores, &new_scores})
      require(scores->shape(0) == rows && scores->shape(1) == tasks, "scores and targets differ in shape");
    require(weights.shape(0) == rows && steps.shape(0) == tasks, "weights or steps have the wrong length");
    require(values.shape(0) == tasks && values.shape(1) == count, "values have the wrong shape");
    HingeLines<T>{old_scores.data(), new_scores.data(), targets.data(), weights.data(), ptrdiff_t(rows), ptrdiff_t(tasks), squared}
        .add(steps.data(), ptrdiff_t(count), values.data());
  }, "old_scores"_array, "new_scores"_array, "targets"_array, "weights"_array, "steps"_array, "squared"_a, "values"_array);
}

}  // namespace

void define_icd(nb::module_& m) {
  define_lines<float>(m);
  define_lines<double>(m);
  define_problem(m);
  define_cached_gram(m);
  define_rows<float, float>(m);
  define_linear<float>(m);
  define_linear<double>(m);
  define_all<float>(m);
  define_all<double>(m);
  define_packing<uint8_t, uint32_t>(m);
  define_packing<uint8_t, uint64_t>(m);
  define_packing<uint16_t, uint64_t>(m);
  define_packing<uint32_t, uint64_t>(m);
}

}  // namespace hilbin
