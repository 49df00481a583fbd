// Bindings of product-quantized rows and of rows of node pairs. Every function is single-threaded and releases the GIL;
// slices of its arrays are how a caller shares the work out.
#include "bindings.hpp"
#include "expansion.hpp"
#include "pairs.hpp"
#include "quantize.hpp"
#include "words.hpp"

using namespace nb::literals;

namespace hilbin {
namespace {

template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T> using Rows = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
// Chunks x rows x 32 codes; some of the rows of an array, or all.
template <class Code> using Chunks = nb::ndarray<Code, nb::ndim<3>, nb::device::cpu>;

// Strides say nothing where there is nothing to step over.
template <class Code> void require_chunks(const Chunks<Code>& codes, ptrdiff_t blocks) {
  const size_t rows = codes.shape(1);
  const bool side_by_side = rows == 0 || codes.stride(2) == 1, in_a_row = rows <= 1 || codes.stride(1) == chunk_blocks;
  require(codes.shape(2) == chunk_blocks && side_by_side && in_a_row, "codes are not rows of 32");
  require(blocks <= ptrdiff_t(codes.shape(0)) * chunk_blocks, "there are more blocks than codes");
}

template <class T> void require_rows(const Rows<T>& rows) {
  require(rows.size() == 0 || rows.shape(1) == 1 || rows.stride(1) == 1, "the numbers of a row are not side by side");
}

// Codes of `blocks` blocks of `words` words each; fewer words than codes can name must be named right.
template <class Code> WordCodes<Code> word_codes(const Chunks<const Code>& codes, size_t blocks, size_t words) {
  require_chunks(codes, ptrdiff_t(blocks));
  for (size_t chunk = 0; chunk < codes.shape(0); ++chunk)
    require_below(codes.data() + ptrdiff_t(chunk) * codes.stride(0), codes.shape(1) * chunk_blocks, words, "a code is beyond the words");
  return {codes.data(), ptrdiff_t(codes.stride(0)), ptrdiff_t(codes.shape(1)), ptrdiff_t(blocks)};
}

template <class T> void require_width(size_t width) {
  require(width == 1 || (width % lanes<T> == 0 && width / lanes<T> <= size_t(most_vectors)), "tables are not 1 to 3 vectors wide");
}

template <class T> WordTables<T> word_tables(const Cube<T>& tables) {
  require_width<T>(tables.shape(2));
  return {tables.data(), ptrdiff_t(tables.shape(1)), ptrdiff_t(tables.shape(2))};
}

template <class T, class Weight> Words<T, Weight> words_of(const Cube<const T>& columns, const Cube<Weight>& weights) {
  require_width<T>(weights.shape(2));
  require(weights.shape(0) == columns.shape(0) && weights.shape(1) == columns.shape(1), "weights have the wrong shape");
  return {columns.data(), weights.data(), ptrdiff_t(columns.shape(1)), ptrdiff_t(columns.shape(2)), ptrdiff_t(weights.shape(2))};
}

template <class T, class Code> void define_look_ups(nb::module_& m) {
  m.def("word_scores", [](Chunks<const Code> codes, Cube<const T> tables, Matrix<T> out) {
    nb::gil_scoped_release release;
    require(out.shape(0) == codes.shape(1) && out.shape(1) == tables.shape(2), "out has the wrong shape");
    word_scores(word_codes<Code>(codes, tables.shape(0), tables.shape(1)), word_tables(tables), out.data());
  }, "codes"_array, "tables"_array, "out"_array);

  m.def("coded_scores", [](Chunks<const Code> codes, Cube<const T> columns, Cube<const T> weights, Matrix<T> out) {
    nb::gil_scoped_release release;
    require(out.shape(0) == codes.shape(1) && out.shape(1) == weights.shape(2), "out has the wrong shape");
    coded_scores(word_codes<Code>(codes, columns.shape(0), columns.shape(2)), words_of<T, const T>(columns, weights), out.data());
  }, "codes"_array, "columns"_array, "weights"_array, "out"_array);

  m.def("coded_sums", [](Chunks<const Code> codes, Matrix<const T> slopes, Cube<const T> columns, Cube<T> weights) {
    nb::gil_scoped_release release;
    require(slopes.shape(0) == codes.shape(1) && slopes.shape(1) == weights.shape(2), "slopes have the wrong shape");
    coded_sums(word_codes<Code>(codes, columns.shape(0), columns.shape(2)), slopes.data(), words_of<T, T>(columns, weights));
  }, "codes"_array, "slopes"_array, "columns"_array, "weights"_array);

  m.def("decode_words", [](Chunks<const Code> codes, Cube<const T> words, Rows<T> out) {
    nb::gil_scoped_release release;
    require(out.shape(0) == codes.shape(1) && out.shape(1) == words.shape(0) * words.shape(2), "out has the wrong shape");
    require_rows(out);
    decode(word_codes<Code>(codes, words.shape(0), words.shape(1)), words.data(), ptrdiff_t(words.shape(1)), ptrdiff_t(words.shape(2)),
           out.data(), ptrdiff_t(out.stride(0)));
  }, "codes"_array, "words"_array, "out"_array);
}

template <class T> void define_tables(nb::module_& m) {
  m.def("expand_words", [](Cube<const T> columns, Cube<const T> weights, Cube<T> tables) {
    nb::gil_scoped_release release;
    const auto words = words_of<T, const T>(columns, weights);
    const WordTables<T> to = word_tables(tables);
    require(tables.shape(0) == columns.shape(0) && to.words == words.words && to.width == words.width,
            "tables have the wrong shape");
    for (ptrdiff_t b = 0; b < ptrdiff_t(columns.shape(0)); ++b)
      expand_block(words.block(b), words.weights_of(b), words.width, to.of(b));
  }, "columns"_array, "weights"_array, "tables"_array);

  define_look_ups<T, uint8_t>(m);
  define_look_ups<T, uint16_t>(m);
}

Points points_of(const Rows<const float>& rows, ptrdiff_t size) {
  require_rows(rows);
  require(size >= 1, "blocks are empty");
  return {rows.data(), ptrdiff_t(rows.shape(0)), ptrdiff_t(rows.shape(1)), ptrdiff_t(rows.stride(0)), size};
}

template <class Code> void define_encode(nb::module_& m) {
  m.def("encode_words", [](Rows<const float> rows, Cube<const float> words, Chunks<Code> codes) {
    nb::gil_scoped_release release;
    const ptrdiff_t count = words.shape(1), size = words.shape(2);
    const Points points = points_of(rows, size);
    require(points.blocks() == ptrdiff_t(words.shape(0)), "points and words differ in blocks");
    require(count >= 1 && count - 1 <= ptrdiff_t(Code(-1)), "codes are too short for so many words");
    require_chunks(codes, points.blocks());
    require(codes.shape(1) == rows.shape(0), "codes have the wrong shape");
    for (ptrdiff_t b = 0; b < points.blocks(); ++b)
      encode_block(points, b, words.data() + b * count * size, count,
                   codes.data() + b / chunk_blocks * codes.stride(0) + b % chunk_blocks);
  }, "rows"_array, "words"_array, "codes"_array);
}

// words[block, word, g] by k-means of every block from the rows seeds[block, word] on. A row of `course` is the sum of
// squared distances from the words, that from the mean, and the number of rounds.
void train_words(Rows<const float> rows, Matrix<const int64_t> seeds, int most_rounds, double tol, Cube<float> words,
                 Matrix<double> course) {
  nb::gil_scoped_release release;
  const ptrdiff_t count = words.shape(1), size = words.shape(2);
  const Points points = points_of(rows, size);
  const size_t blocks = words.shape(0);
  require(points.blocks() == ptrdiff_t(blocks), "points and words differ in blocks");
  require(seeds.shape(0) == blocks && ptrdiff_t(seeds.shape(1)) == count && count >= 1 && count <= points.rows,
          "seeds have the wrong shape");
  require(course.shape(0) == blocks && course.shape(1) == 3, "course has the wrong shape");
  for (size_t k = 0; k < seeds.size(); ++k) require_range(0, seeds.data()[k], size_t(points.rows - 1));
  for (size_t b = 0; b < blocks; ++b) {
    BlockMeans means(points, ptrdiff_t(b));
    means.run(seeds.data() + b * size_t(count), count, most_rounds, tol, words.data() + b * size_t(count * size));
    const double numbers[3] = {means.inertia, means.variation, double(means.rounds)};
    std::copy_n(numbers, 3, course.data() + 3 * b);
  }
}

// Pairs of `nodes` nodes and those after them.
NodePairs node_pairs(const Vector<const int64_t>& groups, const Vector<const uint16_t>& node, const Matrix<const int16_t>& weights,
                     size_t nodes) {
  require(groups.shape(0) >= 1 && nodes >= 1, "groups are empty");
  require(weights.shape(0) == node.shape(0) && weights.shape(1) == 2, "weights are not pairs");
  const ptrdiff_t rows = ptrdiff_t(groups.shape(0)) - 1;
  require_pointers(groups, node.shape(0) / pair_group, "there are fewer pairs than groups");
  require_below(node.data(), node.shape(0), nodes - 1, "a node is out of range");
  return {groups.data(), node.data(), weights.data(), rows};
}

void define_pairs(nb::module_& m) {
  m.attr("gram_rows") = gram_rows;
  using Groups = Vector<const int64_t>;
  using Nodes = Vector<const uint16_t>;
  using Weights = Matrix<const int16_t>;

  m.def("pair_scores", [](Groups groups, Nodes node, Weights weights, Matrix<const float> table, Matrix<float> out,
                          ptrdiff_t begin, ptrdiff_t end) {
    nb::gil_scoped_release release;
    const NodePairs pairs = node_pairs(groups, node, weights, table.shape(0));
    require_width<float>(table.shape(1));
    require(ptrdiff_t(out.shape(0)) == pairs.rows && out.shape(1) == table.shape(1), "out has the wrong shape");
    require_range(begin, end, out.shape(0));
    pair_scores(pairs, table.data(), table.shape(1), out.data(), begin, end);
  }, "groups"_array, "node"_array, "weights"_array, "table"_array, "out"_array, "begin"_a, "end"_a);

  m.def("pair_sums", [](Groups groups, Nodes node, Weights weights, Matrix<const float> slopes, Matrix<float> table) {
    nb::gil_scoped_release release;
    const NodePairs pairs = node_pairs(groups, node, weights, table.shape(0));
    require_width<float>(table.shape(1));
    require(ptrdiff_t(slopes.shape(0)) == pairs.rows && slopes.shape(1) == table.shape(1), "slopes have the wrong shape");
    pair_sums(pairs, slopes.data(), table.shape(1), table.data());
  }, "groups"_array, "node"_array, "weights"_array, "slopes"_array, "table"_array);

  // See pair_gram. Nodes lie in columns of as many as `inner` has rows, and so do both nodes of a pair.
  m.def("pair_gram", [](Groups groups, Nodes node, Weights weights, Groups which, int64_t fresh, Matrix<const float> inner,
                        int64_t nodes, Matrix<float> out) {
    nb::gil_scoped_release release;
    const int64_t size = int64_t(inner.shape(0)), count = int64_t(which.shape(0)), rows = int64_t(groups.shape(0)) - 1;
    require(size >= 2 && int64_t(inner.shape(1)) == size && nodes >= size && nodes % size == 0, "nodes are not whole columns");
    require(weights.shape(0) == node.shape(0) && weights.shape(1) == 2, "weights are not pairs");
    require(0 <= fresh && fresh <= count && int64_t(out.shape(0)) == count && int64_t(out.shape(1)) == count, "out has the wrong shape");
    for (int64_t k = 0; k < count; ++k) {  // only the rows that are read: there are many calls for few rows
      require(0 <= which.data()[k] && which.data()[k] < rows, "which is out of range");
      const int64_t *own = groups.data() + which.data()[k];
      require(0 <= own[0] && own[0] <= own[1] && own[1] <= int64_t(node.shape(0)) / pair_group, "groups are out of range");
      require_below(node.data() + pair_group * own[0], size_t(pair_group * (own[1] - own[0])), size_t(nodes - 1), "a node is out of range");
    }
    const SomePairs some({groups.data(), node.data(), weights.data(), rows}, which.data(), count);
    pair_gram(some.pairs(), fresh, NodeProducts(inner.data(), size), nodes, out.data());
  }, "groups"_array, "node"_array, "weights"_array, "which"_array, "fresh"_a, "inner"_array, "nodes"_a, "out"_array);
}

// Rows of whole pairs, of which those before the cursor are done.
void require_pairs(const Vector<const int64_t>& indptr, const int64_t* cursor, ptrdiff_t rows, size_t size) {
  require_pointers(indptr, size, "indptr is out of range");
  for (ptrdiff_t i = 0; i < rows; ++i) {
    const int64_t end = indptr.data()[i + 1];
    require(indptr.data()[i] <= cursor[i] && cursor[i] <= end && (end - cursor[i]) % 2 == 0, "a row is not whole pairs");
  }
}

template <class T> void define_take_pairs(nb::module_& m) {
  using Int32s = Vector<const int32_t>;
  using Int64s = Vector<const int64_t>;

  // How many groups the rows have between two nodes, then the groups: see take_pairs.
  m.def("count_pairs", [](Int32s indices, Vector<const T> values, Int64s indptr, Vector<const int64_t> cursor, int64_t end,
                          Vector<int64_t> groups) {
    nb::gil_scoped_release release;
    const ptrdiff_t rows = ptrdiff_t(cursor.shape(0));
    require(groups.shape(0) == cursor.shape(0) + 1 && indptr.shape(0) == groups.shape(0), "groups have the wrong length");
    require(values.shape(0) == indices.shape(0), "values have the wrong length");
    require_pairs(indptr, cursor.data(), rows, indices.shape(0));
    groups.data()[0] = 0;
    std::vector<int64_t> still(cursor.data(), cursor.data() + rows);
    take_pairs(indices.data(), values.data(), indptr.data(), rows, 0, end, 1.0, still.data(), groups.data(), nullptr, nullptr);
  }, "indices"_array, "values"_array, "indptr"_array, "cursor"_array, "end"_a, "groups"_array);

  m.def("take_pairs", [](Int32s indices, Vector<const T> values, Int64s indptr, Vector<int64_t> cursor, int64_t begin,
                         int64_t end, double per_unit, Vector<int64_t> groups, Vector<uint16_t> node, Matrix<int16_t> weights) {
    nb::gil_scoped_release release;
    const ptrdiff_t rows = ptrdiff_t(cursor.shape(0));
    require(groups.shape(0) == cursor.shape(0) + 1 && indptr.shape(0) == groups.shape(0), "groups have the wrong length");
    require(values.shape(0) == indices.shape(0), "values have the wrong length");
    require_pairs(indptr, cursor.data(), rows, indices.shape(0));
    for (ptrdiff_t i = 0; i < rows; ++i) require(0 <= groups.data()[i] && groups.data()[i] <= groups.data()[i + 1], "groups are out of range");
    require(pair_group * groups.data()[rows] == int64_t(node.shape(0)) && weights.shape(0) == node.shape(0) && weights.shape(1) == 2,
            "node has the wrong length");
    take_pairs(indices.data(), values.data(), indptr.data(), rows, begin, end, per_unit, cursor.data(), groups.data(),
               node.data(), weights.data());
  }, "indices"_array, "values"_array, "indptr"_array, "cursor"_array, "begin"_a, "end"_a, "per_unit"_a, "groups"_array,
     "node"_array, "weights"_array);
}

}  // namespace

void define_words(nb::module_& m) {
  m.attr("most_vectors") = most_vectors;
  m.attr("chunk_blocks") = chunk_blocks;
  define_tables<float>(m);
  define_tables<double>(m);
  define_encode<uint8_t>(m);
  define_encode<uint16_t>(m);
  m.def("train_words", &train_words, "rows"_array, "seeds"_array, "most_rounds"_a, "tol"_a, "words"_array, "course"_array);
  define_pairs(m);
  define_take_pairs<float>(m);
  define_take_pairs<double>(m);
}

}  // namespace hilbin
