// Activations that other operators apply to their results.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>

#include "core/attributes.h"
#include "platform/isa.h"
#include "pointwise/operations.h"

ANYDML_ISA_BEGIN

// None, or one of those that cost next to nothing.
class Fused {
 public:
  // Nothing for any other activation; null is none.
  static std::optional<Fused> of(const Activation* activation) {
    if (activation == nullptr || activation->name == "ACTIVATION_IDENTITY") return Fused(Kind::kNone);
    if (activation->name == "ACTIVATION_RELU") return Fused(Kind::kRelu);
    const Attributes& attributes = activation->attributes;
    if (activation->name == "ELEMENT_WISE_CLIP" && !attributes.has("ScaleBias"))
      return Fused(Kind::kClip, attributes.real("Min"), attributes.real("Max"));
    return std::nullopt;
  }

  template <class T, class V>
  ANYDML_INLINE V applied(V y) const {
    if (kind_ == Kind::kNone) return y;
    const auto& limits = std::get<Constants<T>>(limits_);
    return kind_ == Kind::kRelu ? Relu::of<T>(limits, y, y) : Clip::of<T>(limits, y, y);
  }

 private:
  enum class Kind { kNone, kRelu, kClip };

  explicit Fused(Kind kind, double low = 0, double high = 0)
      : Fused(kind, std::array{bits_as<int64_t>(low), bits_as<int64_t>(high), int64_t{0}}) {}
  Fused(Kind kind, const std::array<int64_t, 3>& limits)
      : kind_(kind), limits_(Constants<float>(limits.data()), Constants<double>(limits.data())) {}

  Kind kind_;
  std::tuple<Constants<float>, Constants<double>> limits_;
};

ANYDML_ISA_END
