// Rows of product-quantized codes: sums of table look-ups, sums into tables, and rows decoded.
//
// Codes come in chunks of 32 blocks, chunk by chunk, and in a chunk row by row: the tables of a few blocks stay in
// the cache while all rows use them. A table has a number for every word and task of a block; tasks are one, or whole
// vectors.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "simd.hpp"

namespace hilbin {

constexpr int chunk_blocks = 32, most_vectors = 3;

template <class Code> struct WordCodes {
  const Code* codes;
  ptrdiff_t chunk_stride, rows, blocks;
  const Code* at(ptrdiff_t block, ptrdiff_t row) const {
    return codes + block / chunk_blocks * chunk_stride + row * chunk_blocks + block % chunk_blocks;
  }
};

// Tables of all blocks: `words` rows each, `width` tasks wide.
template <class T> struct WordTables {
  T* numbers;
  ptrdiff_t words, width;
  T* of(ptrdiff_t block) const { return numbers + block * words * width; }
};

// Calls use(number of vectors) for the width of a table of several tasks.
template <class T, class Use> HILBIN_INLINE void with_vectors(ptrdiff_t width, Use use) {
  if (width == lanes<T>) return use(std::integral_constant<int, 1>{});
  if (width == 2 * lanes<T>) return use(std::integral_constant<int, 2>{});
  use(std::integral_constant<int, most_vectors>{});
}

// As many blocks of one chunk as have tables that fit the first cache, or the second if there are several tasks.
template <class T> ptrdiff_t blocks_at_once(const WordTables<T>& tables) {
  const ptrdiff_t bytes = tables.words * tables.width * ptrdiff_t(sizeof(T)), cache = tables.width == 1 ? 16 << 10 : 128 << 10;
  ptrdiff_t few = 4;
  while (few < chunk_blocks && 2 * few * bytes <= cache) few *= 2;
  return few;
}

// Calls use(words), a constant for the most common number of words: then tables are found without arithmetic.
template <class Use> HILBIN_INLINE void with_words(ptrdiff_t words, Use use) {
  if (words == 256) return use(std::integral_constant<ptrdiff_t, 256>{});
  use(words);
}

// The loops over all rows, of a few blocks of one chunk. `Words` is a number or a constant.
template <class T, class Code, class Words> struct FewBlocks {
  const Code* codes;
  ptrdiff_t blocks;
  T* table;
  Words words;

  // out[r] += the sum of the tables at the codes of `rows` rows, side by side: additions do not wait for each other.
  template <int rows> HILBIN_INLINE void look_up(ptrdiff_t first, std::remove_const_t<T>* out) const {
    std::remove_const_t<T> sums[rows] = {};
    const T* at = table;
    for (ptrdiff_t j = 0; j < blocks; ++j, at += words)
      for (int r = 0; r < rows; ++r) sums[r] += at[codes[(first + r) * chunk_blocks + j]];
    for (int r = 0; r < rows; ++r) out[first + r] += sums[r];
  }

  // Calls use(table, code) for all blocks of a row.
  template <int at_once, ptrdiff_t width, class Use> HILBIN_INLINE void each(ptrdiff_t row, Use use) const {
    const Code* code = codes + row * chunk_blocks;
    T* at = table;
    ptrdiff_t left = blocks;
    for (; left >= at_once; left -= at_once, code += at_once, at += at_once * words * width) {
#pragma GCC unroll 16
      for (int j = 0; j < at_once; ++j) use(at + j * words * width, code[j]);
    }
    for (; left > 0; --left, ++code, at += words * width) use(at, *code);
  }

  template <int vectors> HILBIN_INLINE void look_up_vectors(ptrdiff_t row, std::remove_const_t<T>* out) const {
    using Number = std::remove_const_t<T>;
    constexpr ptrdiff_t width = vectors * lanes<Number>;
    Vec<Number> sums[vectors];
    for (int v = 0; v < vectors; ++v) sums[v] = load(out + v * lanes<Number>);
    each<4, width>(row, [&sums](const T* at, Code code) HILBIN_INLINE_LAMBDA {
      for (int v = 0; v < vectors; ++v) sums[v] += load(at + code * width + v * lanes<Number>);
    });
    for (int v = 0; v < vectors; ++v) store(out + v * lanes<Number>, sums[v]);
  }

  template <int vectors> HILBIN_INLINE void add_vectors(ptrdiff_t row, const T* slopes) const {
    constexpr ptrdiff_t width = vectors * lanes<T>;
    Vec<T> slope[vectors];
    for (int v = 0; v < vectors; ++v) slope[v] = load(slopes + v * lanes<T>);
    each<4, width>(row, [slope](T* at, Code code) HILBIN_INLINE_LAMBDA {
      T* const to = at + code * width;
      for (int v = 0; v < vectors; ++v) store(to + v * lanes<T>, load(to + v * lanes<T>) + slope[v]);
    });
  }
};

// Calls use(few) for all blocks, a few at a time.
template <class T, class Code, class Use>
HILBIN_INLINE void each_few(const WordCodes<Code>& codes, const WordTables<T>& tables, Use use) {
  const ptrdiff_t few = blocks_at_once(tables);
  with_words(tables.words, [&](auto words) {
    for (ptrdiff_t first = 0; first < codes.blocks; first += few)
      use(FewBlocks<T, Code, decltype(words)>{codes.at(first, 0), std::min(few, codes.blocks - first), tables.of(first), words});
  });
}

// out[i, task] += the sum over the blocks of table[block, code, task].
template <class T, class Code> void word_scores(const WordCodes<Code>& codes, const WordTables<const T>& tables, T* const out) {
  constexpr int at_once = 8;
  const ptrdiff_t rows = codes.rows;
  each_few(codes, tables, [=](auto few) {
    if (tables.width == 1) {
      ptrdiff_t i = 0;
      for (; i + at_once <= rows; i += at_once) few.template look_up<at_once>(i, out);
      for (; i < rows; ++i) few.template look_up<1>(i, out);
      return;
    }
    with_vectors<T>(tables.width, [=](auto vectors) {
      for (ptrdiff_t i = 0; i < rows; ++i) few.template look_up_vectors<vectors()>(i, out + i * vectors() * lanes<T>);
    });
  });
}

// Calls use(i) for the rows whose slopes are not all 0.
class SlopingRows {
 public:
  template <class T> SlopingRows(const T* slopes, ptrdiff_t rows, ptrdiff_t width) : rows(rows) {
    for (ptrdiff_t i = 0; i < rows; ++i)
      if (std::any_of(slopes + i * width, slopes + (i + 1) * width, [](T s) { return s != 0; })) some.push_back(i);
  }
  template <class Use> HILBIN_INLINE void each(Use use) const {
    if (ptrdiff_t(some.size()) < rows)
      for (const ptrdiff_t i : some) use(i);
    else  // a quarter faster than from the list
      for (ptrdiff_t i = 0, end = rows; i < end; ++i) use(i);
  }

 private:
  ptrdiff_t rows;
  std::vector<ptrdiff_t> some;
};

// table[block, code, task] += slopes[i, task] for all rows and blocks.
template <class T, class Code>
void word_sums(const WordCodes<Code>& codes, const T* const slopes, const SlopingRows& rows, const WordTables<T>& tables) {
  each_few(codes, tables, [=, &rows](auto few) {
    if (tables.width == 1)
      return rows.each([=](ptrdiff_t i) HILBIN_INLINE_LAMBDA {
        few.template each<16, 1>(i, [slope = slopes[i]](T* at, Code code) HILBIN_INLINE_LAMBDA { at[code] += slope; });
      });
    with_vectors<T>(tables.width, [=, &rows](auto vectors) {
      rows.each([=](ptrdiff_t i) HILBIN_INLINE_LAMBDA {
        few.template add_vectors<vectors()>(i, slopes + i * vectors() * lanes<T>);
      });
    });
  });
}

// Rows of components instead of codes; here a word's numbers stand side by side: words[block, word, g].
template <class T, class Code>
void decode(const WordCodes<Code>& codes, const T* words, ptrdiff_t count, ptrdiff_t size, T* out, ptrdiff_t row_stride) {
  for (ptrdiff_t first = 0; first < codes.blocks; first += chunk_blocks) {
    const ptrdiff_t here = std::min<ptrdiff_t>(chunk_blocks, codes.blocks - first);
    for (ptrdiff_t i = 0; i < codes.rows; ++i) {
      const Code* at = codes.at(first, i);
      const T* block = words + first * count * size;
      T* to = out + i * row_stride + first * size;
      for (ptrdiff_t j = 0; j < here; ++j, block += count * size, to += size) {
        const T* from = block + at[j] * size;
        ptrdiff_t g = 0;
        for (; g + lanes<T> <= size; g += lanes<T>) store(to + g, load(from + g));
        for (; g < size; ++g) to[g] = from[g];
      }
    }
  }
}

}  // namespace hilbin
