// Rows of outputs from rows of sums, sixteen at a time, and the lines at hand for them.
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

ANYDML_ISA_BEGIN
namespace {

// out[x] = the output for sums[x] - offset, for x in [begin, end)
inline void requantize_row(const Line& line, const Quantization& z, const uint32_t* sums, int64_t offset,
                           int64_t begin, int64_t end, uint8_t* out) {
  using Ints = Lanes<int32_t, 8>;
  using Shorts = Lanes<uint16_t, 16>;
  using Floats = Lanes<float, 8>;
  using Bytes = Lanes<uint8_t, 16>;
  const auto low = all_lanes<Floats>(Line::kRounder + static_cast<float>(z.lowest - z.output_zero_point));
  const auto high = all_lanes<Floats>(Line::kRounder + static_cast<float>(z.highest - z.output_zero_point));
  const auto slopes = all_lanes<Floats>(line.slope);
  const auto adds = all_lanes<Floats>(line.add);
  const auto rounders = all_lanes<Floats>(line.rounder);
  const auto offsets = all_lanes<Ints>(static_cast<int32_t>(offset));
  const auto zero_points = all_lanes<Bytes>(static_cast<uint8_t>(z.output_zero_point));
  // The low byte of each is the output's, less the zero point.
  const auto eight = [=](int64_t x) {
    const Ints sum = load_lanes<Ints>(sums + x) - offsets;
    return as<Ints>(larger(smaller(convert<Floats>(sum) * slopes + adds + rounders, high), low));
  };
  const auto sixteen = [=](int64_t x) {
    const Ints both = (eight(x) & all_lanes<Ints>(0xff)) | (eight(x + 8) << 16);
    return sort_even_odd(convert<Bytes>(as<Shorts>(both) & all_lanes<Shorts>(uint16_t{0xff}))) + zero_points;
  };
  if (end - begin < 16) {
    const Bytes bytes = sixteen(begin);
    std::memcpy(out + begin, &bytes, static_cast<size_t>(end - begin));
    return;
  }
  // The last block may overlap the one before it.
  const int64_t last = end - 16;
  for (int64_t x = begin; x < last; x += 16) store_lanes(out + x, sixteen(x));
  store_lanes(out + last, sixteen(last));
}

// The lines of one channel, one for each count, sought when enough outputs have asked for one.
class ChannelLines {
 public:
  void set(const Quantization& quantization, int64_t taps) {
    taps_ = taps;
    if (quantization_ == quantization) return;
    quantization_ = quantization;
    used_ = 0;
  }
  const Quantization& quantization() const { return *quantization_; }

  // Null where there is none, or the formula itself is cheaper, for that many outputs.
  const Line* get(int64_t count, int64_t outputs) {
    size_t i = 0;
    while (i < used_ && entries_[i].count != count) ++i;
    if (i == kMost) return nullptr;
    if (i == used_) entries_[used_++] = {.count = count, .served = 0, .sought = false, .line = {}};
    Entry& entry = entries_[i];
    if (!entry.sought) {
      entry.served += outputs;
      if (entry.served < kWorthSeeking) return nullptr;
      entry.sought = true;
      Line line;
      if (LineFinder(*quantization_, count, taps_).find(true, line)) entry.line = line;
    }
    return entry.line ? &*entry.line : nullptr;
  }

 private:
  static constexpr size_t kMost = 16;
  static constexpr int64_t kWorthSeeking = 512;

  struct Entry {
    int64_t count;
    int64_t served;
    bool sought;
    std::optional<Line> line;
  };

  std::optional<Quantization> quantization_;
  int64_t taps_ = 0;
  size_t used_ = 0;
  Entry entries_[kMost];
};

}  // namespace
ANYDML_ISA_END
