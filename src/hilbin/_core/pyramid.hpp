// Cells of gradients of an image at many scales, at two sizes of cells.
//
// A level is the one before, resized by bilinear interpolation. Its cells of 8 pixels are those of FHOG (fhog.hpp) and
// a 32nd channel that is 1 outside the image: `pad` cells of the outside lie around them. Rows of planes: the numbers of
// a row of cells are 32 planes of the row's width, so that all a filter sees of some rows lies together.
//
// Nodes are cells at half the distance. The pixels of a level are given to nodes at multiples of 4 by hats of half-width
// 4. Hats refine, so the histogram of the cell i of 8 pixels, whose center is the node 2i + 1, is
// N[2i] / 2 + N[2i + 1] + N[2i + 2] / 2 along each axis: one pass over the pixels gives both.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fhog.hpp"
#include "simd.hpp"

namespace hilbin {

constexpr ptrdiff_t cell_side = 8, cell_channels = 32, outside_channel = fhog_length;

// An image as planes of float, with room behind them that vectors may read.
struct Planes {
  ptrdiff_t channels, height, width;
  std::vector<float> values;

  Planes(ptrdiff_t channels, ptrdiff_t height, ptrdiff_t width)
      : channels(channels), height(height), width(width), values(size_t(channels * height * width) + 2 * lanes<float>) {}

  float* row(ptrdiff_t c, ptrdiff_t y) { return values.data() + (c * height + y) * width; }
  const float* row(ptrdiff_t c, ptrdiff_t y) const { return values.data() + (c * height + y) * width; }
};

// Pixels of an image (height, width, channels), times `unit`.
template <class T> inline Planes to_planes(const T* image, ptrdiff_t height, ptrdiff_t width, ptrdiff_t channels, float unit) {
  Planes out(channels, height, width);
  for (ptrdiff_t y = 0; y < height; ++y)
    for (ptrdiff_t c = 0; c < channels; ++c) {
      const T* from = image + y * width * channels + c;
      float* to = out.row(c, y);
      for (ptrdiff_t x = 0; x < width; ++x) to[x] = unit * float(from[x * channels]);
    }
  return out;
}

// Where the centers of the pixels of a resized axis lie: the pixel before, and the share of the next one.
struct Between {
  std::vector<int32_t> first;
  std::vector<float> share;

  Between(ptrdiff_t from, ptrdiff_t to) : first(size_t(to)), share(size_t(to)) {
    for (ptrdiff_t i = 0; i < to; ++i) {
      const double exact = (double(i) + 0.5) * double(from) / double(to) - 0.5;
      const double at = std::min(std::max(exact, 0.0), double(from - 1));
      first[size_t(i)] = int32_t(std::min(ptrdiff_t(at), std::max<ptrdiff_t>(from - 2, 0)));
      share[size_t(i)] = float(at - first[size_t(i)]);
    }
  }
};

// Values between the pixels of one row. Neighbors of four pixels of the result lie within one vector unless the row is
// made shorter than half.
class RowSampler {
 public:
  RowSampler(ptrdiff_t from, ptrdiff_t to) : at_(from, to), size_(to) {
#if defined(__AVX2__)
    fours_ = to / 4;
    order_.resize(size_t(8 * fours_));
    for (ptrdiff_t i = 0; i < 4 * fours_; ++i) {
      const int32_t step = at_.first[size_t(i)] - at_.first[size_t(i & ~3)];
      if (step > 6) fours_ = 0;
      order_[size_t((i / 4) * 8 + i % 4)] = step;
      order_[size_t((i / 4) * 8 + 4 + i % 4)] = step + 1;
    }
#endif
  }

  // The row may be read a vector beyond its end.
  void operator()(const float* row, float* out) const {
    ptrdiff_t x = 0;
#if defined(__AVX2__)
    for (; x < 4 * fours_; x += 4) {
      const __m256 near = _mm256_loadu_ps(row + at_.first[size_t(x)]);
      const __m256 both = _mm256_permutevar8x32_ps(near, _mm256_loadu_si256((const __m256i*)(order_.data() + 2 * x)));
      const Four left = (Four)_mm256_castps256_ps128(both), right = (Four)_mm256_extractf128_ps(both, 1);
      Four share;
      std::memcpy(&share, at_.share.data() + x, sizeof share);
      const Four value = left + share * (right - left);
      std::memcpy(out + x, &value, sizeof value);
    }
#endif
    for (; x < size_; ++x) {
      const float *left = row + at_.first[size_t(x)], share = at_.share[size_t(x)];
      out[x] = left[0] + share * (left[1] - left[0]);
    }
  }

 private:
  Between at_;
  ptrdiff_t size_;
  [[maybe_unused]] ptrdiff_t fours_ = 0;  // without AVX2
  std::vector<int32_t> order_;
};

// Bilinear interpolation at the centers of the new pixels.
inline Planes resized(const Planes& image, ptrdiff_t height, ptrdiff_t width) {
  Planes out(image.channels, height, width);
  const Between down(image.height, height);
  const RowSampler across(image.width, width);
  std::vector<float> row(size_t(image.width) + 2 * lanes<float>, 0.0f);
  for (ptrdiff_t c = 0; c < image.channels; ++c)
    for (ptrdiff_t y = 0; y < height; ++y) {
      const ptrdiff_t first = down.first[size_t(y)];
      const float *upper = image.row(c, first), *lower = image.row(c, std::min(first + 1, image.height - 1));
      const float share = down.share[size_t(y)];
      for (ptrdiff_t x = 0; x < image.width; x += lanes<float>) {
        const Vec<float> a = load(upper + x);
        store(row.data() + x, a + share * (load(lower + x) - a));
      }
      row[size_t(image.width)] = row[size_t(image.width - 1)];
      across(row.data(), out.row(c, y));
    }
  return out;
}

// Length and orientation of the gradients of a row of pixels, 0 in the first and last. The gradient of a pixel is that
// of the channel in which it is longest. Orientations are told by comparisons in the first quadrant.
inline void gradients(const Planes& image, ptrdiff_t y, float* length, int32_t* orientation) {
  const float limits[4] = {float(std::tan(pi / 18)), float(std::tan(pi / 6)), float(std::tan(5 * pi / 18)),
                           float(std::tan(7 * pi / 18))};
  for (ptrdiff_t x = 1; x + 1 < image.width; x += lanes<float>) {
    Vec<float> right = {}, down = {}, square = splat(-1.0f);
    for (ptrdiff_t c = 0; c < image.channels; ++c) {
      const float *at = image.row(c, y) + x, *above = at - image.width, *below = at + image.width;
      const Vec<float> r = load(at + 1) - load(at - 1), d = load(below) - load(above), s = r * r + d * d;
      const IntVec<float> longer = s > square;
      right = longer ? r : right;
      down = longer ? d : down;
      square = larger(s, square);
    }
    const Vec<float> across = magnitude(right), along = magnitude(down);
    IntVec<float> steps = {};
    for (int k = 0; k < 4; ++k) steps -= along > limits[k] * across;
    const IntVec<float> left = right < 0.0f, up = down < 0.0f;
    IntVec<float> o = ((left ^ up) ? -steps : steps) + (left & undirected) + (~left & up & directed);
    o = (o == directed) ? IntVec<float>{} : o;
    store(length + x, root(square));
    std::memcpy(orientation + x, &o, sizeof o);
  }
  length[0] = 0;
  std::fill(length + image.width - 1, length + image.width - 1 + lanes<float>, 0.0f);
  orientation[0] = 0;
  std::fill(orientation + image.width - 1, orientation + image.width - 1 + lanes<float>, 0);
}

// Histograms of the gradients around places `side` pixels apart, of which the first is at the pixel `first`. Pixels
// between four places are summed by themselves, a share for each of the four.
template <int side> class GradientGrid {
 public:
  GradientGrid(const Planes& image, ptrdiff_t first)
      : first_(first), rows_(places(image.height)), columns_(places(image.width)), stride_(columns_ * directed),
        width_(image.width + std::max(4 * side, side + lanes<float>)), histogram_(size_t(rows_ * stride_), 0.0f),
        length_(size_t(side * width_), 0.0f), orientation_(size_t(side * width_), 0) {
    if (image.height < 3 || image.width < 3) return;
    for (ptrdiff_t upper = 0; upper + 1 < rows_; ++upper) {
      for (ptrdiff_t j = 0; j < side; ++j) {
        const ptrdiff_t y = first + upper * side + j;
        float* length = length_.data() + j * width_ + side;  // pixels before the first have no gradients
        if (y >= 1 && y + 1 < image.height) gradients(image, y, length, orientation_.data() + j * width_ + side);
        else std::fill(length, length + image.width, 0.0f);
      }
      for (ptrdiff_t left = 0; left + 1 < columns_; ++left) give(upper, left);
    }
  }

  const float* at(ptrdiff_t y, ptrdiff_t x) const { return histogram_.data() + y * stride_ + x * directed; }

 private:
  // Enough for all pixels to lie between places, and for the nodes of all cells.
  ptrdiff_t places(ptrdiff_t size) const { return (size - 1 - first_) / side + 3; }

  // Every other pixel has sums of its own, or equal neighbors would wait for each other.
  void give(ptrdiff_t upper, ptrdiff_t left) {
    Four sums[2][directed] = {};
    const ptrdiff_t begin = side + first_ + left * side;
    for (int j = 0; j < side; ++j) {
      const float low = (float(j) + 0.5f) / side;
      const Four down = {1 - low, 1 - low, low, low};
      const float* length = length_.data() + j * width_ + begin;
      const int32_t* orientation = orientation_.data() + j * width_ + begin;
#pragma GCC unroll 8
      for (int i = 0; i < side; ++i) {
        const float right = (float(i) + 0.5f) / side;
        const Four share = {1 - right, right, 1 - right, right};
        sums[i & 1][orientation[i]] += length[i] * (down * share);
      }
    }
    float *above = histogram_.data() + upper * stride_ + left * directed, *below = above + stride_;
    for (int k = 0; k < directed; ++k) {
      const Four sum = sums[0][k] + sums[1][k];
      above[k] += sum[0];
      above[k + directed] += sum[1];
      below[k] += sum[2];
      below[k + directed] += sum[3];
    }
  }

  ptrdiff_t first_, rows_, columns_, stride_, width_;
  std::vector<float> histogram_, length_;
  std::vector<int32_t> orientation_;
};

// Histograms of a grid as fhog() takes them.
struct Histograms {
  ptrdiff_t rows, columns, stride;
  const float* first;

  const float* at(ptrdiff_t y, ptrdiff_t x) const { return first + y * stride + x * directed; }
};

// Half of the neighbors and a whole of the middle, along one axis, of every other place.
inline void halve(const float* from, ptrdiff_t step, ptrdiff_t count, ptrdiff_t size, float* to) {
  for (ptrdiff_t i = 0; i < count; ++i, from += 2 * step, to += size)
    for (ptrdiff_t k = 0; k < size; ++k) to[k] = 0.5f * (from[k] + from[k + 2 * step]) + from[k + step];
}

// The histograms of cells of those of nodes.
inline std::vector<float> cells_of_nodes(const Histograms& nodes, ptrdiff_t rows, ptrdiff_t columns) {
  const ptrdiff_t size = columns * directed;
  std::vector<float> half(size_t(rows * nodes.stride)), out(size_t(rows * size));
  halve(nodes.first, nodes.stride, rows, nodes.stride, half.data());
  for (ptrdiff_t y = 0; y < rows; ++y) halve(half.data() + y * nodes.stride, directed, columns, directed, out.data() + y * size);
  return out;
}

// FHOG as rows of planes, with `pad` cells around that are outside.
inline void put_cells(const Histograms& cells, ptrdiff_t pad, float* out) {
  const ptrdiff_t height = cells.rows + 2 * pad, width = cells.columns + 2 * pad, row = cell_channels * width;
  std::fill(out, out + height * row, 0.0f);
  for (ptrdiff_t y = 0; y < height; ++y) {
    float* outside = out + y * row + outside_channel * width;
    const bool inside = y >= pad && y < pad + cells.rows;
    std::fill(outside, outside + (inside ? pad : width), 1.0f);
    if (inside) std::fill(outside + pad + cells.columns, outside + width, 1.0f);
  }
  fhog(cells, [&](ptrdiff_t y, ptrdiff_t x, const float* found) HILBIN_INLINE_LAMBDA {
    float* to = out + (y + pad) * row + x + pad;
    for (int k = 0; k < fhog_length; ++k) to[k * width] = found[k];
  });
}

// Cells of one level and, unless `nodes` is null, its nodes, with twice as many around.
inline void put_level(const Planes& image, ptrdiff_t pad, float* cells, float* nodes) {
  const ptrdiff_t rows = hog_cells(image.height, cell_side), columns = hog_cells(image.width, cell_side);
  if (!nodes) {
    const GradientGrid<cell_side> grid(image, -cell_side / 2);  // the first place is that of the cell before the border
    put_cells({rows, columns, grid.at(1, 0) - grid.at(0, 0), grid.at(1, 1)}, pad, cells);
    return;
  }
  const GradientGrid<cell_side / 2> grid(image, 0);
  const Histograms found = {2 * rows + 1, 2 * columns + 1, grid.at(1, 0) - grid.at(0, 0), grid.at(0, 0)};
  const std::vector<float> halved = cells_of_nodes(found, rows, columns);
  put_cells({rows, columns, columns * directed, halved.data()}, pad, cells);
  put_cells(found, 2 * pad, nodes);
}

}  // namespace hilbin
