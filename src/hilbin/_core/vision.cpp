// Bindings of the loops over images. Every function is single-threaded and releases the GIL.
#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "census.hpp"
#include "color.hpp"
#include "fhog.hpp"
#include "nearest.hpp"
#include "sift.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

using Int32s = Vector<const int32_t>;

void require_inner(const Matrix<const uint8_t>& image, const Matrix<uint8_t>& out) {
  auto inner = [](size_t size) { return size < 2 ? 0 : size - 2; };
  require(out.shape(0) == inner(image.shape(0)) && out.shape(1) == inner(image.shape(1)), "out has the wrong shape");
}

void define_codes_of_pixels(nb::module_& m) {
  m.def("census", [](Matrix<const uint8_t> image, Matrix<uint8_t> out) {
    nb::gil_scoped_release release;
    require_inner(image, out);
    census(image.data(), image.shape(0), image.shape(1), out.data());
  }, "image"_array, "out"_array);

  m.def("lbp", [](Matrix<const uint8_t> image, Matrix<uint8_t> out, bool uniform) {
    nb::gil_scoped_release release;
    require_inner(image, out);
    local_patterns(image.data(), image.shape(0), image.shape(1), uniform, out.data());
  }, "image"_array, "out"_array, "uniform"_a);
}

using ColorImage = nb::ndarray<const uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;
using ColorOut = nb::ndarray<uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;

void define_colors(nb::module_& m) {
  m.def("lab", [](ColorImage image, Vector<const float> linear, Matrix<const float> to_xyz, ColorOut out) {
    nb::gil_scoped_release release;
    require(linear.shape(0) == 256 && to_xyz.shape(0) == 3 && to_xyz.shape(1) == 3, "linear or to_xyz has the wrong shape");
    require(out.shape(0) == image.shape(0) && out.shape(1) == image.shape(1), "out has the wrong shape");
    lab(image.data(), ptrdiff_t(image.shape(0) * image.shape(1)), linear.data(), to_xyz.data(), out.data());
  }, "image"_array, "linear"_array, "to_xyz"_array, "out"_array);

  m.def("color_cells", [](ColorImage image, Matrix<const int32_t> tables, Matrix<int32_t> out) {
    nb::gil_scoped_release release;
    require(tables.shape(0) == 3 && tables.shape(1) == 256, "tables has the wrong shape");
    require(out.shape(0) == image.shape(0) && out.shape(1) == image.shape(1), "out has the wrong shape");
    color_cells(image.data(), ptrdiff_t(image.shape(0) * image.shape(1)), tables.data(), out.data());
  }, "image"_array, "tables"_array, "out"_array);
}

void require_cells(const Int32s& cell, ptrdiff_t count) {
  for (size_t i = 0; i < cell.shape(0); ++i)
    require(cell.data()[i] >= 0 && cell.data()[i] < count, "cell out of range");
}

template <class Word, class Out> void define_count(nb::module_& m) {
  // Adds to out[cell, word] how often the word occurs in the cell, row_cell * grid_cols + col_cell.
  m.def("count_cells", [](Matrix<const Word> words, Int32s row_cell, Int32s col_cell, ptrdiff_t grid_cols,
                          ptrdiff_t n_words, Matrix<Out> out) {
    nb::gil_scoped_release release;
    const ptrdiff_t rows = words.shape(0), columns = words.shape(1);
    require(ptrdiff_t(row_cell.shape(0)) == rows && ptrdiff_t(col_cell.shape(0)) == columns, "cells and words differ");
    require(n_words >= 1 && ptrdiff_t(out.shape(1)) == n_words, "out has the wrong shape");
    require(grid_cols >= 1 && ptrdiff_t(out.shape(0)) % grid_cols == 0, "out is not a whole number of rows of cells");
    require_cells(row_cell, ptrdiff_t(out.shape(0)) / grid_cols);
    require_cells(col_cell, grid_cols);
    require(words_in_range(words.data(), rows * columns, n_words), "word out of range");
    const std::vector<Run> row_runs = runs_of(row_cell.data(), rows), column_runs = runs_of(col_cell.data(), columns);
    Counter counter(n_words);
    for (const Run& r : row_runs)
      for (const Run& c : column_runs)
        counter.add(words.data(), columns, r, c, out.data() + (r.cell * grid_cols + c.cell) * n_words);
  }, "words"_array, "row_cell"_array, "col_cell"_array, "grid_cols"_a, "n_words"_a, "out"_array);
}

template <class Word> void define_counts(nb::module_& m) {
  define_count<Word, float>(m);
  define_count<Word, int32_t>(m);
}

// words[i, r], scores[i, r] = the r-th best center of point i by <p, c> - half_norms[c].
void find_nearest(const Matrix<const float>& points, const Matrix<const float>& centers,
                  const Vector<const float>& half_norms, int m, int32_t* words, float* scores) {
  require(points.shape(1) == centers.shape(1), "points and centers differ in dimension");
  require(half_norms.shape(0) == centers.shape(0), "half_norms has the wrong length");
  require(m >= 1 && m <= most_nearest && size_t(m) <= centers.shape(0), "m is out of range");
  const Centers packed(centers.data(), half_norms.data(), centers.shape(0), centers.shape(1));
  nearest(points.data(), points.shape(0), packed, m, words, scores);
}

void define_nearest(nb::module_& m) {
  using Floats = Matrix<const float>;
  using Norms = Vector<const float>;

  m.def("nearest", [](Floats points, Floats centers, Norms half_norms, Vector<int32_t> words, Vector<float> scores) {
    nb::gil_scoped_release release;
    require(words.shape(0) == points.shape(0) && scores.shape(0) == points.shape(0), "out has the wrong length");
    find_nearest(points, centers, half_norms, 1, words.data(), scores.data());
  }, "points"_array, "centers"_array, "half_norms"_array, "words"_array, "scores"_array);

  m.def("nearest_few", [](Floats points, Floats centers, Norms half_norms, int m, Matrix<int32_t> words,
                          Matrix<float> scores) {
    nb::gil_scoped_release release;
    require(words.shape(0) == points.shape(0) && scores.shape(0) == points.shape(0) && ptrdiff_t(words.shape(1)) == m &&
            ptrdiff_t(scores.shape(1)) == m, "out has the wrong shape");
    find_nearest(points, centers, half_norms, m, words.data(), scores.data());
  }, "points"_array, "centers"_array, "half_norms"_array, "m"_a, "words"_array, "scores"_array);
}

void define_sift(nb::module_& m) {
  m.def("dense_sift_grid", [](ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t bin_size, ptrdiff_t step) {
    require(bin_size >= 1 && step >= 1, "bin_size and step are at least 1");
    return std::make_pair(sift_frames(rows, bin_size, step), sift_frames(columns, bin_size, step));
  }, "rows"_a, "columns"_a, "bin_size"_a, "step"_a);

  m.def("dense_sift", [](Matrix<const float> image, ptrdiff_t bin_size, ptrdiff_t step, Matrix<float> descriptors,
                         Vector<float> norms) {
    nb::gil_scoped_release release;
    require(bin_size >= 1 && step >= 1, "bin_size and step are at least 1");
    const ptrdiff_t rows = image.shape(0), columns = image.shape(1);
    const ptrdiff_t frames = sift_frames(rows, bin_size, step) * sift_frames(columns, bin_size, step);
    require(ptrdiff_t(descriptors.shape(0)) == frames && descriptors.shape(1) == sift_length, "descriptors has the wrong shape");
    require(ptrdiff_t(norms.shape(0)) == frames, "norms has the wrong length");
    if (frames > 0) DenseSift{image.data(), rows, columns, bin_size, step}(descriptors.data(), norms.data());
  }, "image"_array, "bin_size"_a, "step"_a, "descriptors"_array, "norms"_array);
}

using Image = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Cells = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

HogCells hog_cells_of(const Image& image, ptrdiff_t cell, ptrdiff_t fewer, ptrdiff_t length, const Cells& out, bool between) {
  require(image.ndim() == 2 || (image.ndim() == 3 && image.shape(2) >= 1), "image is not (rows, columns) or (rows, columns, channels)");
  require(cell >= 1, "cell is at least 1");
  const ptrdiff_t rows = image.shape(0), columns = image.shape(1), channels = image.ndim() == 3 ? image.shape(2) : 1;
  auto fits = [&](size_t room, ptrdiff_t size) { return ptrdiff_t(room) == std::max<ptrdiff_t>(hog_cells(size, cell) - fewer, 0); };
  require(fits(out.shape(0), rows) && fits(out.shape(1), columns) && ptrdiff_t(out.shape(2)) == length, "out has the wrong shape");
  return HogCells(image.data(), rows, columns, channels, cell, between);
}

void define_hog(nb::module_& m) {
  m.def("hog_grid", [](ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t cell) {
    require(cell >= 1, "cell is at least 1");
    return std::make_pair(hog_cells(rows, cell), hog_cells(columns, cell));
  }, "rows"_a, "columns"_a, "cell"_a);

  m.def("fhog", [](Image image, ptrdiff_t cell, Cells out) {
    nb::gil_scoped_release release;
    fhog(hog_cells_of(image, cell, 0, fhog_length, out, false), out.data());
  }, "image"_array, "cell"_a, "out"_array);

  m.def("hog", [](Image image, ptrdiff_t cell, Cells out) {
    nb::gil_scoped_release release;
    hog_blocks(hog_cells_of(image, cell, 1, block_length, out, true), out.data());
  }, "image"_array, "cell"_a, "out"_array);
}

}  // namespace

void define_vision(nb::module_& m) {
  define_codes_of_pixels(m);
  define_colors(m);
  define_counts<uint8_t>(m);
  define_counts<uint16_t>(m);
  define_counts<int32_t>(m);
  define_nearest(m);
  define_sift(m);
  define_hog(m);
}

}  // namespace hilbin
