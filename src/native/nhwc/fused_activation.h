// Activations that other operators apply to their results.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "platform/isa.h"
#include "pointwise/operations.h"

ANYDML_ISA_BEGIN

// None, or one of those that cost next to nothing.
class Fused {
 public:
  // Of an activation as an attribute: its operator's type and its members; nothing for any other activation.
  static std::optional<Fused> of(const std::vector<int64_t>& attribute) {
    if (attribute.empty() || attribute[0] == kIdentity) return Fused(Kind::kNone);
    if (attribute[0] == kRelu) return Fused(Kind::kRelu);
    // No ScaleBias stands before the limits.
    if (attribute[0] == kClip && attribute.size() == 3) return Fused(Kind::kClip, attribute[1], attribute[2]);
    return std::nullopt;
  }

  template <class T, class V>
  ANYDML_INLINE V applied(V y) const {
    if (kind_ == Kind::kNone) return y;
    const auto& limits = std::get<Constants<T>>(limits_);
    return kind_ == Kind::kRelu ? Relu::of<T>(limits, y, y) : Clip::of<T>(limits, y, y);
  }

 private:
  // The values of DML_OPERATOR_TYPE.
  static constexpr int64_t kClip = 8;
  static constexpr int64_t kIdentity = 38;
  static constexpr int64_t kRelu = 44;
  enum class Kind { kNone, kRelu, kClip };

  // The limits by a double's bits.
  explicit Fused(Kind kind, int64_t low = 0, int64_t high = 0)
      : Fused(kind, std::array<int64_t, 3>{low, high, 0}) {}
  Fused(Kind kind, const std::array<int64_t, 3>& limits)
      : kind_(kind), limits_(Constants<float>(limits.data()), Constants<double>(limits.data())) {}

  Kind kind_;
  std::tuple<Constants<float>, Constants<double>> limits_;
};

ANYDML_ISA_END
