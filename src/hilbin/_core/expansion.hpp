// Tables of words: weights expanded to them for scores, sums in them reduced to gradients.
//
// Words come as columns: for every block and component, the numbers of all its words.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "words.hpp"

namespace hilbin {

// One block of words, as columns: `size` components of `words` numbers.
template <class T> struct WordColumns {
  const T* numbers;
  ptrdiff_t size, words;
  const T* component(ptrdiff_t g) const { return numbers + g * words; }
};

// table[word, task] = sum over the components of word[g] weights[g, task], of some words and of all.
template <int at_once, int vectors, class T>
HILBIN_INLINE void expand_words(const WordColumns<T>& block, const T* weights, ptrdiff_t first, T* table) {
  constexpr ptrdiff_t width = vectors * lanes<T>;
  Vec<T> sums[at_once][vectors] = {};
  for (ptrdiff_t g = 0; g < block.size; ++g, weights += width) {
    const T* word = block.component(g) + first;
    for (int w = 0; w < at_once; ++w)  // in this order sums, weights and a number are all that registers hold
      for (int v = 0; v < vectors; ++v) sums[w][v] += word[w] * load(weights + v * lanes<T>);
  }
  for (int w = 0; w < at_once; ++w)
    for (int v = 0; v < vectors; ++v) store(table + w * width + v * lanes<T>, sums[w][v]);
}
template <class T> void expand_block(const WordColumns<T>& block, const T* weights, ptrdiff_t width, T* table) {
  if (width == 1) {
    std::fill(table, table + block.words, T(0));
    for (ptrdiff_t g = 0; g < block.size; ++g) {
      const T *column = block.component(g), weight = weights[g];
      for (ptrdiff_t w = 0; w < block.words; ++w) table[w] += column[w] * weight;
    }
    return;
  }
  with_vectors<T>(width, [&](auto vectors) {
    constexpr ptrdiff_t at_once = 4;  // words, whose sums fit the registers
    ptrdiff_t w = 0;
    for (; w + at_once <= block.words; w += at_once) expand_words<at_once, vectors()>(block, weights, w, table + w * width);
    for (; w < block.words; ++w) expand_words<1, vectors()>(block, weights, w, table + w * width);
  });
}

template <class T> inline T dot(const T* a, const T* b, ptrdiff_t count) {
  Vec<T> sums[4] = {};
  ptrdiff_t i = 0;
  for (; i + 4 * lanes<T> <= count; i += 4 * lanes<T>)
    for (int v = 0; v < 4; ++v) sums[v] += load(a + i + v * lanes<T>) * load(b + i + v * lanes<T>);
  T total = 0;
  for (; i < count; ++i) total += a[i] * b[i];
  const Vec<T> both = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int lane = 0; lane < lanes<T>; ++lane) total += both[lane];
  return total;
}

// weights[g, task] += sum over the words of word[g] table[word, task].
template <class T> void reduce_block(const WordColumns<T>& block, const T* table, ptrdiff_t width, T* weights) {
  if (width == 1) {
    for (ptrdiff_t g = 0; g < block.size; ++g) weights[g] += dot(block.component(g), table, block.words);
    return;
  }
  with_vectors<T>(width, [&](auto vectors) {
    constexpr ptrdiff_t at_once = 4;  // components, whose sums fit the registers
    for (ptrdiff_t first = 0; first < block.size; first += at_once) {
      const T* column[at_once];  // what is too much is computed again, and not kept
      for (ptrdiff_t g = 0; g < at_once; ++g) column[g] = block.component(std::min(first + g, block.size - 1));
      Vec<T> sums[at_once][vectors()] = {};
      for (ptrdiff_t w = 0; w < block.words; ++w)
        for (ptrdiff_t g = 0; g < at_once; ++g)
          for (int v = 0; v < vectors(); ++v) sums[g][v] += column[g][w] * load(table + w * width + v * lanes<T>);
      for (ptrdiff_t g = 0; g < std::min(at_once, block.size - first); ++g)
        for (int v = 0; v < vectors(); ++v) {
          T* const to = weights + (first + g) * width + v * lanes<T>;
          store(to, load(to) + sums[g][v]);
        }
    }
  });
}

// The words of all blocks, and numbers of every component and task that they are multiplied by, or that they give.
template <class T, class Weight> struct Words {
  const T* columns;
  Weight* weights;
  ptrdiff_t size, words, width;
  WordColumns<T> block(ptrdiff_t b) const { return {columns + b * size * words, size, words}; }
  Weight* weights_of(ptrdiff_t b) const { return weights + b * size * width; }
};

// Calls use(codes, first block, tables) for a few blocks at a time. Their tables lie in room that stays in the cache,
// where no vector is on two of its lines.
template <class T, class Code, class Weight, class Use>
void each_few_in_room(const WordCodes<Code>& codes, const Words<T, Weight>& words, Use use) {
  struct alignas(64) Line {
    char bytes[64];
  };
  WordTables<T> tables{nullptr, words.words, words.width};
  const ptrdiff_t few = blocks_at_once(tables);
  std::vector<Line> room(size_t(few * words.words * words.width) * sizeof(T) / sizeof(Line) + 1);
  tables.numbers = reinterpret_cast<T*>(room.data());
  for (ptrdiff_t first = 0; first < codes.blocks; first += few)
    use(WordCodes<Code>{codes.at(first, 0), codes.chunk_stride, codes.rows, std::min(few, codes.blocks - first)}, first, tables);
}

// out[i, task] += the row that is coded times the weights.
template <class T, class Code> void coded_scores(const WordCodes<Code>& all, const Words<T, const T>& words, T* out) {
  each_few_in_room<T>(all, words, [&](const WordCodes<Code>& codes, ptrdiff_t first, const WordTables<T>& tables) {
    for (ptrdiff_t b = 0; b < codes.blocks; ++b)
      expand_block(words.block(first + b), words.weights_of(first + b), words.width, tables.of(b));
    word_scores(codes, WordTables<const T>{tables.numbers, tables.words, tables.width}, out);
  });
}

// weights[g, task] += the sum of the rows that are coded, times their slopes.
template <class T, class Code> void coded_sums(const WordCodes<Code>& all, const T* slopes, const Words<T, T>& words) {
  const SlopingRows rows(slopes, all.rows, words.width);
  each_few_in_room<T>(all, words, [&](const WordCodes<Code>& codes, ptrdiff_t first, const WordTables<T>& tables) {
    std::fill(tables.numbers, tables.of(codes.blocks), T(0));
    word_sums(codes, slopes, rows, tables);
    for (ptrdiff_t b = 0; b < codes.blocks; ++b)
      reduce_block(words.block(first + b), tables.of(b), words.width, words.weights_of(first + b));
  });
}

}  // namespace hilbin
