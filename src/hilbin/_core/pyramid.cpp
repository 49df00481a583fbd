// Bindings of the cells of gradients at many scales, and of filters on them. Every function is single-threaded and releases
// the GIL.
#include "bindings.hpp"
#include "deform.hpp"
#include "filters.hpp"
#include "pyramid.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T> using Tesseract = nb::ndarray<T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Floats = Vector<const float>;
using Places = Vector<const int64_t>;

constexpr ptrdiff_t most_side = 1 << 15;

// Grids of cells one after the other in an array: rows and columns of each, and where it begins, in cells.
struct Levels {
  std::vector<Grid> grids;
  std::vector<ptrdiff_t> begins;

  Levels(const Matrix<const int64_t>& shapes, ptrdiff_t numbers, size_t size) {
    require(shapes.shape(1) == 2, "a level has rows and columns");
    ptrdiff_t end = 0;
    for (size_t i = 0; i < shapes.shape(0); ++i) {
      const int64_t *shape = shapes.data() + 2 * i;
      require(shape[0] >= 0 && shape[1] >= 0 && shape[0] <= most_side && shape[1] <= most_side, "a level is too large");
      grids.push_back({ptrdiff_t(shape[0]), ptrdiff_t(shape[1])});
      begins.push_back(end);
      end += grids.back().size();
      require(uint64_t(end) * uint64_t(numbers) <= size, "the levels are larger than the array");
    }
  }

  // Numbers of places where a filter fits, in all levels.
  ptrdiff_t places(const Grid& filter) const {
    ptrdiff_t sum = 0;
    for (const Grid& grid : grids) sum += grid.places(filter).size();
    return sum;
  }

  // Calls task(grid, where it begins in cells, where its places begin) for every level with places.
  template <class Task> void each(const Grid& filter, Task task) const {
    ptrdiff_t place = 0;
    for (size_t i = 0; i < grids.size(); ++i) {
      const ptrdiff_t size = grids[i].places(filter).size();
      if (size) task(grids[i], begins[i], place);
      place += size;
    }
  }

  // Calls task(i, grid, where it begins in cells, row, column) for every chosen place.
  template <class Task> void at_each(const Grid& filter, const Places& chosen, Task task) const {
    std::vector<ptrdiff_t> ends;
    ptrdiff_t end = 0;
    for (const Grid& grid : grids) ends.push_back(end += grid.places(filter).size());
    for (size_t i = 0; i < chosen.shape(0); ++i) {
      const int64_t place = chosen.data()[i];
      require(place >= 0 && place < end, "a place is out of range");
      const size_t level = size_t(std::upper_bound(ends.begin(), ends.end(), ptrdiff_t(place)) - ends.begin());
      const Grid places = grids[level].places(filter);
      const ptrdiff_t rest = ptrdiff_t(place) - (ends[level] - places.size());
      task(i, grids[level], begins[level], rest / places.columns, rest % places.columns);
    }
  }
};

// Calls task(sums, vectors), whose sums have rows of whole vectors, and adds them to `out` (rows, channels, columns).
template <class Task> void add_in_whole_vectors(const Grid& filter, float* out, Task task) {
  constexpr int L = lanes<float>;
  const ptrdiff_t rows = filter.rows * cell_channels, vectors = (filter.columns + L - 1) / L;
  std::vector<float> sums(size_t(rows * vectors * L), 0.0f);
  task(sums.data(), vectors);
  for (ptrdiff_t i = 0; i < rows; ++i)
    for (ptrdiff_t j = 0; j < filter.columns; ++j) out[i * filter.columns + j] += sums[size_t(i * vectors * L + j)];
}

// The filters (count, rows, channels, columns).
Grid filter_grid(const Tesseract<const float>& filters) {
  require(ptrdiff_t(filters.shape(2)) == cell_channels, "a filter has the wrong number of channels");
  require(filters.shape(1) >= 1 && filters.shape(3) >= 1, "a filter is empty");
  return {ptrdiff_t(filters.shape(1)), ptrdiff_t(filters.shape(3))};
}

Levels levels_of(const Floats& cells, const Matrix<const int64_t>& shapes) {
  require(cells.shape(0) >= size_t(slack), "there is no room behind the cells");
  return Levels(shapes, cell_channels, cells.shape(0) - size_t(slack));
}

Levels levels_of(const Vector<const uint8_t>& codes, const Matrix<const int64_t>& shapes, size_t words) {
  require_below(codes.data(), codes.shape(0), words, "a code is out of range");
  return Levels(shapes, 1, codes.shape(0));
}

template <class T> void define_pyramid_of(nb::module_& m, float unit) {
  // Cells, and nodes if there is room for them, of the levels whose sizes in pixels are given.
  m.def("cell_pyramid", [unit](Cube<const T> image, Matrix<const int64_t> sizes, ptrdiff_t pad, Vector<float> cells, Vector<float> nodes) {
    nb::gil_scoped_release release;
    require(sizes.shape(1) == 2 && pad >= 0 && pad <= 64, "sizes are (height, width), and pad is from 0 to 64");
    for (int i = 0; i < 3; ++i) require(image.shape(i) >= 1 && ptrdiff_t(image.shape(i)) <= most_side, "the image is empty or too large");
    Planes level = to_planes(image.data(), ptrdiff_t(image.shape(0)), ptrdiff_t(image.shape(1)), ptrdiff_t(image.shape(2)), unit);
    float *cell = cells.data(), *node = nodes.shape(0) ? nodes.data() : nullptr;
    for (size_t i = 0; i < sizes.shape(0); ++i) {
      const int64_t height = sizes.data()[2 * i], width = sizes.data()[2 * i + 1];
      require(height >= 1 && width >= 1 && height <= most_side && width <= most_side, "a level is empty or too large");
      if (level.height != height || level.width != width) level = resized(level, height, width);
      const ptrdiff_t rows = hog_cells(height, cell_side) + 2 * pad, columns = hog_cells(width, cell_side) + 2 * pad;
      const ptrdiff_t size = rows * columns * cell_channels, size_of_nodes = (2 * rows + 1) * (2 * columns + 1) * cell_channels;
      require(cells.data() + cells.shape(0) - cell >= size, "cells is too short");
      require(!node || nodes.data() + nodes.shape(0) - node >= size_of_nodes, "nodes is too short");
      put_level(level, pad, cell, node);
      cell += size;
      if (node) node += size_of_nodes;
    }
  }, "image"_array, "sizes"_array, "pad"_a, "cells"_array, "nodes"_array);
}

void define_levels(nb::module_& m) {
  define_pyramid_of<uint8_t>(m, 1.0f / 255);
  define_pyramid_of<float>(m, 1.0f);

  m.def("resize_planes", [](Cube<const float> image, Cube<float> out) {
    nb::gil_scoped_release release;
    require(image.shape(0) == out.shape(0) && image.size() && out.size(), "an image is empty, or the channels differ");
    Planes planes(ptrdiff_t(image.shape(0)), ptrdiff_t(image.shape(1)), ptrdiff_t(image.shape(2)));
    std::copy(image.data(), image.data() + image.size(), planes.values.data());
    const Planes found = resized(planes, ptrdiff_t(out.shape(1)), ptrdiff_t(out.shape(2)));
    std::copy(found.values.data(), found.values.data() + out.size(), out.data());
  }, "image"_array, "out"_array);
}

void define_filters(nb::module_& m) {
  using Shapes = Matrix<const int64_t>;

  // out[f, i] = the score of the filter f at the place i, level after level.
  m.def("filter_scores", [](Floats cells, Shapes shapes, Tesseract<const float> filters, Matrix<float> out) {
    nb::gil_scoped_release release;
    const Grid filter = filter_grid(filters);
    const Levels levels = levels_of(cells, shapes);
    require(out.shape(0) == filters.shape(0) && ptrdiff_t(out.shape(1)) == levels.places(filter), "out has the wrong shape");
    levels.each(filter, [&](const Grid& grid, ptrdiff_t begin, ptrdiff_t place) {
      filter_scores(cells.data() + begin * cell_channels, grid, cell_channels, filters.data(), ptrdiff_t(filters.shape(0)), filter,
                    out.data() + place, ptrdiff_t(out.shape(1)));
    });
  }, "cells"_array, "shapes"_array, "filters"_array, "out"_array);

  // Adds slope times window to out (rows, channels, columns).
  m.def("filter_sums", [](Floats cells, Shapes shapes, Floats slopes, Cube<float> out) {
    nb::gil_scoped_release release;
    require(ptrdiff_t(out.shape(1)) == cell_channels && out.size(), "out has the wrong shape");
    const Grid filter = {ptrdiff_t(out.shape(0)), ptrdiff_t(out.shape(2))};
    const Levels levels = levels_of(cells, shapes);
    require(ptrdiff_t(slopes.shape(0)) == levels.places(filter), "slopes has the wrong length");
    add_in_whole_vectors(filter, out.data(), [&](float* sums, ptrdiff_t) {
      levels.each(filter, [&](const Grid& grid, ptrdiff_t begin, ptrdiff_t place) {
        filter_sums(cells.data() + begin * cell_channels, grid, cell_channels, slopes.data() + place, filter, sums);
      });
    });
  }, "cells"_array, "shapes"_array, "slopes"_array, "out"_array);

  // The same at chosen places.
  m.def("filter_scores_at", [](Floats cells, Shapes shapes, Places places, Tesseract<const float> filters, Matrix<float> out) {
    nb::gil_scoped_release release;
    const Grid filter = filter_grid(filters);
    const Levels levels = levels_of(cells, shapes);
    require(out.shape(0) == filters.shape(0) && out.shape(1) == places.shape(0), "out has the wrong shape");
    const ptrdiff_t rows = filter.rows * cell_channels, vectors = (filter.columns + lanes<float> - 1) / lanes<float>;
    for (size_t f = 0; f < filters.shape(0); ++f) {
      const std::vector<float> padded = in_whole_vectors(filters.data() + ptrdiff_t(f) * rows * filter.columns, rows, filter.columns);
      levels.at_each(filter, places, [&](size_t i, const Grid& grid, ptrdiff_t begin, ptrdiff_t y, ptrdiff_t x) {
        const float* at = cells.data() + (begin + y * grid.columns) * cell_channels + x;
        out.data()[f * out.shape(1) + i] = filter_score(at, grid.columns, padded.data(), rows, vectors);
      });
    }
  }, "cells"_array, "shapes"_array, "places"_array, "filters"_array, "out"_array);

  m.def("filter_sums_at", [](Floats cells, Shapes shapes, Places places, Floats slopes, Cube<float> out) {
    nb::gil_scoped_release release;
    require(ptrdiff_t(out.shape(1)) == cell_channels && out.size(), "out has the wrong shape");
    const Grid filter = {ptrdiff_t(out.shape(0)), ptrdiff_t(out.shape(2))};
    const Levels levels = levels_of(cells, shapes);
    require(slopes.shape(0) == places.shape(0), "slopes has the wrong length");
    add_in_whole_vectors(filter, out.data(), [&](float* sums, ptrdiff_t vectors) {
      levels.at_each(filter, places, [&](size_t i, const Grid& grid, ptrdiff_t begin, ptrdiff_t y, ptrdiff_t x) {
        if (slopes.data()[i] == 0) return;
        const float* at = cells.data() + (begin + y * grid.columns) * cell_channels + x;
        filter_sum(at, grid.columns, slopes.data()[i], filter.rows * cell_channels, vectors, sums);
      });
    });
  }, "cells"_array, "shapes"_array, "places"_array, "slopes"_array, "out"_array);

  // The number of the nearest word of every cell; words are columns.
  m.def("encode_cells", [](Floats cells, Shapes shapes, Matrix<const float> words, Floats half, Vector<uint8_t> codes) {
    nb::gil_scoped_release release;
    const size_t count = words.shape(1);
    require(ptrdiff_t(words.shape(0)) == cell_channels && half.shape(0) == count, "words has the wrong shape");
    require(count >= 4 && count <= 256 && count % 4 == 0, "the number of words is no multiple of 4 up to 256");
    const Levels levels = levels_of(cells, shapes);
    require(codes.shape(0) * size_t(cell_channels) + size_t(slack) == cells.shape(0), "codes has the wrong length");
    levels.each({1, 1}, [&](const Grid& grid, ptrdiff_t begin, ptrdiff_t) {
      for (ptrdiff_t y = 0; y < grid.rows; ++y) {
        const ptrdiff_t at = begin + y * grid.columns;
        encode_row(cells.data() + at * cell_channels, grid.columns, cell_channels, words.data(), half.data(), ptrdiff_t(count), codes.data() + at);
      }
    });
  }, "cells"_array, "shapes"_array, "words"_array, "half"_array, "codes"_array);
}

// out[i, f] = the score of the filter f at the place i, of tables (rows, columns, words, filters).
template <class T, class Look>
void look_up(const Vector<const uint8_t>& codes, const Matrix<const int64_t>& shapes, const Tesseract<const T>& tables, const Matrix<T>& out, Look look) {
  require(tables.size() > 0, "the tables are empty");
  const Grid filter = {ptrdiff_t(tables.shape(0)), ptrdiff_t(tables.shape(1))};
  const Levels levels = levels_of(codes, shapes, tables.shape(2));
  require(ptrdiff_t(out.shape(0)) == levels.places(filter) && out.shape(1) == tables.shape(3), "out has the wrong shape");
  levels.each(filter, [&](const Grid& grid, ptrdiff_t begin, ptrdiff_t place) {
    look(codes.data() + begin, grid, tables.data(), ptrdiff_t(tables.shape(2)), filter, out.data() + place * ptrdiff_t(out.shape(1)));
  });
}

void define_lookups(nb::module_& m) {
  using Codes = Vector<const uint8_t>;
  using Shapes = Matrix<const int64_t>;

  m.def("lookup_places", [](Codes codes, Shapes shapes, Tesseract<const float> tables, Matrix<float> out) {
    nb::gil_scoped_release release;
    switch (tables.shape(3)) {
      case 1: return look_up(codes, shapes, tables, out, lookup_scores_of_one<float>);
      case 2: return look_up(codes, shapes, tables, out, lookup_scores<float, 2>);
      case 8: return look_up(codes, shapes, tables, out, lookup_scores<float, 8>);
      default: require(false, "tables are of 1, 2 or 8 filters");
    }
  }, "codes"_array, "shapes"_array, "tables"_array, "out"_array);

  // The same of one filter (rows, columns, words) at chosen places.
  m.def("lookup_places_at", [](Codes codes, Shapes shapes, Places places, Cube<const float> table, Vector<float> out) {
    nb::gil_scoped_release release;
    const Grid filter = {ptrdiff_t(table.shape(0)), ptrdiff_t(table.shape(1))};
    const Levels levels = levels_of(codes, shapes, table.shape(2));
    require(table.size() > 0 && out.shape(0) == places.shape(0), "out has the wrong length");
    levels.at_each(filter, places, [&](size_t i, const Grid& grid, ptrdiff_t begin, ptrdiff_t y, ptrdiff_t x) {
      out.data()[i] = lookup_score(codes.data() + begin + y * grid.columns + x, grid.columns, table.data(), ptrdiff_t(table.shape(2)), filter);
    });
  }, "codes"_array, "shapes"_array, "places"_array, "table"_array, "out"_array);

  m.def("lookup_slopes_at", [](Codes codes, Shapes shapes, Places places, Floats slopes, Cube<float> sums) {
    nb::gil_scoped_release release;
    const Grid filter = {ptrdiff_t(sums.shape(0)), ptrdiff_t(sums.shape(1))};
    const Levels levels = levels_of(codes, shapes, sums.shape(2));
    require(sums.size() > 0 && slopes.shape(0) == places.shape(0), "slopes has the wrong length");
    levels.at_each(filter, places, [&](size_t i, const Grid& grid, ptrdiff_t begin, ptrdiff_t y, ptrdiff_t x) {
      lookup_sum(codes.data() + begin + y * grid.columns + x, grid.columns, slopes.data()[i], ptrdiff_t(sums.shape(2)), filter, sums.data());
    });
  }, "codes"_array, "shapes"_array, "places"_array, "slopes"_array, "sums"_array);

  // Adds slopes to sums (rows, columns, words).
  m.def("lookup_slopes", [](Codes codes, Shapes shapes, Floats slopes, Cube<float> sums) {
    nb::gil_scoped_release release;
    require(sums.size() > 0, "sums is empty");
    const Grid filter = {ptrdiff_t(sums.shape(0)), ptrdiff_t(sums.shape(1))};
    const Levels levels = levels_of(codes, shapes, sums.shape(2));
    require(ptrdiff_t(slopes.shape(0)) == levels.places(filter), "slopes has the wrong length");
    levels.each(filter, [&](const Grid& grid, ptrdiff_t begin, ptrdiff_t place) {
      lookup_sums(codes.data() + begin, grid, slopes.data() + place, ptrdiff_t(sums.shape(2)), filter, sums.data());
    });
  }, "codes"_array, "shapes"_array, "slopes"_array, "sums"_array);
}

void define_deform(nb::module_& m) {
  m.def("deform", [](Matrix<const float> scores, Floats d, ptrdiff_t reach, Matrix<float> out, Matrix<int8_t> down, Matrix<int8_t> across) {
    nb::gil_scoped_release release;
    require(d.shape(0) == 4 && reach >= 0 && reach <= 64, "there are 4 costs, and reach is from 0 to 64");
    require(out.size() == scores.size() && down.size() == scores.size() && across.size() == scores.size(), "out has the wrong shape");
    deform(scores.data(), {ptrdiff_t(scores.shape(0)), ptrdiff_t(scores.shape(1))}, d.data(), reach, out.data(), down.data(), across.data());
  }, "scores"_array, "d"_array, "reach"_a, "out"_array, "down"_array, "across"_array);

  // Adds the scores of parts on nodes to those of roots on cells; roots below `least` get -infinity.
  m.def("add_parts", [](Floats nodes, Matrix<const int64_t> node_shapes, Matrix<const int64_t> shapes, ptrdiff_t rows, ptrdiff_t columns,
                        Tesseract<const float> weights, Matrix<const int32_t> anchors, Matrix<const float> deformation, ptrdiff_t reach,
                        float least, Vector<float> scores) {
    nb::gil_scoped_release release;
    const Grid filter = filter_grid(weights), root = {rows, columns};
    require(rows >= 1 && columns >= 1 && reach >= 0 && reach <= 64, "the root is empty, or reach not from 0 to 64");
    require(anchors.shape(0) == weights.shape(0) && anchors.shape(1) == 2, "anchors has the wrong shape");
    require(deformation.shape(0) == weights.shape(0) && deformation.shape(1) == 4, "deformation has the wrong shape");
    const Levels levels = levels_of(nodes, node_shapes);
    const Levels roots(shapes, 1, std::numeric_limits<ptrdiff_t>::max());
    require(roots.grids.size() == levels.grids.size() && ptrdiff_t(scores.shape(0)) == roots.places(root), "scores has the wrong length");
    const Parts parts = {ptrdiff_t(weights.shape(0)), filter, weights.data(), anchors.data(), deformation.data(), reach};
    ptrdiff_t place = 0;
    for (size_t i = 0; i < levels.grids.size(); ++i) {
      const Grid places = roots.grids[i].places(root);
      if (places.size())
        add_parts(nodes.data() + levels.begins[i] * cell_channels, levels.grids[i], cell_channels, parts, places, least, scores.data() + place);
      place += places.size();
    }
  }, "nodes"_array, "node_shapes"_array, "shapes"_array, "rows"_a, "columns"_a, "weights"_array, "anchors"_array, "deformation"_array,
     "reach"_a, "least"_a, "scores"_array);
}

}  // namespace

void define_pyramid(nb::module_& m) {
  m.attr("cell_side") = cell_side;
  m.attr("cell_channels") = cell_channels;
  m.attr("cell_slack") = slack;
  define_levels(m);
  define_filters(m);
  define_lookups(m);
  define_deform(m);
}

}  // namespace hilbin
