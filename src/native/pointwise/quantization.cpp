// Instructions of quantised numbers: linear quantisation and its inverse, and sums. Where a scale and a zero
// point are the same for all elements, they are read once.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "pointwise/passes.h"
#include "pointwise/quantized.h"
#include "pointwise/quantized_sums.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
struct Quantized : Plain {
  using Plain::Plain;
  T operator()(float x, float scale, T zero_point) const {
    return quantized<T>(x / scale, static_cast<float>(zero_point));
  }
};

ANYDML_NOINLINE void quantize_by_division(const std::byte* x, const LinearQuantization& by, std::byte* out,
                                          int64_t count) {
  for_each_element<float, uint8_t>(x, out, count, [&by](float number) {
    const auto result = quantized<int8_t>(number / by.scale, static_cast<float>(by.zero_point));
    return static_cast<uint8_t>(static_cast<uint8_t>(result) ^ by.flip);
  });
}

// By the scale's reciprocal, as divisions take longer than memory: in fixed point, as sums are. A block in
// which some quotient is almost halfway between two integers is divided, and so is one that has a NaN, whose
// integer has no fraction.
void quantize_by_one(const std::byte* x, const LinearQuantization& by, std::byte* out, int64_t count) {
#if defined(ANYDML_VECTORS)
  const float magnitude = std::abs(by.scale);
  if (magnitude > 0x1p-100F && magnitude < 0x1p100F) {
    // Twice the error: the reciprocal, the sum and the quotient itself are each rounded by 2^-24 of at most
    // 2^28 units, and so is the product without a fused multiply-add.
    constexpr int32_t kWindow = kCompact ? 256 : 128;
    constexpr double kUnits = 1 << kFraction;
    const Singles factor = singles(static_cast<float>(kUnits / by.scale));
    // With the half that is added, as what follows rounds down.
    const Singles offset = singles(static_cast<float>((by.zero_point + 0.5) * kUnits + kWindow / 2));
    const Singles low = singles(static_cast<float>(-127.5 * kUnits));
    const Singles high = singles(static_cast<float>(127.5 * kUnits));
    for (int64_t start = 0; start < count; start += kWholeElements) {
      ByteBlock block;
      SingleBits least{};
#pragma GCC unroll 8
      for (int n = 0; n < kWholeElements / ByteBlock::kLanes; ++n) {
        const Singles number = load_vector<Singles>(x + (start + n * ByteBlock::kLanes) * 4);
        Singles sum;
        if constexpr (kCompact) {
          sum = number * factor + offset;
        } else {
          sum = multiply_add(number, factor, offset);
        }
        const Singles inside = lane_min<float>(high, lane_max<float>(low, sum));
        const auto fixed = __builtin_convertvector(inside, ByteBlock::Integers);
        const auto fraction = bits_as<SingleBits>(fixed & (2 * kHalf - kWindow));
        least = n == 0 ? fraction : fraction < least ? fraction : least;
        block.integers[n] = fixed >> kFraction;
      }
      if (all_of<float>(least != 0)) [[likely]] {
        block.store(out + start, by.flip);
      } else {
        quantize_by_division(x + start * 4, by, out + start, kWholeElements);
      }
    }
    return;
  }
#endif
  quantize_by_division(x, by, out, count);
}

// Whether elements of T, whole blocks of them, are all the same.
template <class T>
bool are_one(const std::byte* from, int64_t count) {
#if defined(ANYDML_VECTORS)
  using V = Vector<T, sizeof(Singles) / sizeof(T)>;
  using Words = Vector<uint32_t, sizeof(V) / 4>;
  const V first = V{} + load<T>(from);
  Words differs{};
  for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(T)); i += sizeof(V))
    differs |= bits_as<Words>(load_vector<V>(from + i)) ^ bits_as<Words>(first);
  return all_of<float>(differs == 0);
#else
  return false;
#endif
}

template <class T, bool kByOne>
void quantize(const int64_t* constants, const std::byte* x, const std::byte* scales,
              const std::byte* zero_points, std::byte* out, int64_t count) {
  const int64_t whole = (count + kWholeElements - 1) / kWholeElements * kWholeElements;
  if (kByOne || (are_one<float>(scales, whole) && are_one<T>(zero_points, whole)))
    return quantize_by_one(x, LinearQuantization::of(load<float>(scales), load<T>(zero_points)), out, count);
  if constexpr (!kByOne)
    loop<Quantized<T>, T, float, float, T>(constants, x, scales, zero_points, out, count);
}
Pass quantization(DataType to, bool by_one) {
  if (to == DataType::kUint8) return by_one ? quantize<uint8_t, true> : quantize<uint8_t, false>;
  if (to == DataType::kInt8) return by_one ? quantize<int8_t, true> : quantize<int8_t, false>;
  return nullptr;
}

// (x - zero point) * scale
template <class Float, class T>
struct Dequantized : Plain {
  using Plain::Plain;
  Float operator()(T x, float scale, T zero_point) const {
    return static_cast<Float>(static_cast<int32_t>(x) - static_cast<int32_t>(zero_point)) * scale;
  }
};

// Likewise of integers that singles cannot hold: in double precision, rounded once.
template <class T>
struct DequantizedWide : Plain {
  using Plain::Plain;
  float operator()(T x, float scale, T zero_point) const {
    const double difference = static_cast<double>(x) - static_cast<double>(zero_point);
    return static_cast<float>(difference * static_cast<double>(scale));
  }
};

template <class Function, class Float, class T>
void dequantize_by_one(const int64_t* constants, const std::byte* x, const std::byte* scales,
                       const std::byte* zero_points, std::byte* out, int64_t count) {
  const auto scale = load<float>(scales);
  const auto zero_point = load<T>(zero_points);
  const Function function(constants);
  const auto wide = [=](T each) { return function(each, scale, zero_point); };
  if constexpr (sizeof(T) == 4) {
    // Blocks whose differences singles hold, a quarter of the work.
    constexpr T kMost = 1 << 23;
    constexpr T kLeast = std::is_signed_v<T> ? -kMost : 0;
    if (zero_point >= kLeast && zero_point <= kMost) {
      const auto zero = static_cast<int32_t>(zero_point);
      for (int64_t start = 0; start < count; start += kWholeElements) {
        const std::byte* const block = x + start * 4;
        uint32_t highest = 0;
        for (int64_t i = 0; i < kWholeElements; ++i) {
          const uint32_t above = load<uint32_t>(block + i * 4) - static_cast<uint32_t>(kLeast);
          highest = above > highest ? above : highest;
        }
        if (highest <= static_cast<uint32_t>(kMost) - static_cast<uint32_t>(kLeast)) {
          for_each_element<int32_t, float>(block, out + start * 4, kWholeElements, [=](int32_t each) {
            return static_cast<float>(each - zero) * scale;
          });
        } else {
          for_each_element<T, float>(block, out + start * 4, kWholeElements, wide);
        }
      }
      return;
    }
  }
  for_each_element<T, Float>(x, out, count, wide);
}

template <template <class, class> class Function, class Float, class T>
Pass dequantize(bool by_one) {
  using Of = Function<Float, T>;
  return by_one ? dequantize_by_one<Of, Float, T> : loop<Of, Float, T, float, T>;
}
template <class Float, class T>
using Wide = DequantizedWide<T>;

Pass dequantization(DataType from, DataType to, bool by_one) {
  if (to == DataType::kFloat32) {
    switch (from) {
      case DataType::kUint8:
        return dequantize<Dequantized, float, uint8_t>(by_one);
      case DataType::kInt8:
        return dequantize<Dequantized, float, int8_t>(by_one);
      case DataType::kUint16:
        return dequantize<Dequantized, float, uint16_t>(by_one);
      case DataType::kInt16:
        return dequantize<Dequantized, float, int16_t>(by_one);
      case DataType::kUint32:
        return dequantize<Wide, float, uint32_t>(by_one);
      case DataType::kInt32:
        return dequantize<Wide, float, int32_t>(by_one);
      default:
        return nullptr;
    }
  }
  // What singles would round before halves are rounded.
  if (to != DataType::kFloat64) return nullptr;
  if (from == DataType::kUint16) return dequantize<Dequantized, double, uint16_t>(by_one);
  return from == DataType::kInt16 ? dequantize<Dequantized, double, int16_t>(by_one) : nullptr;
}

// The values below are one for all elements: they stand where its register begins.

template <class Value>
void keep(std::byte* out, const Value& value) {
  static_assert(sizeof(Value) <= kWholeElements * sizeof(float) && std::is_trivially_copyable_v<Value>);
  std::memcpy(out, &value, sizeof(Value));
}

template <class T>
void keep_quantization(const int64_t* /*constants*/, const std::byte* scale, const std::byte* zero_point,
                       const std::byte* /*z*/, std::byte* out, int64_t /*count*/) {
  keep(out, LinearQuantization::of(load<float>(scale), load<T>(zero_point)));
}
void keep_sum(const int64_t* /*constants*/, const std::byte* a, const std::byte* b, const std::byte* of_out,
              std::byte* out, int64_t /*count*/) {
  const auto at = [](const std::byte* from) { return load<LinearQuantization>(from); };
  keep(out, SumQuantization(at(a), at(b), at(of_out)));
}

bool is_byte(DataType type) { return type == DataType::kUint8 || type == DataType::kInt8; }

}  // namespace

Pass find_quantization(Opcode opcode, const Types& types) {
  const auto [x, y, z] = types.operands;
  const DataType out = types.out;
  const bool by_one = types.are_one[1] && types.are_one[2];
  switch (opcode) {
    case Opcode::QUANTIZE_LINEAR:
      return x == DataType::kFloat32 && y == DataType::kFloat32 && z == out ? quantization(out, by_one)
                                                                            : nullptr;
    case Opcode::DEQUANTIZE_LINEAR:
      return x == z && y == DataType::kFloat32 ? dequantization(x, out, by_one) : nullptr;
    case Opcode::LINEAR_QUANTIZATION:
      if (x != DataType::kFloat32 || out != DataType::kFloat32) return nullptr;
      if (y == DataType::kUint8) return keep_quantization<uint8_t>;
      return y == DataType::kInt8 ? keep_quantization<int8_t> : nullptr;
    case Opcode::SUM_QUANTIZATION:
      return types.only() == DataType::kFloat32 ? keep_sum : nullptr;
    case Opcode::QUANTIZED_LINEAR_ADD:
      return is_byte(x) && is_byte(y) && is_byte(out) && z == DataType::kFloat32 ? add_quantized : nullptr;
    default:
      return nullptr;
  }
}

ANYDML_ISA_END
