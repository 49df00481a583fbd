// Bindings of codes: how values become codes, and codes scores. Every function is single-threaded and releases the
// GIL.
#include <limits>
#include <vector>

#include "ranges.hpp"
#include "with_codes.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

using Doubles = Vector<const double>;

// So many rows have about 8,192 codes, if they are CSR; all rows if they are dense.
ptrdiff_t rows_at_once(const Int64s& indptr, ptrdiff_t begin, ptrdiff_t end) {
  const ptrdiff_t rows = std::max<ptrdiff_t>(end - begin, 1);
  if (end >= ptrdiff_t(indptr.shape(0))) return rows;
  const double codes = double(indptr.data()[end]) - double(indptr.data()[begin]);
  return std::clamp<ptrdiff_t>(ptrdiff_t(8192.0 * double(rows) / std::max(codes, 1.0)), 1, rows);
}

template <class Code, class Cell> void define_look_up(nb::module_& m) {
  // out[i] = the sums of table rows offsets[j] + code, for the rows [begin, end).
  m.def("look_up", [](Vector<const Code> codes, Vector<const int32_t> indices, Int64s indptr, Int64s offsets,
                      Matrix<const Cell> table, Matrix<double> out, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    const ptrdiff_t width = table.shape(1);
    require(width == 1 || (width > 0 && width % some_columns == 0), "the table is not whole vectors wide");
    require(ptrdiff_t(out.shape(1)) == width, "out has the wrong shape");
    require_range(begin, end, out.shape(0));
    require_pointers(offsets, table.shape(0), "offsets do not fit the table");
    const ptrdiff_t features = ptrdiff_t(offsets.shape(0)) - 1;
    const ptrdiff_t few = rows_at_once(indptr, begin, end);  // are still in the cache after they are checked
    for (ptrdiff_t first = begin; first < end; first += few) {
      const ptrdiff_t last = std::min(first + few, end);
      with_codes(codes, indices, indptr, features, first, last, [&](auto rows) {
        scores(rows, offsets.data(), table.data(), width, out.data(), first, last);
      });
    }
  }, "codes"_array, "indices"_array, "indptr"_array, "offsets"_array, "table"_array, "out"_array, "begin"_a, "end"_a);

}

template <class Code> void define_sums(nb::module_& m) {
  define_look_up<Code, double>(m);
  define_look_up<Code, float>(m);

  // out[i] = the sum of the codes of row i.
  m.def("sum_codes", [](Vector<const Code> codes, Vector<const int32_t> indices, Int64s indptr, ptrdiff_t columns, Vector<uint64_t> out) {
    nb::gil_scoped_release release;
    const ptrdiff_t rows = ptrdiff_t(out.shape(0));
    require(columns >= 0, "columns is negative");
    with_codes(codes, indices, indptr, columns, 0, rows, [&](auto matrix) {
      for (ptrdiff_t i = 0; i < rows; ++i) out.data()[i] = code_sum(matrix.row(i).codes, matrix.row(i).size);
    });
  }, "codes"_array, "indices"_array, "indptr"_array, "columns"_a, "out"_array);

  // Numbers the levels that occur, -1 the others, and gives every code its rank among those of its feature.
  m.def("rank_used", [](Vector<const Code> codes, Vector<const int32_t> indices, Int64s indptr, Int64s offsets,
                        Vector<int32_t> nth, Vector<Code> ranks, ptrdiff_t count) {
    nb::gil_scoped_release release;
    const ptrdiff_t features = ptrdiff_t(offsets.shape(0)) - 1;
    require_pointers(offsets, nth.shape(0), "nth has the wrong length");
    require(ptrdiff_t(nth.shape(0)) == offsets.data()[features] && ranks.shape(0) == codes.shape(0), "nth has the wrong length");
    require(count >= 0, "count is negative");
    int64_t used = 0;
    with_codes(codes, indices, indptr, features, 0, count, [&](auto matrix) {
      used = number_used(matrix, count, offsets.data(), features, nth.data());
      for (ptrdiff_t i = 0; i < count; ++i) {
        const auto row = matrix.row(i);
        Code* to = ranks.data() + (row.codes - codes.data());
        for (ptrdiff_t k = 0; k < row.size; ++k) {
          const int32_t* feature = nth.data() + offsets.data()[row.feature(k)];
          to[k] = Code(feature[row.codes[k]] - feature[0]);
        }
      }
    });
    return used;
  }, "codes"_array, "indices"_array, "indptr"_array, "offsets"_array, "nth"_array, "ranks"_array, "count"_a);

  m.def("level_sums", [](Vector<const Code> codes, Vector<const int32_t> indices, Int64s indptr, Int64s offsets,
                         Matrix<const double> coefficients, Matrix<double> sums) {
    nb::gil_scoped_release release;
    const ptrdiff_t width = coefficients.shape(1), rows_count = coefficients.shape(0);
    require(ptrdiff_t(sums.shape(1)) == width, "sums have the wrong shape");
    require_pointers(offsets, sums.shape(0), "offsets do not fit the sums");
    with_codes(codes, indices, indptr, ptrdiff_t(offsets.shape(0)) - 1, 0, rows_count, [&](auto rows) {
      for (ptrdiff_t i = 0; i < rows_count; ++i)
        add_to_levels(rows.row(i), offsets.data(), coefficients.data() + i * width, width, sums.data());
    });
  }, "codes"_array, "indices"_array, "indptr"_array, "offsets"_array, "coefficients"_array, "sums"_array);
}

void level_lookup(Matrix<double> sums, Int64s offsets, Doubles levels) {
  nb::gil_scoped_release release;
  const ptrdiff_t width = sums.shape(1);
  require(levels.shape(0) == sums.shape(0), "levels have the wrong length");
  require_pointers(offsets, sums.shape(0), "offsets do not fit the sums");
  for (size_t j = 0; j + 1 < offsets.shape(0); ++j)
    for (ptrdiff_t c = 0; c < width; ++c)
      sums_to_table(sums.data() + offsets.data()[j] * width + c, width, levels.data() + offsets.data()[j],
                    offsets.data()[j + 1] - offsets.data()[j]);
}

// The levels of features, each filled up to its room with the last of them.
void pad_levels(Doubles levels, Int64s offsets, Int64s features, Int64s room, Vector<double> out) {
  nb::gil_scoped_release release;
  require(features.shape(0) == room.shape(0), "features and room differ in length");
  require_pointers(offsets, levels.shape(0), "offsets do not fit the levels");
  require_below(features.data(), features.shape(0), offsets.shape(0) - 1, "a feature is out of range");
  double *to = out.data(), *end = to + out.shape(0);
  for (size_t s = 0; s < features.shape(0); ++s) {
    const int64_t j = features.data()[s], first = offsets.data()[j], count = offsets.data()[j + 1] - first;
    require(count <= room.data()[s] && room.data()[s] <= end - to, "no room for the levels");
    std::copy_n(levels.data() + first, count, to);
    std::fill(to + count, to + room.data()[s], levels.data()[first + count - 1]);
    to += room.data()[s];
  }
}

template <class T, class Cell> void define_interpolate(nb::module_& m) {
  using Values = Vector<const T>;
  // The piecewise linear functions through (levels, table) at the values of the rows [begin, end): their sum
  // over the features of a row, or each of them if `out` has a row for every value.
  m.def("interpolate", [](Values values, Vector<const int32_t> indices, Int64s indptr, Int64s offsets, Doubles levels,
                          Matrix<const Cell> table, Matrix<double> out, bool each, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    const ptrdiff_t width = table.shape(1);
    const ptrdiff_t features = ptrdiff_t(offsets.shape(0)) - 1;
    require(out.shape(1) == table.shape(1) && levels.shape(0) == table.shape(0), "out has the wrong shape");
    require_pointers(offsets, table.shape(0), "offsets do not fit the table");
    require(0 <= begin && begin <= end && (each || end <= ptrdiff_t(out.shape(0))), "range out of bounds");
    require(!each || out.shape(0) >= values.shape(0), "out has no row for every value");
    for (ptrdiff_t j = 0; j < features; ++j) require(offsets.data()[j] < offsets.data()[j + 1], "a feature has no levels");
    with_codes(values, indices, indptr, features, begin, end, [&](auto rows) {
      for (ptrdiff_t i = begin; i < end; ++i) {
        const auto row = rows.row(i);
        double* to = out.data() + (each ? row.codes - values.data() : i) * width;
        std::fill(to, to + (each ? row.size : 1) * width, 0.0);
        for (ptrdiff_t k = 0; k < row.size; ++k, to += each ? width : 0) {
          const int64_t first = offsets.data()[row.feature(k)], count = offsets.data()[row.feature(k) + 1] - first;
          const Between<T> at(levels.data() + first, count, row.codes[k]);
          const Cell *a = table.data() + (first + at.first) * width, *b = table.data() + (first + at.second) * width;
          for (ptrdiff_t c = 0; c < width; ++c) to[c] += a[c] + at.fraction * (double(b[c]) - a[c]);
        }
      }
    });
  }, "values"_array, "indices"_array, "indptr"_array, "offsets"_array, "levels"_array, "table"_array, "out"_array, "each"_a, "begin"_a, "end"_a);
}

template <class T> void define_values(nb::module_& m) {
  define_interpolate<T, double>(m);
  define_interpolate<T, float>(m);
  using Values = Vector<const T>;

  m.def("rank_columns", [](Values values, Int64s indptr, Vector<T> levels, Vector<int64_t> counts, Vector<uint32_t> ranks,
                           ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    require(levels.shape(0) == values.shape(0) && ranks.shape(0) == values.shape(0), "levels have the wrong length");
    require_range(begin, end, counts.shape(0));
    require(indptr.shape(0) == counts.shape(0) + 1, "indptr has the wrong length");
    require_pointers(indptr, values.shape(0), "indptr is out of range");
    for (ptrdiff_t j = begin; j < end; ++j) {
      const int64_t at = indptr.data()[j];
      counts.data()[j] = rank_column(values.data() + at, indptr.data()[j + 1] - at, levels.data() + at, ranks.data() + at);
    }
  }, "values"_array, "indptr"_array, "levels"_array, "counts"_array, "ranks"_array, "begin"_a, "end"_a);

  m.def("column_quantiles", [](Values values, Int64s indptr, Doubles weights, Values low, double q, Vector<T> out,
                               ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    require(low.shape(0) == out.shape(0) && indptr.shape(0) == out.shape(0) + 1, "low has the wrong length");
    require(weights.shape(0) == 0 || weights.shape(0) == values.shape(0), "weights have the wrong length");
    require_range(begin, end, out.shape(0));
    require_pointers(indptr, values.shape(0), "indptr is out of range");
    std::vector<T> plain;
    std::vector<std::pair<T, double>> weighted;
    for (ptrdiff_t j = begin; j < end; ++j) {
      const int64_t at = indptr.data()[j], count = indptr.data()[j + 1] - at;
      const T *x = values.data() + at, least = low.data()[j];
      out.data()[j] = weights.shape(0) ? column_quantile(x, weights.data() + at, count, least, q, weighted)
                                       : column_quantile(x, count, least, q, plain);
    }
  }, "values"_array, "indptr"_array, "weights"_array, "low"_array, "q"_a, "out"_array, "begin"_a, "end"_a);
}

// Statistics of dense columns and of rows, for a binner.
template <class T> void define_columns(nb::module_& m) {
  using Values = Vector<const T>;
  m.def("dense_extremes", [](Matrix<const T> x, Vector<T> least, Vector<T> greatest) {
    nb::gil_scoped_release release;
    require(least.shape(0) == x.shape(1) && greatest.shape(0) == x.shape(1), "least has the wrong length");
    dense_extremes(x.data(), x.shape(0), x.shape(1), least.data(), greatest.data());
  }, "x"_array, "least"_array, "greatest"_array);

  m.def("sparse_extremes", [](Values values, Vector<const int32_t> indices, ptrdiff_t rows, Vector<T> least, Vector<T> greatest) {
    nb::gil_scoped_release release;
    require(least.shape(0) == greatest.shape(0) && values.shape(0) == indices.shape(0), "least has the wrong length");
    require_below(indices.data(), indices.shape(0), least.shape(0), "a column is out of range");
    sparse_extremes(values.data(), indices.data(), values.shape(0), rows, least.shape(0), least.data(), greatest.data());
  }, "values"_array, "indices"_array, "rows"_a, "least"_array, "greatest"_array);

  m.def("column_ranges", [](Matrix<const T> x, double share, double q, Vector<T> low, Vector<T> high, ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    require(low.shape(0) == x.shape(1) && high.shape(0) == x.shape(1) && x.shape(0) > 0, "low has the wrong length");
    require_range(begin, end, x.shape(1));
    ColumnRanges<T>(x.data(), x.shape(0), x.shape(1), share, q).find(begin, end, low.data() + begin, high.data() + begin);
  }, "x"_array, "share"_a, "q"_a, "low"_array, "high"_array, "begin"_a, "end"_a);

  m.def("copy_columns", [](Matrix<const T> x, ptrdiff_t begin, ptrdiff_t end, Matrix<T> out) {
    nb::gil_scoped_release release;
    require_range(begin, end, x.shape(1));
    require(ptrdiff_t(out.shape(0)) == end - begin && out.shape(1) == x.shape(0), "out has the wrong shape");
    copy_columns(x.data(), x.shape(0), x.shape(1), begin, end, out.data());
  }, "x"_array, "begin"_a, "end"_a, "out"_array);

  m.def("all_whole", [](Values values) {
    nb::gil_scoped_release release;
    return all_whole(values.data(), values.shape(0));
  }, "values"_array);

  m.def("row_keys", [](Values values, Vector<const int32_t> indices, Int64s indptr, Vector<const uint64_t> factors, Vector<uint64_t> out) {
    nb::gil_scoped_release release;
    const ptrdiff_t rows = out.shape(0);
    with_codes(values, indices, indptr, ptrdiff_t(factors.shape(0)), 0, rows, [&](auto matrix) {
      for (ptrdiff_t i = 0; i < rows; ++i) out.data()[i] = row_key(matrix.row(i), factors.data());
    });
  }, "values"_array, "indices"_array, "indptr"_array, "factors"_array, "out"_array);
}

// Whether all values are finite and at least `least`; not looked at if that is NaN.
template <class T> bool acceptable(const T* x, ptrdiff_t count, T least) {
  if (least != least) return true;
  const T most = std::numeric_limits<T>::max();
  Within<T> within(std::max(least, -most), most);
  ptrdiff_t i = 0;
  for (; i + lanes<T> <= count; i += lanes<T>) within.meet(load(x + i));
  for (; i < count; ++i) within.meet(x[i]);
  return within.all();
}

// Codes of dense values, a row of features after the other, or of stored values and their features. Values are looked at
// just before, while the cache has them; false if one is not acceptable.
template <class T, class Code> void define_bins(nb::module_& m) {
  using Values = Vector<const T>;
  auto each = [](const Values& x, const Vector<const int32_t>& indices, ptrdiff_t columns, const Vector<Code>& out,
                 ptrdiff_t begin, ptrdiff_t end, T least, auto bin) {
    require(out.shape(0) == x.shape(0), "out has the wrong length");
    require_range(begin, end, x.shape(0));
    const T* from = x.data();
    Code* to = out.data();
    if (indices.shape(0) > 0) {
      require(indices.shape(0) == x.shape(0), "x and indices differ in length");
      require_below(indices.data() + begin, size_t(end - begin), uint64_t(columns), "a column is out of range");
      if (!acceptable(from + begin, end - begin, least)) return false;
      for (ptrdiff_t k = begin; k < end; ++k) to[k] = Code(int32_t(bin(indices.data()[k], from[k])));
      return true;
    }
    require(columns >= 1 && begin % columns == 0 && end % columns == 0, "rows are not whole");
    const ptrdiff_t at_once = std::max<ptrdiff_t>(1, 2048 / columns) * columns;
    for (ptrdiff_t first = begin; first < end; first += at_once) {
      const ptrdiff_t last = std::min(end, first + at_once);
      if (!acceptable(from + first, last - first, least)) return false;
      for (ptrdiff_t k = first; k < last; k += columns)
        for (ptrdiff_t j = 0; j < columns; ++j) to[k + j] = Code(int32_t(bin(j, from[k + j])));
    }
    return true;
  };

  m.def("bin_even", [each](Values x, Vector<const int32_t> indices, Values low, Values scale, Values last, bool root,
                           Vector<Code> out, ptrdiff_t begin, ptrdiff_t end, double least) {
    nb::gil_scoped_release release;
    require(low.shape(0) == scale.shape(0) && low.shape(0) == last.shape(0), "low, scale and last differ in length");
    if (root) return each(x, indices, low.shape(0), out, begin, end, T(least), RootBins<T>{low.data(), scale.data(), last.data()});
    const ptrdiff_t columns = low.shape(0);
    if (indices.shape(0) == 0 && columns >= 1) {
      require(out.shape(0) == x.shape(0), "out has the wrong length");
      require_range(begin, end, x.shape(0));
      require(begin % columns == 0 && end % columns == 0, "rows are not whole");
      constexpr T any = std::numeric_limits<T>::infinity(), largest = std::numeric_limits<T>::max();
      const bool look = least == least;
      EvenRows<T, Code> rows(low.data(), scale.data(), last.data(), columns);
      return rows.encode(x.data() + begin, end - begin, look ? std::max(T(least), -largest) : -any, look ? largest : any, out.data() + begin)
             || !look;  // NaN is not within any bounds
    }
    return each(x, indices, low.shape(0), out, begin, end, T(least), EvenBins<T>{low.data(), scale.data(), last.data()});
  }, "x"_array, "indices"_array, "low"_array, "scale"_array, "last"_array, "root"_a, "out"_array, "begin"_a, "end"_a, "least"_a);

  m.def("bin_edges", [each](Values x, Vector<const int32_t> indices, Values edges, Int64s offsets, Vector<Code> out,
                            ptrdiff_t begin, ptrdiff_t end, double least) {
    nb::gil_scoped_release release;
    require_pointers(offsets, edges.shape(0), "offsets do not fit the edges");
    return each(x, indices, ptrdiff_t(offsets.shape(0)) - 1, out, begin, end, T(least), EdgeBins<T>{edges.data(), offsets.data()});
  }, "x"_array, "indices"_array, "edges"_array, "offsets"_array, "out"_array, "begin"_a, "end"_a, "least"_a);
}

}  // namespace

void define_codes(nb::module_& m) {
  define_sums<uint8_t>(m);
  define_sums<uint16_t>(m);
  define_sums<uint32_t>(m);
  define_values<float>(m);
  define_values<double>(m);
  define_columns<float>(m);
  define_columns<double>(m);
  define_bins<float, uint8_t>(m);
  define_bins<float, uint16_t>(m);
  define_bins<double, uint8_t>(m);
  define_bins<double, uint16_t>(m);
  m.def("pad_levels", &pad_levels, "levels"_array, "offsets"_array, "features"_array, "room"_array, "out"_array);
  m.def("level_lookup", &level_lookup, "sums"_array, "offsets"_array, "levels"_array);
}

}  // namespace hilbin
