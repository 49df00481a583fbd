// Dense SIFT with a flat window: histograms of gradient orientations in 4 x 4 bins around the points of a grid.
//
// Lowe (2004); the geometry, the layout and the weights of the bins are those of VLFeat's dense SIFT with a flat
// window (Vedaldi and Fulkerson 2008). Every pixel shares its gradient's length between the two nearest of eight
// orientations; a bin is the triangle filter of these eight maps at its center, times the mean of a Gaussian window
// over the bin. Descriptors are scaled to length 1, cut at 0.2 and scaled again.
//
// Eight orientations are the axes and the diagonals: with r the smaller over the larger of |gx| and |gy|, the share
// of the diagonal is atan(r) / (pi / 4) and no angle is needed. Only the rows and columns that are centers of bins are
// filtered; the maps of the few rows under the filter stay in the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "simd.hpp"

namespace hilbin {

constexpr int orientations = 8, bins = 4, sift_length = bins * bins * orientations;

// How many frames fit along an axis: their first and last bins are centered inside the image.
inline ptrdiff_t sift_frames(ptrdiff_t size, ptrdiff_t bin, ptrdiff_t step) {
  if (bin >= size) return 0;
  const ptrdiff_t room = size - 1 - (bins - 1) * bin;
  return room < 0 ? 0 : room / step + 1;
}

// The centers of bins along one axis, and what of the axis is under the triangle at each. Pixels beyond the border
// are as the border's.
struct Samples {
  ptrdiff_t width;                              // of the triangle
  std::vector<ptrdiff_t> center, first, count;  // of the pixels under the triangle
  std::vector<float> weight;                    // `width` for each center
  std::vector<ptrdiff_t> of_frame;              // the centers of a frame's four bins

  Samples(ptrdiff_t size, ptrdiff_t bin, ptrdiff_t step) : width(2 * bin - 1) {
    const ptrdiff_t frames = sift_frames(size, bin, step);
    std::vector<ptrdiff_t> number(size_t(size), -1);
    for (ptrdiff_t f = 0; f < frames; ++f)
      for (int b = 0; b < bins; ++b) number[size_t(f * step + b * bin)] = 0;
    for (ptrdiff_t i = 0; i < size; ++i)
      if (number[size_t(i)] == 0) {
        number[size_t(i)] = ptrdiff_t(center.size());
        add(i, size, bin);
      }
    for (ptrdiff_t f = 0; f < frames; ++f)
      for (int b = 0; b < bins; ++b) of_frame.push_back(number[size_t(f * step + b * bin)]);
  }

 private:
  void add(ptrdiff_t at, ptrdiff_t size, ptrdiff_t bin) {
    const ptrdiff_t begin = std::max<ptrdiff_t>(at - bin + 1, 0), last = std::min(at + bin - 1, size - 1);
    center.push_back(at), first.push_back(begin), count.push_back(last - begin + 1);
    weight.resize(weight.size() + size_t(width), 0.0f);
    float* to = &*(weight.end() - width);
    for (ptrdiff_t u = 1 - bin; u < bin; ++u)
      to[std::min(std::max(at + u, begin), last) - begin] += 1 - float(std::abs(u)) / float(bin);
  }
};

// Central differences of row y, one-sided at the border; at least two rows and columns.
inline void gradient(const float* image, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t y, float* gx, float* gy) {
  const float* row = image + y * columns;
  const float *above = y > 0 ? row - columns : row, *below = y + 1 < rows ? row + columns : row;
  const float half = below - above == columns ? 1.0f : 0.5f;
  for (ptrdiff_t x = 0; x < columns; ++x) gy[x] = half * (below[x] - above[x]);
  for (ptrdiff_t x = 1; x + 1 < columns; ++x) gx[x] = 0.5f * (row[x + 1] - row[x - 1]);
  gx[0] = row[1] - row[0];
  gx[columns - 1] = row[columns - 1] - row[columns - 2];
}

inline Vec<float> root(Vec<float> x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#elif defined(__SSE2__)
  return _mm_sqrt_ps(x);
#else
  for (int l = 0; l < lanes<float>; ++l) x[l] = std::sqrt(x[l]);
  return x;
#endif
}

template <class V> inline float lane_sum(V v) {
  float sum = 0;
  for (size_t l = 0; l < sizeof v / sizeof(float); ++l) sum += v[l];
  return sum;
}

// atan(r) / (pi / 4) for r in [0, 1], to 4e-7: the odd polynomial of the smallest largest error.
inline Vec<float> eighths(Vec<float> r) {
  constexpr float c[] = {1.2732346f, -0.4242099f, 0.25220093f, -0.16849214f, 0.10137999f, -0.042786196f, 0.008673035f};
  const Vec<float> z = r * r;
  Vec<float> sum = splat(c[6]);
  for (int i = 5; i >= 0; --i) sum = sum * z + c[i];
  return smaller(r * sum, splat(1.0f));
}

// What the pixels give to each orientation, by vectors: that of orientation 0 for the first pixels, orientation 1 for
// the same pixels, and so on; `width` is whole vectors.
inline void orient(const float* gx, const float* gy, ptrdiff_t width, float* maps) {
  for (ptrdiff_t x = 0; x < width; x += lanes<float>) {
    const Vec<float> right = load(gx + x), down = load(gy + x), a = magnitude(right), b = magnitude(down);
    const Vec<float> high = larger(a, b), low = smaller(a, b);
    const Vec<float> length = root(high * high + low * low);
    const Vec<float> diagonal = length * eighths(low / larger(high, splat(1e-30f))), axis = length - diagonal;
    const IntVec<float> left = right < 0.0f, up = down < 0.0f, vertical = b > a;
    const IntVec<float> masks[orientations] = {~vertical & ~left, ~left & ~up, vertical & ~up, left & ~up,
                                               ~vertical & left,  left & up,   vertical & up,  ~left & up};
    for (int k = 0; k < orientations; ++k)
      store(maps + x * orientations + k * lanes<float>, (Vec<float>)((IntVec<float>)(k % 2 ? diagonal : axis) & masks[k]));
  }
}

struct DenseSift {  // of at least one frame
  const float* image;
  ptrdiff_t rows, columns, bin, step;

  void operator()(float* descriptors, float* norms) const {
    const Samples down(rows, bin, step), across(columns, bin, step);
    const std::vector<float> sampled = filter(down, across);
    float window[bins];
    for (int b = 0; b < bins; ++b) window[b] = mean_window(b);
    const ptrdiff_t row_length = ptrdiff_t(across.center.size()) * orientations;
    for (size_t i = 0; i < down.of_frame.size(); i += bins)
      for (size_t j = 0; j < across.of_frame.size(); j += bins) {
        const float* from[bins * bins];
        for (int b = 0; b < bins * bins; ++b)
          from[b] = sampled.data() + down.of_frame[i + size_t(b / bins)] * row_length +
                    across.of_frame[j + size_t(b % bins)] * orientations;
        *norms++ = describe(from, window, descriptors);
        descriptors += sift_length;
      }
  }

 private:
  // The mean over bin b of a Gaussian around the frame's center, two bins wide.
  float mean_window(int b) const {
    double sum = 0;
    for (ptrdiff_t u = 1 - bin; u < bin; ++u) {
      const double z = (double(u) / double(bin) - (b - 0.5 * (bins - 1))) / 2;
      sum += std::exp(-0.5 * z * z);
    }
    return float(sum / double(2 * bin - 1));
  }

  // The eight maps under the triangle at every pair of centers.
  std::vector<float> filter(const Samples& down, const Samples& across) const {
    const ptrdiff_t width = (columns + lanes<float> - 1) / lanes<float> * lanes<float>;
    const ptrdiff_t kept = std::min(down.width, rows), centers = ptrdiff_t(across.center.size());
    const ptrdiff_t stride = width * orientations + 16;  // rows a power of two apart would share few lines of the cache
    std::vector<float> gx(size_t(width), 0.0f), gy(size_t(width), 0.0f);
    std::vector<float> maps(size_t(kept * stride)), column(size_t(width * orientations));
    std::vector<float> out(down.center.size() * size_t(centers * orientations));
    std::vector<const float*> under(size_t(kept), nullptr);
    ptrdiff_t ready = 0;  // rows whose maps were made; the last `kept` are there
    for (size_t i = 0; i < down.center.size(); ++i) {
      const ptrdiff_t end = down.first[i] + down.count[i];
      for (ready = std::max(ready, down.first[i]); ready < end; ++ready) {
        gradient(image, rows, columns, ready, gx.data(), gy.data());
        orient(gx.data(), gy.data(), width, maps.data() + ready % kept * stride);
      }
      for (ptrdiff_t t = 0; t < down.count[i]; ++t) under[size_t(t)] = maps.data() + (down.first[i] + t) % kept * stride;
      filter_down(under.data(), down.weight.data() + ptrdiff_t(i) * down.width, down.count[i], width, column.data());
      filter_across(column.data(), across, out.data() + ptrdiff_t(i) * centers * orientations);
    }
    return out;
  }

  // out[x * orientations + k] = the weighted sum of the maps of `count` rows.
  static void filter_down(const float* const* rows, const float* weight, ptrdiff_t count, ptrdiff_t width, float* out) {
    for (ptrdiff_t x = 0; x < width; x += lanes<float>) {
      Vec<float> sum[orientations] = {};
      for (ptrdiff_t t = 0; t < count; ++t) {
        const float* from = rows[t] + x * orientations;
        const Vec<float> w = splat(weight[t]);
        for (int k = 0; k < orientations; ++k) sum[k] += w * load(from + k * lanes<float>);
      }
      store_transposed<orientations>(sum, out + x * orientations, orientations);
    }
  }

  static void filter_across(const float* from, const Samples& across, float* out) {
    for (size_t j = 0; j < across.center.size(); ++j, out += orientations) {
      const float *weight = across.weight.data() + ptrdiff_t(j) * across.width, *at = from + across.first[j] * orientations;
      Part sum[parts] = {};
      for (ptrdiff_t t = 0; t < across.count[j]; ++t)
        for (int p = 0; p < parts; ++p) sum[p] += weight[t] * part(at + t * orientations, p);
      for (int p = 0; p < parts; ++p) store(out + p * part_lanes, sum[p]);
    }
  }

  // Returns the mean gradient under the frame: what VLFeat calls the norm of a frame.
  float describe(const float* const* from, const float* window, float* d) const {
    Part mass[2] = {}, squares[2] = {};
    Vec<float> cut_squares[2] = {};  // two of each: a sum waits for its last addition
    for (int b = 0; b < bins * bins; ++b)
      for (int p = 0; p < parts; ++p) {
        const Part v = window[b / bins] * window[b % bins] * part(from[b], p);
        mass[b & 1] += v;
        squares[b & 1] += v * v;
        store(d + b * orientations + p * part_lanes, v);
      }
    const Vec<float> scale = splat(over_root(squares[0] + squares[1])), most = splat(0.2f);
    for (int k = 0; k < sift_length; k += lanes<float>) {
      const Vec<float> v = smaller(load(d + k) * scale, most);
      cut_squares[k / lanes<float> & 1] += v * v;
      store(d + k, v);
    }
    const Vec<float> again = splat(over_root(cut_squares[0] + cut_squares[1]));
    for (int k = 0; k < sift_length; k += lanes<float>) store(d + k, load(d + k) * again);
    const float side = float((bins - 1) * bin + 1);
    return lane_sum(mass[0] + mass[1]) / (side * side);
  }

  // The eight orientations of one place.
  using Part = Few<float, orientations>::V;
  static constexpr int part_lanes = Few<float, orientations>::lanes, parts = orientations / part_lanes;
  static Part part(const float* eight, int p) { return load_as_vector<Part>(eight + p * part_lanes); }

  template <class V> static float over_root(V squares) {
    const float sum = lane_sum(squares);
    return sum > 0 ? 1 / std::sqrt(sum) : 0.0f;
  }
};

}  // namespace hilbin
