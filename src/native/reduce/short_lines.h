// Lines of a few elements, combined with accumulators as soon as shuffles have put them in order: a pass by
// way of a tile takes as long as memory does to bring them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "reduce/accumulate.h"
#include "reduce/kernel.h"
#include "reduce/line_shuffles.h"
#include "reduce/tuning.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

#if defined(ANYDML_ISA_AVX512)
ANYDML_ISA_BEGIN
namespace {

template <class Op, int64_t kElements>
ANYDML_NOINLINE int64_t accumulate_lines_of(const ReduceParameters& parameters, const Strip& strip,
                                            const std::byte* from, int64_t lines) {
  using V = typename Op::V;
  using T = typename Op::Element;
  constexpr bool kAreBytes = sizeof(T) == 1;
  using By = std::conditional_t<kAreBytes, ByteShuffle, Shuffle>;
  using Wider = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Lane = std::conditional_t<kAreBytes, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, Wider>>;
  constexpr int64_t kLines = 64 / sizeof(T);
  constexpr int64_t kLanes = sizeof(V) / sizeof(typename Op::Number);
  constexpr int64_t kStates = kLines / kLanes;
  const V mask = mask_of<Op>(parameters);
  int64_t line = 0;
  for (; line + kLines <= lines; line += kLines, from += kElements * 64) {
    __m512i elements[kElements];
    ANYDML_UNROLL(16)
    for (int64_t v = 0; v < kElements; ++v) {
      prefetch_near(from + v * 64 + tuning::kTileNear);
      prefetch_line(from + v * 64 + tuning::kTileAhead);
      elements[v] = (__m512i)load_vector<Vector<uint64_t, 8>>(from + v * 64);
    }
    typename Op::template State<V> states[kStates];
    ANYDML_UNROLL(16)
    for (int64_t k = 0; k < kStates; ++k) states[k] = Op::template load<V>(strip, line + k * kLanes);
    ANYDML_UNROLL(16)
    for (int64_t i = 0; i < kElements; ++i) {
      alignas(64) std::byte row[64];
      store_vector(row, (Vector<uint64_t, 8>)shuffle_row<By, Lane, kElements>(elements, i));
      ANYDML_UNROLL(16)
      for (int64_t k = 0; k < kStates; ++k) {
        join<Op>(states[k], load_elements<Op>(row + k * kLanes * static_cast<int64_t>(sizeof(T))), mask);
      }
    }
    ANYDML_UNROLL(16)
    for (int64_t k = 0; k < kStates; ++k) Op::store(strip, line + k * kLanes, states[k]);
  }
  return line;
}

// Returns how many lines have been combined with the accumulators, which are whole registers of them.
template <class Op>
int64_t accumulate_lines(const ReduceParameters& parameters, const Strip& strip, const std::byte* from,
                         int64_t elements, int64_t lines) {
  if (sizeof(typename Op::Element) == 1 && !has_byte_shuffles()) return 0;
  switch (elements) {
    case 2:
      return accumulate_lines_of<Op, 2>(parameters, strip, from, lines);
    case 3:
      return accumulate_lines_of<Op, 3>(parameters, strip, from, lines);
    case 4:
      return accumulate_lines_of<Op, 4>(parameters, strip, from, lines);
    case 5:
      return accumulate_lines_of<Op, 5>(parameters, strip, from, lines);
    case 6:
      return accumulate_lines_of<Op, 6>(parameters, strip, from, lines);
    case 7:
      return accumulate_lines_of<Op, 7>(parameters, strip, from, lines);
    default:
      return 0;
  }
}

}  // namespace
ANYDML_ISA_END
#endif
