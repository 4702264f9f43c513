// Requantisation of many outputs: by an affine map, 16 at a time, or by the formula; and the maps of a
// channel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "platform/isa.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/lanes.h"
#include "quantized_pooling/requantize.h"
#include "quantized_pooling/tuning.h"

ANYDML_ISA_BEGIN
namespace {

// out[x] = the output for sums[x] - offset, for x in [begin, end)
inline void requantize_row(const AffineMap& map, const Quantization& z, const uint32_t* sums, int64_t offset,
                           int64_t begin, int64_t end, uint8_t* out) {
  using Ints = Vector<int32_t, 8>;
  using Shorts = Vector<uint16_t, 16>;
  using Floats = Vector<float, 8>;
  using Bytes = Vector<uint8_t, 16>;
  const auto low =
      broadcast_to<Floats>(AffineMap::kRounder + static_cast<float>(z.lowest - z.output_zero_point));
  const auto high =
      broadcast_to<Floats>(AffineMap::kRounder + static_cast<float>(z.highest - z.output_zero_point));
  const auto slopes = broadcast_to<Floats>(map.slope);
  const auto adds = broadcast_to<Floats>(map.add);
  const auto rounders = broadcast_to<Floats>(map.rounder);
  const auto offsets = broadcast_to<Ints>(static_cast<int32_t>(offset));
  const auto zero_points = broadcast_to<Bytes>(static_cast<uint8_t>(z.output_zero_point));
  // The low byte of each is that of the output less the zero point.
  const auto eight = [=](int64_t x) {
    const Ints sum = load_vector<Ints>(sums + x) - offsets;
    return bits_as<Ints>(lane_max(lane_min(convert<Floats>(sum) * slopes + adds + rounders, high), low));
  };
  const auto sixteen = [=](int64_t x) {
    const Ints both = (eight(x) & broadcast_to<Ints>(0xff)) | (eight(x + 8) << 16);
    return deinterleave(convert<Bytes>(bits_as<Shorts>(both) & broadcast_to<Shorts>(uint16_t{0xff}))) +
           zero_points;
  };
  if (end - begin < 16) {
    const Bytes bytes = sixteen(begin);
    std::memcpy(out + begin, &bytes, static_cast<size_t>(end - begin));
    return;
  }
  // The last block may overlap the one before it.
  const int64_t last = end - 16;
  for (int64_t x = begin; x < last; x += 16) store_vector(out + x, sixteen(x));
  store_vector(out + last, sixteen(last));
}

// Outputs that are requantised together by the formula itself, with the bits of requantize(): all its
// operations are exact or correctly rounded, and the same for each output.
struct RequantizeBatch {
  static constexpr int64_t kMost = 64;

  double sums[kMost];
  double offsets[kMost];  // the zero point's share of a sum
  double input_scales[kMost];
  double divisors[kMost];            // count * output scale
  double lows[kMost], highs[kMost];  // without the zero point
  uint8_t zero_points[kMost];
  uint8_t outputs[kMost];

  void set_quantization(int64_t i, const Quantization& z) {
    input_scales[i] = z.input_scale;
    lows[i] = static_cast<double>(z.lowest - z.output_zero_point);
    highs[i] = static_cast<double>(z.highest - z.output_zero_point);
    zero_points[i] = static_cast<uint8_t>(z.output_zero_point);
  }
  // Without counted taps the sum is 0, and the output the zero point.
  void set_counts(int64_t i, int64_t inside, int64_t counted, const Quantization& z) {
    offsets[i] = static_cast<double>(inside * z.input_zero_point);
    divisors[i] = counted > 0 ? static_cast<double>(counted) * z.output_scale : 1;
  }

  void requantize(int64_t count) {
    using Doubles = Vector<double, 4>;
    constexpr int64_t kAtOnce = 16;
    const int64_t end = (count + kAtOnce - 1) / kAtOnce * kAtOnce;
    // Added to a double, it leaves the nearest integer in the sum's low bits.
    const auto rounders = broadcast_to<Doubles>(0x1.8p52);
    uint64_t rounded[kMost];
    for (int64_t i = 0; i < end; i += 4) {
      const auto at = [i](const double* values) { return load_vector<Doubles>(values + i); };
      const Doubles q = ((at(sums) - at(offsets)) * at(input_scales)) / at(divisors);
      store_vector(rounded + i, lane_min(lane_max(q, at(lows)), at(highs)) + rounders);
    }
    for (int64_t i = 0; i < end; ++i) outputs[i] = static_cast<uint8_t>(rounded[i] + zero_points[i]);
  }
};

// A cache of the maps of one channel, one for each count, searched for when enough outputs have asked for
// one.
class AffineMapCache {
 public:
  void set(const Quantization& quantization, int64_t taps) {
    taps_ = taps;
    if (quantization_ == quantization) return;
    quantization_ = quantization;
    used_ = 0;
  }
  const Quantization& quantization() const { return *quantization_; }

  // The map for that many outputs; null where there is none, or where the formula itself is cheaper.
  const AffineMap* get(int64_t count, int64_t outputs) {
    size_t i = 0;
    while (i < used_ && entries_[i].count != count) ++i;
    if (i == kMostMaps) return nullptr;
    if (i == used_) entries_[used_++] = {.count = count, .served = 0, .searched = false, .map = {}};
    Entry& entry = entries_[i];
    if (!entry.searched) {
      entry.served += outputs;
      if (entry.served < kSearchedOutputs) return nullptr;
      entry.searched = true;
      AffineMap map;
      if (AffineMapFinder(*quantization_, count, taps_).find(true, map)) entry.map = map;
    }
    return entry.map ? &*entry.map : nullptr;
  }

 private:
  struct Entry {
    int64_t count;
    int64_t served;
    bool searched;
    std::optional<AffineMap> map;
  };

  std::optional<Quantization> quantization_;
  int64_t taps_ = 0;
  size_t used_ = 0;
  Entry entries_[kMostMaps];
};

}  // namespace
ANYDML_ISA_END
