// Bindings of the dual solvers on tables and Gram matrices. Every function is single-threaded and releases the GIL.
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <vector>

#include "descent.hpp"
#include "tables.hpp"
#include "with_codes.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

using Doubles = Vector<const double>;

enum { group_kind, group_cells, group_levels, group_level_stride, group_places, group_numbers };

// The tables as Python describes them: a row of numbers for every group.
template <class F, class Codes>
Tables<F, Codes> tables(Codes codes, const Matrix<const int64_t>& groups, F* cells, const F* levels, const int64_t* places) {
  require(groups.shape(0) <= most_groups && groups.shape(1) == group_numbers, "wrong description of groups");
  Tables<F, Codes> made{codes, int(groups.shape(0)), {}, {}};
  for (int g = 0; g < made.groups; ++g) {
    const int64_t* numbers = groups.data() + g * group_numbers;
    made.kind[g] = int(numbers[group_kind]);
    made.place[g] = {cells + numbers[group_cells], levels + numbers[group_levels], numbers[group_level_stride],
                     places + numbers[group_places]};
  }
  return made;
}

template <class F, class Codes>
std::vector<Tables<F, Codes>> class_tables(Codes codes, const Matrix<const int64_t>& groups, const Matrix<F>& cells,
                                           const Vector<const F>& levels, const Int64s& places) {
  std::vector<Tables<F, Codes>> made;
  for (size_t k = 0; k < cells.shape(0); ++k)
    made.push_back(tables<F>(codes, groups, cells.data() + k * cells.shape(1), levels.data(), places.data()));
  return made;
}

template <class State> void add_rows(const State& state, const Doubles& coefficients) {
  for (size_t i = 0; i < coefficients.shape(0); ++i)
    if (coefficients.data()[i] != 0) state.update(ptrdiff_t(i), coefficients.data()[i]);
}

// What changes during the descent.
struct Course {
  Matrix<double> samples;
  Vector<int32_t> order;
  int64_t active;
  double above, below, epsilon, bias;
  Vector<double> offset;
  Vector<uint64_t> random;

  template <class State> std::tuple<int64_t, double, double, int64_t> run(const State& state) const {
    const Sweep done = sweep_with(state);
    return {done.active, done.highest, done.lowest, done.updates};
  }

  template <class State> Sweep sweep_with(const State& state) const {
    require(samples.shape(1) == 8 && order.shape(0) == samples.shape(0), "samples have the wrong shape");
    require(0 <= active && active <= int64_t(order.shape(0)), "active is out of range");
    require(offset.shape(0) == 1 && random.shape(0) == 1, "offset and random have one number each");
    Random generator{random.data()[0]};
    const Sweep done = sweep(state, reinterpret_cast<Sample*>(samples.data()), order.data(), active, above, below,
                             epsilon, bias, offset.data()[0], generator);
    random.data()[0] = generator.state;
    return done;
  }
};

// The same for Crammer and Singer.
struct ClassCourse {
  Matrix<double> samples;  // most, curvature and the class of every row
  Matrix<double> duals;
  Vector<int32_t> order;
  int64_t active;
  double above, bias;
  Vector<double> offsets;
  Vector<uint64_t> random;

  template <class State> std::tuple<int64_t, double, int64_t> run(const std::vector<State>& states) const {
    const int classes = int(duals.shape(1));
    require(int(states.size()) == classes && int(offsets.shape(0)) == classes, "wrong number of classes");
    require(samples.shape(1) == 3 && samples.shape(0) == duals.shape(0) && order.shape(0) == duals.shape(0), "samples have the wrong shape");
    require(0 <= active && active <= int64_t(order.shape(0)) && random.shape(0) == 1, "active is out of range");
    std::vector<MultiSample> made(samples.shape(0));
    for (size_t i = 0; i < made.size(); ++i) {
      const double* from = samples.data() + 3 * i;
      made[i] = {from[0], from[1], int64_t(from[2])};
    }
    Random generator{random.data()[0]};
    const Sweep done = sweep_classes(states.data(), classes, made.data(), duals.data(), order.data(), active, above,
                                     bias, offsets.data(), generator);
    random.data()[0] = generator.state;
    return {done.active, done.highest, done.updates};
  }
};

#define HILBIN_CLASS_TYPES \
  Matrix<double> samples, Matrix<double> duals, Vector<int32_t> order, int64_t active, double above, double bias, \
      Vector<double> offsets, Vector<uint64_t> random
#define HILBIN_CLASS_COURSE ClassCourse{samples, duals, order, active, above, bias, offsets, random}
#define HILBIN_CLASS_NAMES \
  "samples"_array, "duals"_array, "order"_array, "active"_a, "above"_a, "bias"_a, "offsets"_array, "random"_array

#define HILBIN_COURSE_TYPES \
  Matrix<double> samples, Vector<int32_t> order, int64_t active, double above, double below, double epsilon, \
      double bias, Vector<double> offset, Vector<uint64_t> random
#define HILBIN_COURSE Course{samples, order, active, above, below, epsilon, bias, offset, random}
#define HILBIN_COURSE_NAMES \
  "samples"_array, "order"_array, "active"_a, "above"_a, "below"_a, "epsilon"_a, "bias"_a, "offset"_array, "random"_array

template <class F> void define_gram(nb::module_& m) {
  m.def("sweep_gram", [](Matrix<const F> gram, Vector<F> scores, HILBIN_COURSE_TYPES) {
    nb::gil_scoped_release release;
    require(gram.shape(0) == gram.shape(1) && gram.shape(0) == scores.shape(0) && gram.shape(0) == samples.shape(0),
            "gram has the wrong shape");
    return HILBIN_COURSE.run(GramState<F>{gram.data(), scores.data(), ptrdiff_t(gram.shape(0))});
  }, "gram"_array, "scores"_array, HILBIN_COURSE_NAMES);
  m.def("sweep_classes_gram", [](Matrix<const F> gram, Matrix<F> scores, HILBIN_CLASS_TYPES) {
    nb::gil_scoped_release release;
    const ptrdiff_t n = gram.shape(0);
    require(gram.shape(1) == gram.shape(0) && scores.shape(1) == gram.shape(0), "gram has the wrong shape");
    std::vector<GramState<F>> states;
    for (size_t k = 0; k < scores.shape(0); ++k) states.push_back({gram.data(), scores.data() + k * n, n});
    return HILBIN_CLASS_COURSE.run(states);
  }, "gram"_array, "scores"_array, HILBIN_CLASS_NAMES);
}

template <class F> void define_cached_gram(nb::module_& m) {
  m.def("sweep_cached_gram", [](Matrix<const F> cache, Vector<const int32_t> slots, Vector<int64_t> stamps, Vector<int64_t> clock,
                                Vector<double> scores, HILBIN_COURSE_TYPES) {
    nb::gil_scoped_release release;
    const size_t n = samples.shape(0);
    require(cache.shape(1) == n && scores.shape(0) == n && slots.shape(0) == n, "the cache has the wrong shape");
    require(stamps.shape(0) == cache.shape(0) && clock.shape(0) == 1, "there is a stamp for every row of the cache");
    for (size_t i = 0; i < n; ++i) require(slots.data()[i] < int64_t(cache.shape(0)), "a slot is out of range");
    const Sweep done = HILBIN_COURSE.sweep_with(
        CachedGramState<F>{cache.data(), slots.data(), stamps.data(), clock.data(), scores.data(), ptrdiff_t(n)});
    return std::tuple{done.active, done.highest, done.lowest, done.updates, done.missing};
  }, "cache"_array, "slots"_array, "stamps"_array, "clock"_array, "scores"_array, HILBIN_COURSE_NAMES);
}

template <class F, class Index> void define_sparse_gram(nb::module_& m) {
  m.def("sweep_sparse_gram", [](Vector<const F> values, Vector<const int32_t> columns, Vector<const Index> indptr, Vector<F> scores,
                                HILBIN_COURSE_TYPES) {
    nb::gil_scoped_release release;
    require(indptr.shape(0) == samples.shape(0) + 1 && scores.shape(0) == samples.shape(0), "gram has the wrong shape");
    return HILBIN_COURSE.run(SparseGramState<F, Index>{values.data(), columns.data(), indptr.data(), scores.data()});
  }, "values"_array, "columns"_array, "indptr"_array, "scores"_array, HILBIN_COURSE_NAMES);
  m.def("sweep_classes_sparse_gram", [](Vector<const F> values, Vector<const int32_t> columns, Vector<const Index> indptr,
                                        Matrix<F> scores, HILBIN_CLASS_TYPES) {
    nb::gil_scoped_release release;
    const size_t n = scores.shape(1);
    require(indptr.shape(0) == n + 1, "gram has the wrong shape");
    std::vector<SparseGramState<F, Index>> states;
    for (size_t k = 0; k < scores.shape(0); ++k) states.push_back({values.data(), columns.data(), indptr.data(), scores.data() + k * n});
    return HILBIN_CLASS_COURSE.run(states);
  }, "values"_array, "columns"_array, "indptr"_array, "scores"_array, HILBIN_CLASS_NAMES);
}

template <class F, class Code> void define_dense(nb::module_& m) {
  m.def("sweep_dense", [](Matrix<const Code> codes, Int64s first, Matrix<const int64_t> groups, Vector<F> cells,
                          Vector<const F> levels, Int64s places, HILBIN_COURSE_TYPES) {
    nb::gil_scoped_release release;
    require(codes.shape(0) == samples.shape(0) && first.shape(0) == groups.shape(0) + 1, "codes have the wrong shape");
    const DenseCodes<Code> rows{codes.data(), ptrdiff_t(codes.shape(1)), first.data()};
    return HILBIN_COURSE.run(tables<F>(rows, groups, cells.data(), levels.data(), places.data()));
  }, "codes"_array, "first"_array, "groups"_array, "cells"_array, "levels"_array, "places"_array, HILBIN_COURSE_NAMES);
  m.def("sweep_classes_dense", [](Matrix<const Code> codes, Int64s first, Matrix<const int64_t> groups, Matrix<F> cells,
                                  Vector<const F> levels, Int64s places, HILBIN_CLASS_TYPES) {
    nb::gil_scoped_release release;
    require(codes.shape(0) == samples.shape(0) && first.shape(0) == groups.shape(0) + 1, "codes have the wrong shape");
    const DenseCodes<Code> rows{codes.data(), ptrdiff_t(codes.shape(1)), first.data()};
    return HILBIN_CLASS_COURSE.run(class_tables(rows, groups, cells, levels, places));
  }, "codes"_array, "first"_array, "groups"_array, "cells"_array, "levels"_array, "places"_array, HILBIN_CLASS_NAMES);
  m.def("add_dense", [](Matrix<const Code> codes, Int64s first, Matrix<const int64_t> groups, Vector<F> cells,
                        Vector<const F> levels, Int64s places, Doubles coefficients) {
    nb::gil_scoped_release release;
    require(codes.shape(0) == coefficients.shape(0) && first.shape(0) == groups.shape(0) + 1, "codes have the wrong shape");
    const DenseCodes<Code> rows{codes.data(), ptrdiff_t(codes.shape(1)), first.data()};
    add_rows(tables<F>(rows, groups, cells.data(), levels.data(), places.data()), coefficients);
  }, "codes"_array, "first"_array, "groups"_array, "cells"_array, "levels"_array, "places"_array, "coefficients"_array);
}

template <class F, class Entry> void define_sparse(nb::module_& m) {
  m.def("sweep_sparse", [](Vector<const Entry> entries, Int64s indptr, Matrix<const int64_t> groups, Vector<F> cells,
                           Vector<const F> levels, Int64s places, HILBIN_COURSE_TYPES) {
    nb::gil_scoped_release release;
    require(indptr.shape(0) == samples.shape(0) * groups.shape(0) + 1, "indptr has the wrong length");
    const SparseCodes<Entry> rows{entries.data(), indptr.data(), int(groups.shape(0))};
    return HILBIN_COURSE.run(tables<F>(rows, groups, cells.data(), levels.data(), places.data()));
  }, "entries"_array, "indptr"_array, "groups"_array, "cells"_array, "levels"_array, "places"_array, HILBIN_COURSE_NAMES);
  m.def("sweep_classes_sparse", [](Vector<const Entry> entries, Int64s indptr, Matrix<const int64_t> groups, Matrix<F> cells,
                                   Vector<const F> levels, Int64s places, HILBIN_CLASS_TYPES) {
    nb::gil_scoped_release release;
    require(indptr.shape(0) == samples.shape(0) * groups.shape(0) + 1, "indptr has the wrong length");
    const SparseCodes<Entry> rows{entries.data(), indptr.data(), int(groups.shape(0))};
    return HILBIN_CLASS_COURSE.run(class_tables(rows, groups, cells, levels, places));
  }, "entries"_array, "indptr"_array, "groups"_array, "cells"_array, "levels"_array, "places"_array, HILBIN_CLASS_NAMES);
  m.def("add_sparse", [](Vector<const Entry> entries, Int64s indptr, Matrix<const int64_t> groups, Vector<F> cells,
                         Vector<const F> levels, Int64s places, Doubles coefficients) {
    nb::gil_scoped_release release;
    require(indptr.shape(0) == coefficients.shape(0) * groups.shape(0) + 1, "indptr has the wrong length");
    const SparseCodes<Entry> rows{entries.data(), indptr.data(), int(groups.shape(0))};
    add_rows(tables<F>(rows, groups, cells.data(), levels.data(), places.data()), coefficients);
  }, "entries"_array, "indptr"_array, "groups"_array, "cells"_array, "levels"_array, "places"_array, "coefficients"_array);
}

// Entries of codes, dense or CSR, as the tables want them: every row in the order of groups, slot and code in one
// number. Codes 0 and features of slot -1 are left out.
template <class Code, class Entry> void define_packing(nb::module_& m) {
  m.def("pack_entries", [](Vector<const Code> codes, Vector<const int32_t> indices, Int64s indptr, Vector<const int32_t> slots,
                           Vector<const int32_t> group, int groups, Vector<Entry> out, Vector<int64_t> indptr_out) {
    nb::gil_scoped_release release;
    const ptrdiff_t rows = (ptrdiff_t(indptr_out.shape(0)) - 1) / groups;
    require(groups >= 1 && groups <= most_groups && ptrdiff_t(indptr_out.shape(0)) == rows * groups + 1, "wrong number of groups");
    require(slots.shape(0) == group.shape(0), "slots and groups differ in length");
    with_codes(codes, indices, indptr, ptrdiff_t(slots.shape(0)), [&](auto matrix) {
      int64_t to[most_groups], free = 0;
      for (ptrdiff_t i = 0; i < rows; ++i) {
        const auto row = matrix.row(i);
        auto each = [&](auto use) HILBIN_INLINE_LAMBDA {
          for (ptrdiff_t k = 0; k < row.size; ++k) {
            const ptrdiff_t j = row.feature(k);
            if (row.codes[k] != 0 && slots.data()[j] >= 0) use(group.data()[j], slots.data()[j], row.codes[k]);
          }
        };
        std::fill(to, to + groups, 0);
        each([&](int32_t g, int32_t, Code) { ++to[g]; });
        for (int g = 0; g < groups; ++g) {
          const int64_t count = to[g];
          indptr_out.data()[i * groups + g] = to[g] = free;
          free += count;
        }
        require(free <= int64_t(out.shape(0)), "out is too short");
        each([&](int32_t g, int32_t slot, Code code) { out.data()[to[g]++] = Entry(slot) << SparsePart<Entry>::bits | Entry(code); });
      }
      indptr_out.data()[rows * groups] = free;
    });
  }, "codes"_array, "indices"_array, "indptr"_array, "slots"_array, "group"_array, "groups"_a, "out"_array, "indptr_out"_array);
}

template <class F> void define_tables(nb::module_& m) {
  define_gram<F>(m);
  define_sparse_gram<F, int32_t>(m);
  define_sparse_gram<F, int64_t>(m);
  define_dense<F, uint8_t>(m);
  define_dense<F, uint16_t>(m);
  define_dense<F, uint32_t>(m);
  define_sparse<F, uint32_t>(m);
  define_sparse<F, uint64_t>(m);
}

}  // namespace

void define_icd(nb::module_& m) {
  define_cached_gram<float>(m);
  define_tables<float>(m);
  define_tables<double>(m);
  define_packing<uint8_t, uint32_t>(m);
  define_packing<uint8_t, uint64_t>(m);
  define_packing<uint16_t, uint64_t>(m);
  define_packing<uint32_t, uint64_t>(m);
}

}  // namespace hilbin
