// Carries: what each line of a scan goes on from, where a chunk of a longer line is scanned. They are the
// second input of a request, which no desc has; without one, lines begin with the identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/layout.h"
#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/scaled_float.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Where they lie: one for each line, in the order of lines in memory. The output is packed, so that the
// offset of an element tells its line.
struct CarryPlaces {
  int64_t row = 0;    // the bytes of the output from one element of a line to the next; 0 without carries
  int64_t plane = 0;  // those of a line's elements, and what lies between them

  static CarryPlaces of(const Layout& out, int64_t axis) {
    CarryPlaces places{size_of(out.type), 0};
    int64_t step = places.row;
    for (auto d = static_cast<int64_t>(out.sizes.size()); d-- > 0;) {
      const auto at = static_cast<size_t>(d);
      require(out.sizes[at] == 1 || out.strides[at] == step,
              "the output of a scan with carries is not packed");
      if (d == axis) places.row = step;
      step *= out.sizes[at];
      if (d == axis) places.plane = step;
    }
    return places;
  }
};

// Of integers they are of the element's type, of floats doubles: sums, or pairs of m and e of m * 2^e.
template <class T, class Operation>
class Carries {
 public:
  using Accumulator = AccumulatorOf<T>;
  using State = std::conditional_t<kIsBlockable<T, Operation>, Accumulator, ScaledFloat>;

  Carries(const CarryPlaces& places, const void* const* inputs, const void* out)
      : places_(places),
        values_(places.row == 0 ? nullptr : static_cast<const std::byte*>(inputs[1])),
        out_(static_cast<const std::byte*>(out)) {}

  bool are_there() const { return values_ != nullptr; }

  // That of the line which has an element at `to`.
  State at(const std::byte* to) const {
    if (values_ == nullptr) return State(Operation::kIdentity);
    const int64_t offset = to - out_;
    const int64_t line =
        (offset / places_.plane * places_.row + offset % places_.row) / static_cast<int64_t>(sizeof(T));
    if constexpr (std::is_same_v<State, ScaledFloat>) {
      return normalised(load<double>(values_ + line * 16), load<int64_t>(values_ + line * 16 + 8));
    } else if constexpr (kIsFloat<T>) {
      return static_cast<State>(load<double>(values_ + line * 8));
    } else {
      return load<T>(values_ + line * static_cast<int64_t>(sizeof(T)));
    }
  }
  // Those of `count` adjacent lines, as accumulators.
  void at(const std::byte* to, int64_t count, Accumulator* accumulators) const {
    for (int64_t j = 0; j < count; ++j) {
      const State state = at(to + j * static_cast<int64_t>(sizeof(T)));
      if constexpr (std::is_same_v<State, ScaledFloat>) {
        accumulators[j] = static_cast<Accumulator>(state.m);
      } else {
        accumulators[j] = state;
      }
    }
  }

 private:
  CarryPlaces places_;
  const std::byte* values_;
  const std::byte* out_;
};

ANYDML_ISA_END
