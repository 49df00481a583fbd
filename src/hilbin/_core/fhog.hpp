// Histograms of oriented gradients in square cells, and two ways to normalize them.
//
// Dalal and Triggs (2005): blocks of 2 x 2 cells scaled to length 1, cut at 0.2 and scaled again, 36 numbers each.
// Felzenszwalb et al. (2010): a cell scaled by the four blocks it belongs to, cut at 0.2 and summed over blocks, for 18
// directed and 9 undirected orientations; then, per block, the sum over the undirected ones. Cells, their order and
// the order of the 31 numbers are those of VLFeat's HOG of the variant UoCTTI.
//
// Every pixel but those of the border gives its gradient's length to the four cells around it, by distance: to the
// nearest of 18 orientations (Felzenszwalb), or to the two beside its own, by angle (Dalal and Triggs). In a color image
// its gradient is that of the channel in which it is longest.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "simd.hpp"
#include "sift.hpp"

namespace hilbin {

constexpr double pi = 3.14159265358979323846;  // M_PI is not standard
constexpr int undirected = 9, directed = 2 * undirected, fhog_length = 31, block_length = 4 * undirected;
constexpr float block_epsilon = 1e-4f, block_cut = 0.2f;

// How many cells there are along an axis: the last is at least half inside.
inline ptrdiff_t hog_cells(ptrdiff_t size, ptrdiff_t cell) { return (size + cell / 2) / cell; }

// One number for each of the four cells around a pixel: upper left, upper right, lower left, lower right.
typedef float Four __attribute__((vector_size(16)));

// For each pixel the first of the two cells around it, counted from a cell before the border, and the share of the
// second.
struct Shares {
  std::vector<ptrdiff_t> cell;
  std::vector<float> second;

  Shares(ptrdiff_t size, ptrdiff_t side) : cell(size_t(size)), second(size_t(size)) {
    for (ptrdiff_t i = 0; i < size; ++i) {
      const double at = (double(i) + 0.5) / double(side) + 0.5;
      cell[size_t(i)] = ptrdiff_t(at);
      second[size_t(i)] = float(at - std::floor(at));
    }
  }
};

// How far a gradient lies from its nearest orientation, in steps between orientations, from the tangent of the angle,
// which is at most 10 degrees.
inline Vec<float> orientation_steps(Vec<float> tangent) {
  const Vec<float> square = tangent * tangent;
  const Vec<float> series = 1.0f + square * (-1.0f / 3 + square * (1.0f / 5 + square * (-1.0f / 7)));
  return tangent * series * float(undirected / pi);
}

// The orientation nearest to each gradient, how far it is off, and its length. Lengths of the arrays are whole vectors.
inline void nearest_orientation(const float* gx, const float* gy, ptrdiff_t width, float* length, int32_t* orientation,
                                float* off) {
  float cosine[undirected], sine[undirected];
  for (int k = 0; k < undirected; ++k) {
    cosine[k] = float(std::cos(k * pi / undirected));
    sine[k] = float(std::sin(k * pi / undirected));
  }
  for (ptrdiff_t x = 0; x < width; x += lanes<float>) {
    const Vec<float> right = load(gx + x), down = load(gy + x);
    Vec<float> best = {}, beside = {};  // the gradient along its orientation, and across
    IntVec<float> at = {};
    for (int k = 0; k < undirected; ++k) {
      const Vec<float> along = right * cosine[k] + down * sine[k], size = magnitude(along);
      const IntVec<float> other = along < 0.0f, closer = size > best;
      const Vec<float> across = down * cosine[k] - right * sine[k];
      at = closer ? (other & undirected) + k : at;
      beside = closer ? (other ? -across : across) : beside;
      best = larger(best, size);
    }
    store(off + x, orientation_steps(beside / (best > 0.0f ? best : splat(1.0f))));
    store(length + x, root(right * right + down * down));
    std::memcpy(orientation + x, &at, sizeof at);
  }
}

struct HogCells {
  ptrdiff_t rows, columns, stride;  // a border of one cell lies around the cells
  std::vector<float> histogram;

  // With `between`, gradients are shared by the two orientations beside theirs.
  HogCells(const float* image, ptrdiff_t height, ptrdiff_t width, ptrdiff_t channels, ptrdiff_t cell, bool between)
      : rows(hog_cells(height, cell)), columns(hog_cells(width, cell)), stride((columns + 2) * directed),
        histogram(size_t((rows + 2) * stride), 0.0f) {
    if (height < 3 || width < 3 || rows == 0 || columns == 0) return;
    const Shares down(height, cell), across(width, cell);
    const size_t whole = size_t((width + lanes<float> - 1) / lanes<float> * lanes<float>);
    std::vector<float> gx(whole, 0.0f), gy(whole, 0.0f), length(whole), off(whole);
    std::vector<int32_t> orientation(whole);
    std::vector<Four> band(size_t(2 * stride), Four{});
    for (ptrdiff_t y = 1; y + 1 < height; ++y) {
      longest_gradient(image + y * width * channels, width, channels, gx.data(), gy.data());
      nearest_orientation(gx.data(), gy.data(), ptrdiff_t(whole), length.data(), orientation.data(), off.data());
      if (between) give_next(length.data(), orientation.data(), off.data(), width, across, down.second[size_t(y)], band.data());
      give(length.data(), orientation.data(), width, across, down.second[size_t(y)], band.data());
      const ptrdiff_t upper = down.cell[size_t(y)];
      if (y + 2 == height || down.cell[size_t(y + 1)] != upper) hand_out(band, upper);
    }
  }

  const float* at(ptrdiff_t y, ptrdiff_t x) const { return histogram.data() + (y + 1) * stride + (x + 1) * directed; }

 private:
  static void longest_gradient(const float* row, ptrdiff_t width, ptrdiff_t channels, float* gx, float* gy) {
    const ptrdiff_t line = width * channels;
    for (ptrdiff_t x = 1; x + 1 < width; ++x) {
      const float* at = row + x * channels;
      float right = at[channels] - at[-channels], down = at[line] - at[-line];
      for (ptrdiff_t c = 1; c < channels; ++c) {
        const float r = at[channels + c] - at[c - channels], d = at[line + c] - at[c - line];
        const bool longer = r * r + d * d > right * right + down * down;
        right = longer ? r : right;
        down = longer ? d : down;
      }
      gx[x] = right, gy[x] = down;
    }
  }

  // Adds to band[(left cell, orientation)] what each pixel of a row gives to the cells around it: one addition for four
  // cells. Every other pixel has a band of its own, or equal neighbors would wait for each other.
  void give(const float* length, const int32_t* orientation, ptrdiff_t width, const Shares& across, float lower,
            Four* band) const {
    const Four down = {1 - lower, 1 - lower, lower, lower};
    for (ptrdiff_t x = 1; x + 1 < width; ++x) {
      const float right = across.second[size_t(x)];
      const Four share = {1 - right, right, 1 - right, right};
      band[(x & 1) * stride + across.cell[size_t(x)] * directed + orientation[x]] += length[x] * down * share;
    }
  }

  // Gives the next orientation its share of each gradient, and takes it from the length that is left to the nearest.
  void give_next(float* length, const int32_t* orientation, const float* off, ptrdiff_t width, const Shares& across,
                 float lower, Four* band) const {
    std::vector<float> part(size_t(width), 0.0f);
    std::vector<int32_t> next(size_t(width), 0);
    for (ptrdiff_t x = 1; x + 1 < width; ++x) {
      part[size_t(x)] = std::fabs(off[x]) * length[x];
      length[x] -= part[size_t(x)];
      const int32_t moved = orientation[x] + (off[x] > 0 ? 1 : directed - 1);
      next[size_t(x)] = moved >= directed ? moved - directed : moved;
    }
    give(part.data(), next.data(), width, across, lower, band);
  }

  // Moves the sums of a band to the cells above and below it.
  void hand_out(std::vector<Four>& band, ptrdiff_t upper_cell) {
    float *upper = histogram.data() + upper_cell * stride, *lower = upper + stride;
    for (ptrdiff_t i = 0; i < stride - directed; ++i) {
      const Four sum = band[size_t(i)] + band[size_t(stride + i)];
      upper[i] += sum[0];
      upper[i + directed] += sum[1];
      lower[i] += sum[2];
      lower[i + directed] += sum[3];
    }
    std::fill(band.begin(), band.end(), Four{});
  }
};

// The squared length of every cell's undirected histogram.
template <class Cells> inline std::vector<float> cell_energies(const Cells& cells) {
  std::vector<float> energy;
  energy.reserve(size_t(cells.rows * cells.columns));
  for (ptrdiff_t y = 0; y < cells.rows; ++y)
    for (ptrdiff_t x = 0; x < cells.columns; ++x) {
      const float* h = cells.at(y, x);
      float sum = 0;
      for (int k = 0; k < undirected; ++k) sum += (h[k] + h[k + undirected]) * (h[k] + h[k + undirected]);
      energy.push_back(sum);
    }
  return energy;
}

// One cell by the four blocks around it: upper left, upper right, lower left, lower right.
inline void fhog_cell(const float* histogram, const float* scale, float* out) {
  using V = Few<float, 8>::V;
  constexpr int folded = 24, all = 40;  // whole vectors: directed orientations, zeros, undirected ones, zeros
  float each[all] = {}, sum[all];
  std::copy(histogram, histogram + directed, each);
  for (int k = 0; k < undirected; ++k) each[folded + k] = histogram[k] + histogram[k + undirected];
  V texture[4] = {};
  for (int k = 0; k < all; k += Few<float, 8>::lanes) {
    const V h = load_as_vector<V>(each + k);
    V total = {};
    for (int b = 0; b < 4; ++b) {
      const V cut = smaller(h * scale[b], V{} + block_cut);
      total += cut;
      if (k >= folded) texture[b] += cut;
    }
    store(sum + k, 0.5f * total);
  }
  std::copy(sum, sum + directed, out);
  std::copy(sum + folded, sum + folded + undirected, out + directed);
  for (int b = 0; b < 4; ++b) out[directed + undirected + b] = lane_sum(texture[b]) * 0.23570226f;  // 1 / sqrt(18)
}

// Calls put(y, x, the 31 numbers) for every cell of a grid of histograms. A block beyond the border has the border's
// cells twice.
template <class Cells, class Put> inline void fhog(const Cells& cells, Put put) {
  const ptrdiff_t rows = cells.rows, columns = cells.columns;
  if (rows == 0 || columns == 0) return;
  float found[fhog_length];
  const std::vector<float> energy = cell_energies(cells);
  std::vector<float> scale(size_t((rows + 1) * (columns + 1)));  // of the block above and left of each cell
  for (ptrdiff_t y = 0; y <= rows; ++y)
    for (ptrdiff_t x = 0; x <= columns; ++x) {
      const float *above = energy.data() + std::max<ptrdiff_t>(y - 1, 0) * columns, *below = energy.data() + std::min(y, rows - 1) * columns;
      const ptrdiff_t left = std::max<ptrdiff_t>(x - 1, 0), right = std::min(x, columns - 1);
      const float sum = above[left] + above[right] + below[left] + below[right];
      scale[size_t(y * (columns + 1) + x)] = 1 / std::sqrt(sum + block_epsilon);
    }
  for (ptrdiff_t y = 0; y < rows; ++y)
    for (ptrdiff_t x = 0; x < columns; ++x) {
      const float *upper = scale.data() + y * (columns + 1) + x, *lower = upper + columns + 1;
      const float around[4] = {upper[0], upper[1], lower[0], lower[1]};
      fhog_cell(cells.at(y, x), around, found);
      put(y, x, found);
    }
}

// The cells one after the other.
inline void fhog(const HogCells& cells, float* out) {
  fhog(cells, [&](ptrdiff_t y, ptrdiff_t x, const float* found) HILBIN_INLINE_LAMBDA {
    std::copy(found, found + fhog_length, out + (y * cells.columns + x) * fhog_length);
  });
}

inline void scale_block(float* block) {
  float sum = block_epsilon;
  for (int k = 0; k < block_length; ++k) sum += block[k] * block[k];
  const float scale = 1 / std::sqrt(sum);
  for (int k = 0; k < block_length; ++k) block[k] *= scale;
}

// Blocks of 2 x 2 cells in reading order.
inline void hog_blocks(const HogCells& cells, float* out) {
  for (ptrdiff_t y = 0; y + 1 < cells.rows; ++y)
    for (ptrdiff_t x = 0; x + 1 < cells.columns; ++x, out += block_length) {
      for (int c = 0; c < 4; ++c) {
        const float* h = cells.at(y + c / 2, x + c % 2);
        for (int k = 0; k < undirected; ++k) out[c * undirected + k] = h[k] + h[k + undirected];
      }
      scale_block(out);
      for (int k = 0; k < block_length; ++k) out[k] = std::min(out[k], block_cut);
      scale_block(out);
    }
}

}  // namespace hilbin
