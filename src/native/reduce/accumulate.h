// Loops that combine elements with accumulators: rows with those of their columns, lines with some of their
// own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "reduce/kernel.h"
#include "reduce/lanes.h"
#include "reduce/operations.h"
#include "reduce/tuning.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// The numbers of lanes. A table, as compilers put local ones together again in each turn of a loop.
template <class Number, int kLanes>
struct LaneNumbers {
  alignas(64) Number numbers[kLanes] = {};

  constexpr LaneNumbers() {
    for (int i = 0; i < kLanes; ++i) numbers[i] = static_cast<Number>(i);
  }
};

// Whether a lane is one of the first ones.
template <class A, class V>
ANYDML_INLINE auto is_first_lane(int64_t lanes) {
  using Number = SignedOf<A>;
  constexpr int kLanes = sizeof(V) / sizeof(A);
  static constexpr LaneNumbers<Number, kLanes> kTable;
  const auto numbers = load_lanes_at<Lanes<Number, kLanes>>(reinterpret_cast<const std::byte*>(&kTable));
  return numbers < static_cast<Number>(lanes);
}

template <class Op>
ANYDML_INLINE typename Op::V load_elements(const std::byte* from) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  if constexpr (sizeof(typename Op::V) == sizeof(Wide<A>)) {
    return load_wide_lanes<T, A>(from);
  } else if constexpr (std::is_same_v<T, A>) {
    return load_lanes_at<typename Op::V>(from);
  } else {
    return load_lanes<T, A>(from);
  }
}

template <class Op>
void fill(const ReduceParameters& parameters, std::byte* to, int64_t count) {
  using T = typename Op::Element;
  for (int64_t i = 0; i < count; ++i) {
    narrow<T, typename Op::Number>(to + i * static_cast<int64_t>(sizeof(T)), Op::identity(parameters));
  }
}

// An element joins the accumulator.
template <class Op, class S>
ANYDML_INLINE void join(S& state, typename Op::V x, [[maybe_unused]] typename Op::V mask) {
  if constexpr (requires { Op::kLeast; }) {
    state.value = larger<typename Op::Number>(Op::key(x, mask), state.value);
  } else {
    Op::step(state, x);
  }
}

template <class Op>
inline typename Op::V mask_of(const ReduceParameters& parameters) {
  using V = typename Op::V;
  using Bits = SignedOf<typename Op::Number>;
  using Mask = Lanes<Bits, static_cast<int>(sizeof(V) / sizeof(Bits))>;
  return bits_as<V>(Mask{} + static_cast<Bits>(parameters.mask));
}

template <class Op, class S>
ANYDML_NOINLINE void settle_all(S* states, int count) {
  for (int i = 0; i < count; ++i) Op::settle(states[i]);
}

// Settles accumulators which the next elements might take out of range. That is seldom, and found out for all
// of them at once.
template <class Op, int kStates, class S>
ANYDML_INLINE void settle_where_away(S* states) {
  if constexpr (Op::kSettledAfter != 0) {
    auto bits = Op::away_bits(states[0]);
    ANYDML_UNROLL(16)
    for (int i = 1; i < kStates; ++i) bits = bits | Op::away_bits(states[i]);
    if (!has_bits(bits, Op::kAway)) [[likely]]
      return;
    // 0, and what is not finite, is away for good.
    bits = Op::away_bits_of_numbers(states[0]);
    ANYDML_UNROLL(16)
    for (int i = 1; i < kStates; ++i) bits = bits | Op::away_bits_of_numbers(states[i]);
    if (!has_bits(bits, Op::kAway)) return;
    // A copy, as others stay in registers.
    S settled[kStates];
    ANYDML_UNROLL(16)
    for (int i = 0; i < kStates; ++i) settled[i] = states[i];
    settle_all<Op>(settled, kStates);
    ANYDML_UNROLL(16)
    for (int i = 0; i < kStates; ++i) states[i] = settled[i];
  }
}

// Combines rows with kVectors vectors of accumulators, which stay in registers. The first `left_out` columns
// are left as they are.
template <class Op, int kVectors>
ANYDML_INLINE void accumulate_vectors(const ReduceParameters& parameters, const Strip& strip,
                                      const Rows& rows, int64_t column, int64_t left_out) {
  using V = typename Op::V;
  using S = typename Op::template State<V>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(typename Op::Number);
  constexpr int64_t kSize = sizeof(typename Op::Element);
  const V mask = mask_of<Op>(parameters);
  [[maybe_unused]] const V identity = V{} + Op::identity(parameters);
  [[maybe_unused]] const auto is_left_out = is_first_lane<typename Op::Number, V>(left_out);
  S states[kVectors];
  ANYDML_UNROLL(16)
  for (int v = 0; v < kVectors; ++v) states[v] = Op::template load<V>(strip, column + v * kLanes);
  const std::byte* from = rows.from + column * kSize;
  const auto row = [&] {
    ANYDML_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      if (v * kLanes * kSize % 64 == 0) prefetch_line(from + v * kLanes * kSize + rows.ahead);
      V x = load_elements<Op>(from + v * kLanes * kSize);
      if constexpr (kVectors == 1) x = is_left_out ? identity : x;
      join<Op>(states[v], x, mask);
    }
    from += rows.step;
  };
  if constexpr (Op::kSettledAfter != 0) {
    int64_t r = 0;
    while (r < rows.count) {
      for (const int64_t end = std::min(rows.count, r + Op::kSettledAfter); r < end; ++r) row();
      settle_where_away<Op, kVectors>(states);
    }
  } else {
    for (int64_t r = 0; r < rows.count; ++r) row();
  }
  ANYDML_UNROLL(16)
  for (int v = 0; v < kVectors; ++v) Op::store(strip, column + v * kLanes, states[v]);
}

// The vectors whose accumulators stay in registers together.
template <class Op>
constexpr int vectors_at_once() {
  const bool has_many_numbers = Op::kSizes[1] != 0;
  return Op::kSizes[2] != 0 ? 2 : has_many_numbers && kWideBytes != 64 ? 4 : 8;
}

template <class Op>
void accumulate(const ReduceParameters& parameters, const Strip& strip, const Rows& rows) {
  constexpr int64_t kLanes = sizeof(typename Op::V) / sizeof(typename Op::Number);
  constexpr int kVectors = vectors_at_once<Op>();
  int64_t i = 0;
  for (; i + kVectors * kLanes <= rows.columns; i += kVectors * kLanes) {
    accumulate_vectors<Op, kVectors>(parameters, strip, rows, i, 0);
  }
  if constexpr (kVectors > 4) {
    for (; i + 4 * kLanes <= rows.columns; i += 4 * kLanes) {
      accumulate_vectors<Op, 4>(parameters, strip, rows, i, 0);
    }
  }
  if constexpr (kVectors > 2) {
    for (; i + 2 * kLanes <= rows.columns; i += 2 * kLanes) {
      accumulate_vectors<Op, 2>(parameters, strip, rows, i, 0);
    }
  }
  for (; i < rows.columns; i += kLanes) {
    const int64_t column = std::min(i, rows.columns - kLanes);
    accumulate_vectors<Op, 1>(parameters, strip, rows, column, i - column);
  }
}

// The first elements of a vector, and behind them what leaves an accumulator as it is.
template <class Op>
ANYDML_INLINE typename Op::V load_first_elements(const std::byte* from, int64_t count,
                                                 const std::byte* identities) {
  using T = typename Op::Element;
  constexpr int64_t kLanes = sizeof(typename Op::V) / sizeof(typename Op::Number);
  constexpr int kBytes = kLanes * sizeof(T);
  alignas(64) std::byte elements[kBytes];
#if defined(ANYDML_ISA_AVX512)
  if constexpr (kBytes >= 16) {
    using Bytes = Vector<uint8_t, kBytes>;
    const auto others = load_vector<Bytes>(identities);
    store_vector(elements, load_bytes(from, count * static_cast<int64_t>(sizeof(T)), others));
    return load_elements<Op>(elements);
  }
#endif
  std::memcpy(elements, identities, kBytes);
  std::memcpy(elements, from, static_cast<size_t>(count) * sizeof(T));
  return load_elements<Op>(elements);
}

// Calls body(place, from, left) for each vector of columns of so many planes at a time, the last vector of a
// plane first: what is stored behind its columns is stored over by the next plane. Where elements of others
// are behind those of a vector, which may be read, `left` is a vector's lanes.
template <class Op, class Body>
ANYDML_INLINE void for_each_plane(const Planes& planes, const Body& body) {
  constexpr int64_t kLanes = sizeof(typename Op::V) / sizeof(typename Op::Number);
  constexpr int64_t kSize = sizeof(typename Op::Element);
  const int64_t followed = planes.followed_by(kLanes * kSize);
  const int64_t bytes = planes.rows * planes.row_step;
  const std::byte* plane = planes.from;
  const auto next = [&]<int kCount>(std::integral_constant<int, kCount> count, int64_t p, bool is_followed) {
    for (int64_t b = 0; b < kCount * bytes; b += kLine) prefetch_line(plane + b + kPrefetchDistance);
    for (int64_t i = (planes.columns - 1) / kLanes * kLanes; i >= 0; i -= kLanes) {
      const int64_t left = is_followed ? kLanes : std::min(kLanes, planes.columns - i);
      body(count, p * planes.columns + i, plane + i * kSize, left);
    }
    plane += kCount * planes.step;
  };
  int64_t p = 0;
  for (; p + tuning::kPlanesAtOnce <= followed; p += tuning::kPlanesAtOnce) {
    next(std::integral_constant<int, tuning::kPlanesAtOnce>{}, p, true);
  }
  for (; p < planes.count; ++p) next(std::integral_constant<int, 1>{}, p, p < followed);
}

template <class Op>
ANYDML_NOINLINE void reduce_planes(const ReduceParameters& parameters, const Strip& strip,
                                   const Planes& planes) {
  using V = typename Op::V;
  using S = typename Op::template State<V>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(typename Op::Number);
  const V mask = mask_of<Op>(parameters);
  alignas(64) std::byte identities[kLanes * sizeof(typename Op::Element)];
  fill<Op>(parameters, identities, kLanes);
  const S start = Op::spread(Op::template load<typename Op::Number>(strip, 0));
  const int64_t step = planes.step;
  for_each_plane<Op>(planes, [&]<int kCount>(std::integral_constant<int, kCount>, int64_t place,
                                             const std::byte* from, int64_t left) {
    S states[kCount];
    ANYDML_UNROLL(16)
    for (int k = 0; k < kCount; ++k) states[k] = start;
    const auto add_rows = [&](int64_t rows, const auto& load) {
      for (int64_t r = 0; r < rows; ++r, from += planes.row_step) {
        ANYDML_UNROLL(16)
        for (int k = 0; k < kCount; ++k) join<Op>(states[k], load(from + k * step), mask);
      }
    };
    const auto add_all = [&](const auto& load) {
      if constexpr (Op::kSettledAfter == 0) {
        add_rows(planes.rows, load);
      } else {
        for (int64_t r = 0; r < planes.rows; r += Op::kSettledAfter) {
          add_rows(std::min<int64_t>(Op::kSettledAfter, planes.rows - r), load);
          settle_where_away<Op, kCount>(states);
        }
      }
    };
    const auto all = [](const std::byte* at) { return load_elements<Op>(at); };
    if (kCount > 1 || left == kLanes) {
      add_all(all);
    } else {
      add_all([&](const std::byte* at) { return load_first_elements<Op>(at, left, identities); });
    }
    ANYDML_UNROLL(16)
    for (int k = 0; k < kCount; ++k) Op::store(strip, place + k * planes.columns, states[k]);
  });
}

// The numbers of all lanes, put together in halves.
template <class Op, class S>
ANYDML_INLINE auto all_lanes(const S& state) {
  using A = typename Op::Number;
  if constexpr (sizeof(S) == sizeof(typename Op::template State<A>)) {
    return state;
#if defined(ANYDML_VECTORS)
  } else if constexpr (sizeof(S) == 2 * sizeof(typename Op::template State<A>)) {
    auto lower = Op::lane(state, 0);
    Op::combine(lower, Op::lane(state, 1));
    return lower;
  } else {
    auto lower = Op::template half<0>(state);
    Op::combine(lower, Op::template half<1>(state));
    return all_lanes<Op>(lower);
#endif
  }
}

// The numbers of vectors, likewise.
template <class Op, int kHalf, class S>
ANYDML_INLINE void combine_halves(S* states) {
  settle_where_away<Op, 2 * kHalf>(states);
  ANYDML_UNROLL(16)
  for (int v = 0; v < kHalf; ++v) Op::combine(states[v], states[v + kHalf]);
  if constexpr (kHalf > 1) combine_halves<Op, kHalf / 2>(states);
}

// The numbers of as many lines as a vector has lanes, by a tree: each step has half as many vectors, of twice
// as many lines, and puts lanes together in halves as all_lanes() does.
template <class Op, int kLines, class S>
ANYDML_INLINE void all_lanes_of_lines([[maybe_unused]] S* states) {
#if defined(ANYDML_VECTORS)
  if constexpr (kLines > 1) {
    settle_where_away<Op, kLines>(states);
    constexpr int kBytes = kLines * static_cast<int>(sizeof(typename Op::Number));
    for (int i = 0; i < kLines / 2; ++i) {
      S lower = Op::merged(states[2 * i], states[2 * i + 1], HalfBlocks<0, kBytes>{});
      Op::combine(lower, Op::merged(states[2 * i], states[2 * i + 1], HalfBlocks<1, kBytes>{}));
      states[i] = lower;
    }
    all_lanes_of_lines<Op, kLines / 2>(states);
  }
#endif
}

// Short lines have fewer elements than accumulators, one behind the other; long ones are one segment, too.
enum class LineKind { kShort, kSegments, kLong };

// What the elements of a line come to in each lane. They are dealt out to kVectors vectors of accumulators in
// turn.
template <class Op, int kVectors, LineKind kKind>
ANYDML_INLINE auto reduce_line(const typename Op::template State<typename Op::V>& start, const Lines& lines,
                               int64_t line, typename Op::V mask, const std::byte* identities) {
  using V = typename Op::V;
  using S = typename Op::template State<V>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(typename Op::Number);
  constexpr int64_t kSize = sizeof(typename Op::Element);
  constexpr int64_t kRow = kVectors * kLanes;
  S states[kVectors];
  ANYDML_UNROLL(16)
  for (int v = 0; v < kVectors; ++v) states[v] = start;
  const std::byte* segment = lines.from + line * lines.step;
  const int64_t whole = kKind == LineKind::kShort ? 0 : lines.elements / kRow;
  const int64_t rest = lines.elements - whole * kRow;
  // No hardware follows short segments, which are adjacent to those of the next lines.
  const bool is_short = lines.segments > 1 && lines.elements * kSize < tuning::kShortSegmentBytes;
  const int64_t ahead = is_short ? tuning::kPrefetchLines * lines.step : tuning::kTileNear;
  for (int64_t s = kKind == LineKind::kSegments ? lines.segments : 1; s > 0; --s) {
    const std::byte* from = segment;
    [[maybe_unused]] int64_t settled = 0;
    for (int64_t r = whole; r > 0; --r, from += kRow * kSize) {
      ANYDML_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) {
        if (kKind == LineKind::kSegments && v * kLanes * kSize % 64 == 0) {
          prefetch_near(from + v * kLanes * kSize + ahead);
        }
        if (kKind == LineKind::kLong && v * kLanes * kSize % 64 == 0) {
          prefetch_line(from + v * kLanes * kSize + kPrefetchDistance);
        }
        join<Op>(states[v], load_elements<Op>(from + v * kLanes * kSize), mask);
      }
      if constexpr (Op::kSettledAfter != 0) {
        if (++settled == Op::kSettledAfter) {
          settle_where_away<Op, kVectors>(states);
          settled = 0;
        }
      }
    }
    ANYDML_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      const std::byte* const at = from + v * kLanes * kSize;
      if ((v + 1) * kLanes <= rest) {
        join<Op>(states[v], load_elements<Op>(at), mask);
      } else if (v * kLanes < rest) {
        join<Op>(states[v], load_first_elements<Op>(at, rest - v * kLanes, identities), mask);
      }
    }
    if constexpr (kKind == LineKind::kSegments) {
      settle_where_away<Op, kVectors>(states);
      segment += lines.segment_step;
    }
  }
  combine_halves<Op, kVectors / 2>(states);
  return states[0];
}

template <class Op, int kVectors, LineKind kKind>
ANYDML_NOINLINE void reduce_lines_by(const ReduceParameters& parameters, const Strip& strip,
                                     const Lines& lines) {
  using V = typename Op::V;
  using A = typename Op::Number;
  using S = typename Op::template State<V>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(A);
  const V mask = mask_of<Op>(parameters);
  alignas(64) std::byte identities[kLanes * sizeof(typename Op::Element)];
  fill<Op>(parameters, identities, kLanes);
  S start = Op::spread(Op::template load<A>(strip, 0));
  for (int64_t line = 0; line < lines.count; line += kLanes) {
    const int64_t count = std::min(kLanes, lines.count - line);
    alignas(64) S states[kLanes];
    for (int64_t i = 0; i < count; ++i) {
      // Only exponentials begin with what a line has of its own.
      if constexpr (Op::kSizes[2] != 0) start = Op::spread(Op::template load<A>(strip, line + i));
      states[i] = reduce_line<Op, kVectors, kKind>(start, lines, line + i, mask, identities);
    }
    // Of few lines a tree would have more steps.
    if (kLanes == 1 || 4 * count <= kLanes) {
      for (int64_t i = 0; i < count; ++i) {
        Op::settle(states[i]);
        Op::store(strip, line + i, all_lanes<Op>(states[i]));
      }
      continue;
    }
    for (int64_t i = count; i < kLanes; ++i) states[i] = states[0];
    all_lanes_of_lines<Op, kLanes>(states);
    Op::store(strip, line, states[0]);
  }
}

template <class Op>
void reduce_lines(const ReduceParameters& parameters, const Strip& strip, const Lines& lines) {
  constexpr int kVectors = Op::kRowBytes / static_cast<int>(sizeof(typename Op::V));
  constexpr int kFewVectors = tuning::kShortRowBytes / static_cast<int>(sizeof(typename Op::V));
  constexpr int64_t kNumbers = sizeof(typename Op::V) / sizeof(typename Op::Number);
  if (lines.segments == 1 && lines.elements < kFewVectors * kNumbers) {
    return reduce_lines_by<Op, kFewVectors, LineKind::kShort>(parameters, strip, lines);
  }
  if (kVectors == kFewVectors || lines.segments > 1 || lines.elements < kVectors * kNumbers) {
    return reduce_lines_by<Op, kFewVectors, LineKind::kSegments>(parameters, strip, lines);
  }
  reduce_lines_by<Op, kVectors, LineKind::kLong>(parameters, strip, lines);
}

template <class Op>
void combine(const Strip& strip, const Strip& other, int64_t columns) {
  using V = typename Op::V;
  using A = typename Op::Number;
  constexpr int64_t kLanes = sizeof(V) / sizeof(A);
  const auto part = [&]<class U>(int64_t i, U) {
    auto state = Op::template load<U>(strip, i);
    auto another = Op::template load<U>(other, i);
    Op::settle(state);
    Op::settle(another);
    Op::combine(state, another);
    Op::store(strip, i, state);
  };
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) part(i, V{});
#if defined(ANYDML_ISA_AVX512)
  // The last ones under a mask, as there are few columns where rows are accumulated side by side.
  using S = typename Op::template State<V>;
  if constexpr (sizeof(S) == 64) {
    if (i == columns) return;
    constexpr int64_t kSize = sizeof(A);
    const int64_t bytes = (columns - i) * kSize;
    std::byte* const at = strip.arrays[0] + i * kSize;
    S state{load_bytes(at, bytes, V{})};
    Op::combine(state, S{load_bytes(other.arrays[0] + i * kSize, bytes, V{})});
    _mm512_mask_storeu_epi8(at, ~(~uint64_t{0} << bytes), (__m512i)state.value);
    return;
  }
#endif
  for (; i < columns; ++i) part(i, A{});
}

template <class Op>
void start(const Strip& strip, int64_t columns, int64_t period, const std::byte* out, int64_t out_step) {
  using A = typename Op::Number;
  std::fill_n(reinterpret_cast<A*>(strip.arrays[0]), columns, Op::start(0));
  if constexpr (Op::kSizes[1] != 0) std::memset(strip.arrays[1], 0, static_cast<size_t>(columns * 8));
  if constexpr (Op::kSizes[2] != 0) {
    for (int64_t i = 0; i < columns; ++i) {
      store(strip.arrays[2] + i * 8, widen<typename Op::Element, double>(out + i % period * out_step));
    }
  }
}

}  // namespace
ANYDML_ISA_END
