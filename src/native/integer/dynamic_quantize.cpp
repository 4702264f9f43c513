// DYNAMIC_QUANTIZE_LINEAR: one pass finds the range, and another one quantises by it.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/bits_as.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

// Elements that are read at a time.
constexpr int64_t kPiece = 2048;
// And those whose range is taken together.
constexpr int64_t kAtOnce = 64;
// Beyond every quantised number, whatever the zero point.
constexpr float kFarQuotient = 1024;
// Added to a float below 2^22, it leaves the nearest integer in the sum.
constexpr float kFloatRounder = 0x1.8p23F;

struct Range {
  float least = 0;
  float largest = 0;
};

// Elements in single precision, those behind `count` up to a multiple of kAtOnce as 0, which is in every
// range: in `to`, but for whole pieces of adjacent singles.
template <class T>
const float* read_piece(const std::byte* from, int64_t step, int64_t count, float* to) {
  if constexpr (sizeof(T) == 4) {
    if (step == sizeof(T) && count % kAtOnce == 0) return reinterpret_cast<const float*>(from);
    if (step == sizeof(T)) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = load<float>(from + i * step);
    }
  } else {
    const int64_t whole = step == sizeof(T) ? count / kConvertedAtOnce * kConvertedAtOnce : 0;
    widen_halves(from, reinterpret_cast<std::byte*>(to), whole / kConvertedAtOnce);
    for (int64_t i = whole; i < count; ++i) to[i] = static_cast<float>(load<T>(from + i * step));
  }
  std::fill(to + count, to + (count + kAtOnce - 1) / kAtOnce * kAtOnce, 0.0F);
  return to;
}

// NaN, which compares with nothing, takes no part.
inline void extend(Range& range, const float* x, int64_t count) {
#if defined(ANYDML_VECTORS)
  using Floats = Vector<float>;
  constexpr int64_t kLanes = sizeof(Floats) / sizeof(float);
  // So many that none waits for the one before.
  constexpr int64_t kVectors = kAtOnce / kLanes;
  Floats least[kVectors];
  Floats largest[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) {
    least[v] = broadcast(range.least);
    largest[v] = broadcast(range.largest);
  }
  for (int64_t i = 0; i < count; i += kAtOnce) {
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto lanes = load_vector<Floats>(reinterpret_cast<const std::byte*>(x + i + v * kLanes));
      least[v] = lane_min<float>(lanes, least[v]);
      largest[v] = lane_max<float>(lanes, largest[v]);
    }
  }
  for (int64_t v = 0; v < kVectors; ++v) {
    for (int64_t i = 0; i < kLanes; ++i) {
      range.least = std::min(range.least, least[v][i]);
      range.largest = std::max(range.largest, largest[v][i]);
    }
  }
#else
  for (int64_t i = 0; i < count; ++i) {
    range.least = x[i] < range.least ? x[i] : range.least;
    range.largest = x[i] > range.largest ? x[i] : range.largest;
  }
#endif
}

// The integer next to a quotient, halves to the even one; NaN is 0, what is far comes near.
inline float whole_of(float quotient) {
  quotient = quotient == quotient ? std::clamp(quotient, -kFarQuotient, kFarQuotient) : 0;
  return (quotient + kFloatRounder) - kFloatRounder;
}

struct QuantizedBy {
  float scale;
  float zero_point;
  float lowest;
};

// y = clamp(round(x / scale) + zero point)
template <class Out>
void quantize_piece(const float* x, int64_t count, const QuantizedBy& by, Out* out) {
#if defined(ANYDML_VECTORS)
  // Limits are integers, by which quotients may be clamped before they are rounded.
  using Floats = Vector<float>;
  using Integers = Vector<int32_t>;
  constexpr int64_t kLanes = sizeof(Floats) / sizeof(float);
  const float low = by.lowest - by.zero_point;
  const auto zero = static_cast<int32_t>(by.zero_point) - bits_as<int32_t>(kFloatRounder);
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto lanes = load_vector<Floats>(reinterpret_cast<const std::byte*>(x + i));
    const Floats near = clamped(lanes / by.scale, low, low + 255);
    const auto bytes = __builtin_convertvector((Integers)(near + kFloatRounder) + zero, Vector<Out, kLanes>);
    std::memcpy(out + i, &bytes, sizeof(bytes));
  }
#else
  const float highest = by.lowest + 255;
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<Out>(std::clamp(whole_of(x[i] / by.scale) + by.zero_point, by.lowest, highest));
  }
#endif
}

template <class T, class Out>
class DynamicQuantizePlan final : public Plan {
 public:
  DynamicQuantizePlan(std::vector<Loop> loops, std::string description)
      : Plan(std::move(description)), loops_(fold(std::move(loops))) {
    row_ = take_innermost(loops_);
    per_row_ = divided_up(row_.size, kPiece);
    pieces_ = steps_of(loops_) * per_row_;
    bytes_ = steps_of(loops_) * row_.size * static_cast<int64_t>(sizeof(T));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), pieces_);
    std::vector<Range> ranges(static_cast<size_t>(calls));
    parallel_for(calls, threads, [&](int64_t call) {
      Range range;
      each_piece(call, calls, [&](int64_t from, int64_t, int64_t count) {
        float x[kPiece];
        extend(range, read_piece<T>(in + from, row_.in, count, x), count);
      });
      ranges[static_cast<size_t>(call)] = range;
    });
    Range range;
    for (const Range& each : ranges) {
      range.least = std::min(range.least, each.least);
      range.largest = std::max(range.largest, each.largest);
    }
    const QuantizedBy by = quantization(range);
    parallel_for(calls, threads, [&](int64_t call) {
      each_piece(call, calls, [&](int64_t from, int64_t to, int64_t count) {
        float x[kPiece];
        Out y[kPiece];
        const bool is_whole = row_.out == 1 && count == kPiece;
        quantize_piece(read_piece<T>(in + from, row_.in, count, x), count, by,
                       is_whole ? reinterpret_cast<Out*>(out + to) : y);
        if (is_whole) return;
        if (row_.out == 1) {
          std::memcpy(out + to, y, static_cast<size_t>(count));
        } else {
          for (int64_t i = 0; i < count; ++i) store(out + to + i * row_.out, y[i]);
        }
      });
    });
    store(static_cast<std::byte*>(outputs[1]), by.scale);
    store(static_cast<std::byte*>(outputs[2]), static_cast<Out>(by.zero_point));
  }

 private:
  static QuantizedBy quantization(const Range& range) {
    // In double precision, and rounded once.
    const double width = static_cast<double>(range.largest) - static_cast<double>(range.least);
    auto scale = static_cast<float>(width / 255);
    if (scale == 0) scale = 1;
    const float lowest = std::is_signed_v<Out> ? -128 : 0;
    const float zero_point = whole_of(-range.least / scale) + lowest;
    return {scale, std::clamp(zero_point, lowest, lowest + 255), lowest};
  }

  // body(from, to, count) for each piece of a call: its places in input and output, and its elements.
  template <class Body>
  void each_piece(int64_t call, int64_t calls, const Body& body) const {
    const int64_t end = share_begin(call + 1, calls, pieces_);
    for (int64_t piece = share_begin(call, calls, pieces_); piece < end; ++piece) {
      const LoopCursor at(loops_, piece / per_row_);
      const int64_t begin = piece % per_row_ * kPiece;
      body(at.in() + begin * row_.in, at.out() + begin * row_.out, std::min(kPiece, row_.size - begin));
    }
  }

  std::vector<Loop> loops_;
  Loop row_;
  int64_t per_row_;  // pieces
  int64_t pieces_;
  int64_t bytes_;
};

template <class T>
std::unique_ptr<Plan> plan_for(DataType to, std::vector<Loop> loops, std::string description) {
  if (to == DataType::kInt8) {
    return std::make_unique<DynamicQuantizePlan<T, int8_t>>(std::move(loops), std::move(description));
  }
  return std::make_unique<DynamicQuantizePlan<T, uint8_t>>(std::move(loops), std::move(description));
}

}  // namespace

std::unique_ptr<Plan> make_dynamic_quantize_linear(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  require(
      tensor(request.outputs, 1).type == DataType::kFloat32 && tensor(request.outputs, 2).type == out.type,
      "the scale or the zero point is of another type");
  const bool is_known = (in.type == DataType::kFloat32 || in.type == DataType::kFloat16) &&
                        (out.type == DataType::kInt8 || out.type == DataType::kUint8);
  std::string words =
      "dynamic quantisation of " + std::string(name_of(in.type)) + " to " + std::string(name_of(out.type));
  if (!is_known) {
    reason = "no " + words;
    return nullptr;
  }
  if (in.type == DataType::kFloat32) return plan_for<float>(out.type, loops_over(in, out), std::move(words));
  return plan_for<Half>(out.type, loops_over(in, out), std::move(words));
}

ANYDML_ISA_END
