// Which algorithm pools what, decided once for a plan.
//
// README.md has the list of algorithms with what each is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "core/candidates.h"
#include "platform/isa.h"
#include "quantized_pooling/blocks.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/planes.h"
#include "quantized_pooling/prefix.h"
#include "quantized_pooling/rows.h"
#include "quantized_pooling/tuning.h"

ANYDML_ISA_BEGIN
namespace {

// About how many cycles a plane takes whose outputs are summed one by one.
inline double direct_cycles(const Geometry& g) {
  const auto& [depth, height, width] = g.windows;
  const auto taps = static_cast<double>(width.taps_inside());
  const bool is_run = width.in_stride == 1 && (width.dilation == 1 || taps == 1);
  const double row = is_run ? kCyclesPerRun + kCyclesPerByteOfRun * taps : kCyclesPerTap * taps;
  const double rows = static_cast<double>(depth.taps_inside()) * static_cast<double>(height.taps_inside());
  const double outputs =
      static_cast<double>(depth.output * height.output) * static_cast<double>(width.output);
  return outputs * (kCyclesPerOutput + rows * row);
}

// And one whose outputs are differences of prefix sums.
inline double prefix_cycles(const Geometry& geometry) {
  const Geometry g = with_shorter_depth(geometry);
  const auto& [depth, height, width] = g.windows;
  const int64_t shift = height.stride / std::gcd(height.stride, height.dilation);
  const auto rows = static_cast<double>(std::min(2 * shift, height.taps_inside()));
  const double bytes = rows * static_cast<double>(depth.taps_inside()) * (width.in_stride == 1 ? 1 : 2);
  const auto columns =
      static_cast<double>(std::min(width.input, (width.output - 1) * width.stride + width.extent()));
  const double row = columns * (kCyclesPerColumnByte * bytes + kCyclesPerPrefix) +
                     static_cast<double>(width.output) * kCyclesPerPrefixOutput;
  return static_cast<double>(depth.output * height.output) * row;
}

inline std::string prefix_declined(const Geometry& g) {
  for (const Window& window : g.windows) {
    if (window.in_stride == 0 && window.input > 1) return "the input is broadcast along a window";
  }
  if (g.windows[2].input >= int64_t{1} << 31) return "rows of 2^31 columns or more";
  return prefix_cycles(g) < direct_cycles(g) ? "" : "few outputs share a column";
}

enum class PoolingAlgorithm { kBlocks, kPlanes, kRows, kPrefix, kDirect };

inline constexpr Candidate<PoolingAlgorithm, Geometry> kPoolingCandidates[] = {
    {PoolingAlgorithm::kBlocks, "blocks of strips", BlockPooling::declined},
    {PoolingAlgorithm::kPlanes, "whole planes", PlanePooling::declined},
    {PoolingAlgorithm::kRows, "running sums", RowPooling::declined},
    {PoolingAlgorithm::kPrefix, "prefix sums", prefix_declined},
    {PoolingAlgorithm::kDirect, "each window by itself", nullptr},
};

struct PoolingPolicy {
  explicit PoolingPolicy(const Geometry& geometry) {
    const Choice<PoolingAlgorithm> choice = choose(kPoolingCandidates, geometry);
    algorithm = choice.algorithm;
    wide_sums = geometry.taps_inside() > most_taps(32);
    words = choice.name;
    if (algorithm == PoolingAlgorithm::kPrefix && wide_sums) words += " of 64 bits";
    words += choice.declined;
  }

  PoolingAlgorithm algorithm;
  bool wide_sums;     // 32 bits do not hold the sum of a window
  std::string words;  // in explain()
};

}  // namespace
ANYDML_ISA_END
