// From sums to elements of the output: the activation, the output's type, and where places lie.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "convolution/axes.h"
#include "convolution/planes.h"
#include "convolution/window_tile.h"
#include "nhwc/fused_activation.h"
#include "nhwc/nan.h"
#include "normalization/activation.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/strided_copy.h"
#include "simd/transpose.h"

ANYDML_ISA_BEGIN

// Neighbouring places of a block that are some of a panel's lanes. Bytes are counted from the block's first
// place.
struct PlaceRun {
  int64_t lane;
  int64_t count;
  int64_t out;
  std::array<int64_t, 3> place;
};

// The indices of a plane from a block's first place to its last: those between rows are no places.
inline int64_t lanes_of(const std::array<Slices, 3>& slices, const std::array<int64_t, 3>& size) {
  return ((size[0] - 1) * slices[1].length + size[1] - 1) * slices[2].length + size[2];
}

// A panel's runs, of each panel of a block.
class PanelRuns {
 public:
  // Lanes go through all indices of a plane, of which some are no places.
  void find(const SpatialAxes& axes, const std::array<Slices, 3>& slices, const std::array<int64_t, 3>& size,
            int64_t width) {
    runs_.clear();
    first_.clear();
    lanes_ = lanes_of(slices, size);
    int64_t panel = 0;
    for (int64_t z = 0; z < size[0]; ++z) {
      for (int64_t y = 0; y < size[1]; ++y) {
        const int64_t line = (z * slices[1].length + y) * slices[2].length;
        for (int64_t x = 0; x < size[2];) {
          const int64_t lane = line + x;
          for (; panel <= lane / width; ++panel) first_.push_back(runs_.size());
          const int64_t count = std::min(size[2] - x, (lane / width + 1) * width - lane);
          runs_.push_back(
              {lane % width,
               count,
               z * axes[0].along.out_stride + y * axes[1].along.out_stride + x * axes[2].along.out_stride,
               {z, y, x}});
          x += count;
        }
      }
    }
    first_.push_back(runs_.size());
  }

  int64_t lanes() const { return lanes_; }
  std::pair<const PlaceRun*, const PlaceRun*> of(int64_t panel) const {
    const auto at = static_cast<size_t>(panel);
    return {runs_.data() + first_[at], runs_.data() + first_[at + 1]};
  }

 private:
  std::vector<PlaceRun> runs_;
  std::vector<size_t> first_;
  int64_t lanes_ = 0;
};

// In bytes, from result to result and from place to place.
class OutputWriter {
 public:
  OutputWriter(bool is_half, const Fused& fused, const RunActivation& activation)
      : is_half_(is_half), fused_(fused), activation_(activation) {}

  // Some results of a panel, in rows of `width`, at most kMostSums of them.
  ANYDML_NOINLINE void write(float* sums, int64_t rows, int64_t width, const PlaceRun* begin,
                             const PlaceRun* end, std::byte* to, int64_t result_step,
                             int64_t place_step) const {
    if (place_step == (is_half_ ? 2 : 4) && !activation_.has_program()) {
      if (is_half_) return put_activated<Half>(sums, rows, width, begin, end, to, result_step);
      return put_activated<float>(sums, rows, width, begin, end, to, result_step);
    }
    auto* const bytes = reinterpret_cast<std::byte*>(sums);
    if (activation_.has_program()) {
      activate<float>(fused_, sums, rows * width, bytes);
      run_program(sums, rows * width);
    } else if (!is_half_) {
      activate<float>(fused_, sums, rows * width, bytes);
    }
    if (is_half_) {
      alignas(64) std::byte halves[kMostSums * 2];
      if (activation_.has_program()) {
        const int64_t blocks = (rows * width + kConvertedAtOnce - 1) / kConvertedAtOnce;
        narrow_to_halves(bytes, halves, blocks);
      } else {
        activate<Half>(fused_, sums, rows * width, halves);
      }
      return put<uint16_t>(halves, rows, width, begin, end, to, result_step, place_step);
    }
    put<uint32_t>(bytes, rows, width, begin, end, to, result_step, place_step);
  }

  // Sums and what is read behind them.
  static constexpr int64_t kMostSums = kMostRows * kPanel + kMostLanes + kConvertedAtOnce;

 private:
  // A sum of zeros is 0, whatever their signs: products with padding do not change it.
  template <class To>
  ANYDML_INLINE static void activate(const Fused& fused, const float* sums, int64_t count, std::byte* to) {
    for (int64_t i = 0; i < count; i += kLanesOf<float>) {
      const auto sum = load_lanes<float, float>(reinterpret_cast<const std::byte*>(sums + i));
      store_lanes<To, float>(to + i * static_cast<int64_t>(sizeof(To)), fused.applied<float>(sum + 0.0f));
    }
  }

  // Of places side by side: each run in one pass, its last vector with some lanes that are written already.
  // What the next panel writes behind it is prefetched: rows of a tile are too many streams for processors to
  // do that by themselves. 2026-11-27, Xeon (AVX-512), one thread: eight images of 64 results of 55x55, 3x3
  // taps of 16 channels, took 1.3 to 2.4 of ONNX Runtime's time, by how much else the memory had to do, and
  // take 1.04.
  template <class To>
  void put_activated(const float* sums, int64_t rows, int64_t width, const PlaceRun* begin,
                     const PlaceRun* end, std::byte* to, int64_t result_step) const {
    constexpr int64_t kItem = sizeof(To);
    constexpr int64_t kLanes = kLanesOf<float>;
    const Fused fused = fused_;  // which no store to bytes changes
    for (const PlaceRun* run = begin; run < end; ++run) {
      const float* lanes = sums + run->lane;
      std::byte* at = to + run->out;
      const int64_t whole = run->count / kLanes * kLanes;
      const int64_t rest = run->count - whole;
      for (int64_t i = 0; i < rows; ++i, lanes += width, at += result_step) {
        activate<To>(fused, lanes, whole, at);
        for (int64_t k = 0; k < run->count * kItem; k += kLine) prefetch_line(at + width * kItem + k);
        if (rest == 0) continue;
        if (whole > 0) {
          activate<To>(fused, lanes + run->count - kLanes, kLanes, at + (run->count - kLanes) * kItem);
        } else {
          alignas(64) std::byte last[kLanes * kItem];
          activate<To>(fused, lanes, kLanes, last);
          copy_short(at, last, rest * kItem);
        }
      }
    }
  }

  void run_program(float* sums, int64_t count) const {
    alignas(64) double wide[kWholeElements];
    for (int64_t i = 0; i < count; i += kWholeElements) {
      const int64_t some = std::min(kWholeElements, count - i);
      for (int64_t k = 0; k < some; ++k) wide[k] = sums[i + k];
      std::fill(wide + some, wide + kWholeElements, 0.0);
      activation_.apply(wide, some);
      for (int64_t k = 0; k < some; ++k)
        sums[i + k] = is_half_ ? single_for_half(wide[k]) : static_cast<float>(wide[k]);
    }
  }

  template <class Bits>
  static void put(const std::byte* from, int64_t rows, int64_t width, const PlaceRun* begin,
                  const PlaceRun* end, std::byte* to, int64_t result_step, int64_t place_step) {
    constexpr int64_t kItem = sizeof(Bits);
    for (const PlaceRun* run = begin; run < end; ++run) {
      const std::byte* const lanes = from + run->lane * kItem;
      std::byte* const at = to + run->out;
      if (place_step == kItem) {
        for (int64_t i = 0; i < rows; ++i)
          copy_short(at + i * result_step, lanes + i * width * kItem, run->count * kItem);
      } else if (result_step == kItem) {
        // Rows of the tile that is written are places here.
        gather_tile<Bits>({lanes, kItem, width * kItem}, run->count, rows, at, place_step);
      } else {
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t k = 0; k < run->count; ++k)
            store(at + i * result_step + k * place_step, load<Bits>(lanes + (i * width + k) * kItem));
        }
      }
    }
  }

  bool is_half_;
  Fused fused_;
  RunActivation activation_;
};

ANYDML_ISA_END
