// Bindings of the search for the best box. Every function is single-threaded and releases the GIL.
#include <nanobind/stl/tuple.h>

#include "bindings.hpp"
#include "boxes.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

using Scores = Matrix<const double>;
using Numbers = Vector<const double>;
using Counts = nb::ndarray<const int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Found = std::tuple<ptrdiff_t, int64_t, double>;

void require_grid(ptrdiff_t rows, ptrdiff_t columns) {
  require(rows >= 1 && columns >= 1, "there is no cell");
  require(std::max(rows, columns) <= most_cells_along_a_side, "a side has more than 32767 cells");
}

// The loss: no numbers, or top, bottom, left and right of the true box; a fifth number is the reference by whose
// difference the loss is multiplied.
template <class Score> Found search(const Score& score, ptrdiff_t rows, ptrdiff_t columns, const Numbers& loss,
                                    double limit, int64_t max_nodes, const Matrix<int32_t>& boxes,
                                    const Vector<double>& scores) {
  require_grid(rows, columns);
  require(loss.shape(0) == 0 || loss.shape(0) == 4 || loss.shape(0) == 5, "loss has the wrong length");
  require(boxes.shape(0) == scores.shape(0) && boxes.shape(1) == 4, "boxes has the wrong shape");
  Augmented<Score> bound{score, Loss::none, {}, 0};
  if (loss.shape(0) > 0) {
    bound.loss = loss.shape(0) == 4 ? Loss::added : Loss::multiplied;
    std::copy(loss.data(), loss.data() + 4, bound.truth.edge);
    require(bound.truth.edge[top] < bound.truth.edge[bottom] && bound.truth.edge[left] < bound.truth.edge[right],
            "the true box is empty");
    if (loss.shape(0) == 5) bound.reference = loss.data()[4];
  }
  static_assert(sizeof(CellBox) == 4 * sizeof(int32_t));
  BestBoxes<Augmented<Score>> best(bound, limit);
  const BoxSearch found = best(rows, columns, ptrdiff_t(boxes.shape(0)), max_nodes,
                               reinterpret_cast<CellBox*>(boxes.data()), scores.data());
  return {found.count, found.nodes, found.gap};
}

struct Words {
  WordCounts counts;
  Tables tables;
  ptrdiff_t rows, columns;

  // The integral has a row and a column of zeros in front. Counts that are out of range only give wrong scores.
  Words(const Counts& integral, const Scores& rising, const Scores& falling, int levels)
      : counts{integral.data(), ptrdiff_t(integral.shape(1)), ptrdiff_t(integral.shape(2))},
        tables{rising.data(), falling.data(), ptrdiff_t(rising.shape(1)), levels},
        rows(ptrdiff_t(integral.shape(0)) - 1), columns(ptrdiff_t(integral.shape(1)) - 1) {
    require_grid(rows, columns);
    require(levels >= 1 && levels <= 8, "levels must be from 1 to 8");
    const size_t parts = ((size_t(1) << 2 * levels) - 1) / 3;
    require(rising.shape(0) == parts * integral.shape(2) && falling.shape(0) == rising.shape(0) && rising.shape(1) >= 1 &&
            falling.shape(1) == rising.shape(1), "tables have the wrong shape");
  }
};

void require_integral(const nb::ndarray<int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>& out, size_t rows, size_t columns,
                      size_t words) {
  require(words >= 1 && out.shape(0) == rows + 1 && out.shape(1) == columns + 1 && out.shape(2) == words, "out has the wrong shape");
}

void define_integrals(nb::module_& m) {
  using Out = nb::ndarray<int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

  // Words below 0 are none.
  m.def("integrate_words", [](Matrix<const int32_t> words, Out out) {
    nb::gil_scoped_release release;
    const ptrdiff_t n_words = ptrdiff_t(out.shape(2));
    require_integral(out, words.shape(0), words.shape(1), out.shape(2));
    const int32_t* word = words.data();
    require(std::all_of(word, word + words.size(), [=](int32_t w) { return w < n_words; }), "word out of range");
    auto add = [=](ptrdiff_t cell, int32_t* row) { if (word[cell] >= 0) ++row[word[cell]]; };
    integrate_counts(ptrdiff_t(words.shape(0)), ptrdiff_t(words.shape(1)), n_words, add, out.data());
  }, "words"_array, "out"_array);

  m.def("integrate_counts", [](Counts counts, Out out) {
    nb::gil_scoped_release release;
    const ptrdiff_t n_words = ptrdiff_t(counts.shape(2));
    require_integral(out, counts.shape(0), counts.shape(1), counts.shape(2));
    auto add = [=, count = counts.data()](ptrdiff_t cell, int32_t* row) {
      for (ptrdiff_t j = 0; j < n_words; ++j) row[j] += count[cell * n_words + j];
    };
    integrate_counts(ptrdiff_t(counts.shape(0)), ptrdiff_t(counts.shape(1)), n_words, add, out.data());
  }, "counts"_array, "out"_array);
}

}  // namespace

void define_boxes(nb::module_& m) {
  define_integrals(m);
  m.def("best_run", [](Scores scores, Vector<int32_t> box) {
    nb::gil_scoped_release release;
    require_grid(ptrdiff_t(scores.shape(0)), ptrdiff_t(scores.shape(1)));
    require(box.shape(0) == 4, "box has the wrong length");
    CellBox found{};
    const double best = best_run_of_columns(scores.data(), ptrdiff_t(scores.shape(0)), ptrdiff_t(scores.shape(1)), found);
    std::copy(found.edge, found.edge + 4, box.data());
    return best;
  }, "scores"_array, "box"_array);

  m.def("best_boxes", [](Scores scores, Numbers loss, double limit, int64_t max_nodes, Matrix<int32_t> boxes, Vector<double> out) {
    nb::gil_scoped_release release;
    const ptrdiff_t rows = ptrdiff_t(scores.shape(0)), columns = ptrdiff_t(scores.shape(1));
    return search(LinearScore(scores.data(), rows, columns), rows, columns, loss, limit, max_nodes, boxes, out);
  }, "scores"_array, "loss"_array, "limit"_a, "max_nodes"_a, "boxes"_array, "out"_array);

  m.def("best_boxes_of_counts", [](Counts integral, Scores rising, Scores falling, int levels, Numbers loss,
                                   double limit, int64_t max_nodes, Matrix<int32_t> boxes, Vector<double> out) {
    nb::gil_scoped_release release;
    const Words words(integral, rising, falling, levels);
    return search(CountScore{words.counts, words.tables}, words.rows, words.columns, loss, limit, max_nodes, boxes, out);
  }, "integral"_array, "rising"_array, "falling"_array, "levels"_a, "loss"_array, "limit"_a, "max_nodes"_a, "boxes"_array,
     "out"_array);

  m.def("best_boxes_of_densities", [](Counts integral, Scores rising, Scores falling, int levels, double most, Numbers loss,
                                      double limit, int64_t max_nodes, Matrix<int32_t> boxes, Vector<double> out) {
    nb::gil_scoped_release release;
    const Words words(integral, rising, falling, levels);
    require(words.tables.length >= 2 && most > 0, "tables have two nodes at least, up to a density above 0");
    const DensityScore score{words.counts, words.tables, double(words.tables.length - 1) / most};
    return search(score, words.rows, words.columns, loss, limit, max_nodes, boxes, out);
  }, "integral"_array, "rising"_array, "falling"_array, "levels"_a, "most"_a, "loss"_array, "limit"_a, "max_nodes"_a, "boxes"_array,
     "out"_array);
}

}  // namespace hilbin
