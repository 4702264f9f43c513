// Which functions convert elements of one type to another: one, or two with single precision between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/layout.h"
#include "platform/isa.h"
#include "simd/convert.h"

ANYDML_ISA_BEGIN
namespace {

template <class From>
Convert choose_to_number(DataType to) {
  switch (to) {
    case DataType::kFloat32:
      return convert<float, From>;
    case DataType::kFloat64:
      return convert<double, From>;
    default:
      return nullptr;
  }
}

// To an integer of that size; that sign and type do not matter, the caller knows.
template <class From>
Convert choose_to_bits(int64_t size) {
  switch (size) {
    case 1:
      return convert<uint8_t, From>;
    case 2:
      return convert<uint16_t, From>;
    case 4:
      return convert<uint32_t, From>;
    default:
      return convert<uint64_t, From>;
  }
}

template <class From>
Convert choose_truncation(DataType to) {
  switch (to) {
    case DataType::kInt8:
      return convert<int8_t, From>;
    case DataType::kInt16:
      return convert<int16_t, From>;
    case DataType::kInt32:
      return convert<int32_t, From>;
    case DataType::kInt64:
      return convert<int64_t, From>;
    default:
      return choose_to_bits<From>(size_of(to));
  }
}

template <class From>
Convert choose_of_integer(DataType to) {
  if (to == DataType::kFloat16) return convert_for_halves<From>;
  if (is_float(to)) return choose_to_number<From>(to);
  // Bits are left off whatever the sign says of them.
  using Bits = std::make_unsigned_t<From>;
  const int64_t size = size_of(to);
  return size > static_cast<int64_t>(sizeof(From)) ? choose_to_bits<From>(size) : choose_to_bits<Bits>(size);
}

template <class From>
Convert choose_of_float(DataType to) {
  if (to == DataType::kFloat16) return convert_for_halves<From>;
  return is_float(to) ? choose_to_number<From>(to) : choose_truncation<From>(to);
}

inline Convert choose_conversion(DataType from, DataType to) {
  switch (from) {
    case DataType::kUint8:
      return choose_of_integer<uint8_t>(to);
    case DataType::kInt8:
      return choose_of_integer<int8_t>(to);
    case DataType::kUint16:
      return choose_of_integer<uint16_t>(to);
    case DataType::kInt16:
      return choose_of_integer<int16_t>(to);
    case DataType::kUint32:
      return choose_of_integer<uint32_t>(to);
    case DataType::kInt32:
      return choose_of_integer<int32_t>(to);
    case DataType::kUint64:
      return choose_of_integer<uint64_t>(to);
    case DataType::kInt64:
      return choose_of_integer<int64_t>(to);
    case DataType::kFloat32:
      return choose_of_float<float>(to);
    case DataType::kFloat64:
      return choose_of_float<double>(to);
    default:
      return nullptr;
  }
}

class Conversion {
 public:
  Conversion(DataType from, DataType to) : in_(size_of(from)), out_(size_of(to)) {
    if (in_ == 0 || out_ == 0) return;
    if (from == DataType::kFloat16) {
      first_ = widen_halves;
      second_ = to == DataType::kFloat32 ? nullptr : choose_conversion(DataType::kFloat32, to);
    } else if (to == DataType::kFloat16) {
      first_ = from == DataType::kFloat32 ? narrow_to_halves : choose_conversion(from, to);
      second_ = from == DataType::kFloat32 ? nullptr : narrow_to_halves;
    } else {
      first_ = choose_conversion(from, to);
    }
  }

  bool exists() const { return first_ != nullptr; }

  // Nothing beyond `count` elements is read or written.
  void run(const std::byte* from, std::byte* to, int64_t count) const {
    const int64_t blocks = count / kConvertedAtOnce;
    convert_blocks(from, to, blocks);
    const int64_t done = blocks * kConvertedAtOnce;
    const int64_t rest = count - done;
    if (rest == 0) return;
    alignas(64) std::byte read[kConvertedAtOnce * 8] = {};
    alignas(64) std::byte written[kConvertedAtOnce * 8];
    std::memcpy(read, from + done * in_, static_cast<size_t>(rest * in_));
    convert_blocks(read, written, 1);
    std::memcpy(to + done * out_, written, static_cast<size_t>(rest * out_));
  }

 private:
  // Blocks whose singles stay in the first cache.
  static constexpr int64_t kBlocksAtOnce = 4;

  void convert_blocks(const std::byte* from, std::byte* to, int64_t blocks) const {
    if (second_ == nullptr) return first_(from, to, blocks);
    alignas(64) std::byte singles[kBlocksAtOnce * kConvertedAtOnce * sizeof(float)];
    for (int64_t i = 0; i < blocks; i += kBlocksAtOnce) {
      const int64_t count = std::min(kBlocksAtOnce, blocks - i);
      first_(from + i * kConvertedAtOnce * in_, singles, count);
      second_(singles, to + i * kConvertedAtOnce * out_, count);
    }
  }

  int64_t in_;
  int64_t out_;
  Convert first_ = nullptr;
  Convert second_ = nullptr;
};

}  // namespace
ANYDML_ISA_END
