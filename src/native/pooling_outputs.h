// Rows of outputs from rows of sums, sixteen at a time, and the requantisers at hand for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "isa.h"
#include "pooling_geometry.h"
#include "pooling_lanes.h"
#include "pooling_requantize.h"

ANYDML_ISA_BEGIN
namespace {

using Ints = Lanes<int32_t, 8>;
using SixteenBytes = Lanes<uint8_t, 16>;

// The sums of 16 windows: of the first 8 and the last 8, or of those at even and at odd places.
struct SixteenSums {
  Ints first, second;
};

// The sums of windows along a row: each of several sums of columns, kStride apart from one window to the
// next. kTaps is how many, or 0 where only `taps` knows.
template <int kStride, int kTaps>
struct NarrowSums {
  std::span<const uint16_t* const> taps;

  static constexpr bool kInterleaved = kStride == 1;
  using Vector = Lanes<uint16_t, 16>;

  int64_t at(int64_t x) const {
    int64_t sum = 0;
    for (const uint16_t* tap : taps) sum += tap[x * kStride];
    return sum;
  }
  SixteenSums sixteen(int64_t x) const {
    if constexpr (kStride == 1) {
      const Vector sums = vector(x);
      return {even(sums), as<Ints>(as<Lanes<uint32_t, 8>>(sums) >> 16)};
    } else {
      return {even(vector(2 * x)), even(vector(2 * x + 16))};
    }
  }

 private:
  static Ints even(Vector sums) { return as<Ints>(sums) & all_lanes<Ints>(0xffff); }
  Vector vector(int64_t x) const {
    const size_t count = kTaps > 0 ? kTaps : taps.size();
    const uint16_t* const* tap = taps.data();
    Vector sum{};
    for (size_t i = 0; i < count; ++i) sum += load_lanes<Vector>(tap[i] + x);
    return sum;
  }
};

// Sums that were written down.
struct WrittenSums {
  const uint32_t* sums;

  static constexpr bool kInterleaved = false;

  int64_t at(int64_t x) const { return sums[x]; }
  SixteenSums sixteen(int64_t x) const {
    return {load_lanes<Ints>(sums + x), load_lanes<Ints>(sums + x + 8)};
  }
};

// The low bytes of 16 outputs, in order.
template <bool kInterleaved>
SixteenBytes low_bytes(Ints first, Ints second) {
  using Shorts = Lanes<uint16_t, 16>;
  const Ints both = (first & all_lanes<Ints>(0xff)) | (second << 16);
  const auto bytes = convert<SixteenBytes>(as<Shorts>(both) & all_lanes<Shorts>(uint16_t{0xff}));
  if constexpr (kInterleaved) return bytes;
  return sort_even_odd(bytes);
}

// out[x] = the output for sums[x] - offset, for x in [begin, end)
template <class Sums>
void requantize_row(const Requantizer& requantizer, const Sums& sums, int64_t offset, int64_t begin,
                    int64_t end, uint8_t* out) {
  if (requantizer.form() != Requantizer::Form::kLine) {
    for (int64_t x = begin; x < end; ++x) out[x] = requantizer(sums.at(x) - offset);
    return;
  }
  const Line line = requantizer.line();
  const auto low = all_lanes<Ints>(static_cast<int32_t>(requantizer.low()));
  const auto high = all_lanes<Ints>(static_cast<int32_t>(requantizer.high()));
  const auto offsets = all_lanes<Ints>(static_cast<int32_t>(offset));
  const auto zero_points = all_lanes<SixteenBytes>(static_cast<uint8_t>(line.zero_point));
  const auto output = [=](Ints sum) { return line.lanes(larger(smaller(sum - offsets, high), low)); };
  const auto sixteen = [=](int64_t x) {
    const SixteenSums sum = sums.sixteen(x);
    return low_bytes<Sums::kInterleaved>(output(sum.first), output(sum.second)) + zero_points;
  };
  if (end - begin < 16) {
    const SixteenBytes bytes = sixteen(begin);
    std::memcpy(out + begin, &bytes, static_cast<size_t>(end - begin));
    return;
  }
  // The last block may overlap the one before it.
  const int64_t last = end - 16;
  for (int64_t x = begin; x < last; x += 16) store_lanes(out + x, sixteen(x));
  store_lanes(out + last, sixteen(last));
}

// The requantisers of one channel, one for each count, made when enough outputs have asked for one.
class Requantizers {
 public:
  Requantizers() : tables_(std::make_unique_for_overwrite<uint8_t[]>(kMost * Requantizer::kTableBytes)) {}

  void set(const Quantization& quantization, int64_t taps) {
    taps_ = taps;
    if (quantization_ == quantization) return;
    quantization_ = quantization;
    used_ = 0;
  }
  const Quantization& quantization() const { return *quantization_; }

  // Null where the formula itself is cheaper, for that many outputs.
  const Requantizer* get(int64_t count, int64_t outputs) {
    for (size_t i = 0; i < used_; ++i) {
      if (entries_[i].count == count) return made(i, outputs);
    }
    if (used_ == kMost) return nullptr;
    entries_[used_] = {count, 0, std::nullopt};
    return made(used_++, outputs);
  }

 private:
  static constexpr size_t kMost = 16;
  static constexpr int64_t kWorthMaking = 512;

  struct Entry {
    int64_t count;
    int64_t served;
    std::optional<Requantizer> requantizer;
  };

  const Requantizer* made(size_t index, int64_t outputs) {
    Entry& entry = entries_[index];
    if (!entry.requantizer) {
      entry.served += outputs;
      if (entry.served < kWorthMaking) return nullptr;
      entry.requantizer.emplace(*quantization_, entry.count, taps_,
                                tables_.get() + index * Requantizer::kTableBytes);
    }
    return &*entry.requantizer;
  }

  std::optional<Quantization> quantization_;
  int64_t taps_ = 0;
  size_t used_ = 0;
  Entry entries_[kMost];
  std::unique_ptr<uint8_t[]> tables_;
};

}  // namespace
ANYDML_ISA_END
