// The kernels of reductions, compiled apart from the plans, as they take most of the time.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "reduce/kernel.h"
#include "reduce/lanes.h"
#include "reduce/operations.h"
#include "reduce/tuning.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// `others` in the first lanes.
template <class A, class V>
ANYDML_INLINE V without(V v, V others, int64_t lanes) {
  constexpr int kLanes = sizeof(V) / sizeof(A);
  std::array<SignedOf<A>, kLanes> numbers;
  for (int i = 0; i < kLanes; ++i) numbers[static_cast<size_t>(i)] = static_cast<SignedOf<A>>(i);
  return bits_as<Lanes<SignedOf<A>, kLanes>>(numbers) < static_cast<SignedOf<A>>(lanes) ? others : v;
}

template <class Op>
ANYDML_INLINE typename Op::V load_elements(const std::byte* from) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  if constexpr (sizeof(typename Op::V) == sizeof(Wide<A>)) {
    return load_wide_lanes<T, A>(from);
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
    state.value = larger<typename Op::Number>(flipped<typename Op::Number>(x, mask), state.value);
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

template <class V>
ANYDML_INLINE bool any_lane(V is) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(V) == 64) return _mm512_movepi64_mask((__m512i)is) != 0;
#endif
  const auto words = bits_as<std::array<uint64_t, (sizeof(V) + 7) / 8>>(is);
  return std::ranges::any_of(words, [](uint64_t word) { return word != 0; });
}

// Settles accumulators which the next elements might take out of range. That is seldom.
template <class Op, int kVectors, class S>
ANYDML_INLINE void settle_where_away(S* states) {
  auto away = Op::is_away(states[0]);
#pragma GCC unroll 16
  for (int v = 1; v < kVectors; ++v) away = away | Op::is_away(states[v]);
  if (!any_lane(away)) return;
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) Op::settle(states[v]);
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
  // Of many rows side by side hardware prefetchers lose some.
  const bool fetches_ahead = rows.columns > kVectors * kLanes;
  S states[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) states[v] = Op::template load<V>(strip, column + v * kLanes);
  const std::byte* from = rows.from + column * kSize;
  const auto row = [&] {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      if (fetches_ahead && v * kLanes * kSize % 64 == 0) {
        prefetch_near(from + v * kLanes * kSize + tuning::kPrefetchBytes);
      }
      V x = load_elements<Op>(from + v * kLanes * kSize);
      if constexpr (kVectors == 1) x = without<typename Op::Number>(x, identity, left_out);
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
#pragma GCC unroll 16
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
#pragma GCC unroll 16
  for (int v = 0; v < kHalf; ++v) Op::combine(states[v], states[v + kHalf]);
  if constexpr (kHalf > 1) combine_halves<Op, kHalf / 2>(states);
}

// Lines whose elements are dealt out to kVectors vectors of accumulators in turn.
template <class Op, int kVectors>
ANYDML_NOINLINE void reduce_lines_by(const ReduceParameters& parameters, const Strip& strip,
                                     const Lines& lines) {
  using V = typename Op::V;
  using A = typename Op::Number;
  using S = typename Op::template State<V>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(A);
  constexpr int64_t kSize = sizeof(typename Op::Element);
  constexpr int64_t kRow = kVectors * kLanes;
  const V mask = mask_of<Op>(parameters);
  alignas(64) std::byte identities[kLanes * kSize];
  fill<Op>(parameters, identities, kLanes);
  for (int64_t line = 0; line < lines.count; ++line) {
    S states[kVectors];
    const S start = Op::spread(Op::template load<A>(strip, line));
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) states[v] = start;
    for (int64_t segment = 0; segment < lines.segments; ++segment) {
      const std::byte* from = lines.from + line * lines.step + segment * lines.segment_step;
      const std::byte* const end = from + lines.elements * kSize;
      for (int64_t r = 1; from + kRow * kSize <= end; from += kRow * kSize, ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          join<Op>(states[v], load_elements<Op>(from + v * kLanes * kSize), mask);
        }
        if constexpr (Op::kSettledAfter != 0) {
          if (r % Op::kSettledAfter == 0) settle_where_away<Op, kVectors>(states);
        }
      }
      const int64_t rest = (end - from) / kSize;
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const std::byte* const at = from + v * kLanes * kSize;
        if ((v + 1) * kLanes <= rest) {
          join<Op>(states[v], load_elements<Op>(at), mask);
        } else if (v * kLanes < rest) {
          join<Op>(states[v], load_first_elements<Op>(at, rest - v * kLanes, identities), mask);
        }
      }
      if constexpr (Op::kSettledAfter != 0) {
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) Op::settle(states[v]);
      }
    }
    combine_halves<Op, kVectors / 2>(states);
    Op::store(strip, line, all_lanes<Op>(states[0]));
  }
}

template <class Op>
void reduce_lines(const ReduceParameters& parameters, const Strip& strip, const Lines& lines) {
  constexpr int kBytes = sizeof(typename Op::V);
  constexpr int64_t kRow = Op::kRowBytes / static_cast<int64_t>(sizeof(typename Op::Number));
  if (Op::kRowBytes == tuning::kShortRowBytes || lines.elements < kRow) {
    return reduce_lines_by<Op, tuning::kShortRowBytes / kBytes>(parameters, strip, lines);
  }
  reduce_lines_by<Op, Op::kRowBytes / kBytes>(parameters, strip, lines);
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

// Stores doubles, each rounded to an element of T.
template <class T, class Values>
void store_doubles(int64_t columns, std::byte* out, int64_t out_step, const Values& values) {
  constexpr int64_t kLanes = sizeof(Doubles) / sizeof(double);
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i = 0; i < columns; i += kLanes) {
    const Doubles y = values(i);
    if (out_step == kSize && i + kLanes <= columns) {
      store_numbers<T, double>(out + i * kSize, y);
      continue;
    }
    std::byte each[sizeof(Doubles)];
    store_numbers<T, double>(each, y);
    for (int64_t k = 0; k < std::min(kLanes, columns - i); ++k) {
      std::memcpy(out + (i + k) * out_step, each + k * kSize, kSize);
    }
  }
}

// Arrays of accumulators are longer by a vector than there are columns.
template <class A>
ANYDML_INLINE Doubles doubles_at(const std::byte* array, int64_t i) {
  return load_numbers<A, double, Doubles>(array + i * static_cast<int64_t>(sizeof(A)));
}

template <class Op>
void finish_sum(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                int64_t out_step) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  const auto count = static_cast<double>(parameters.elements);
  const auto sums = [&](int64_t i) { return doubles_at<A>(strip.arrays[0], i); };
  switch (parameters.finish) {
    case Finish::kAverage:
      return store_doubles<T>(columns, out, out_step, [&](int64_t i) { return sums(i) / count; });
    case Finish::kRoot:
      return store_doubles<T>(columns, out, out_step,
                              [&](int64_t i) { return square_root<double>(sums(i)); });
    case Finish::kLogarithm:
      return store_doubles<T>(columns, out, out_step, [&](int64_t i) { return log_of(sums(i)); });
    default:
      return store_doubles<T>(columns, out, out_step, sums);
  }
}

template <class Op>
void finish_values(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                   int64_t out_step) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  constexpr int64_t kSize = sizeof(T);
  const A mask = bits_as<A>(static_cast<SignedOf<A>>(parameters.mask));
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kLanesOf<A>;
  using V = Lanes<A, kLanesOf<A>>;
  using Mask = Lanes<SignedOf<A>, kLanesOf<A>>;
  const V masks = bits_as<V>(Mask{} + static_cast<SignedOf<A>>(parameters.mask));
  for (; out_step == kSize && i + kLanes <= columns; i += kLanes) {
    const V v = load_lanes_at<V>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(A)));
    store_lanes<T, A>(out + i * kSize, flipped<A>(v, masks));
  }
#endif
  for (; i < columns; ++i) {
    const A value = load<A>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(A)));
    narrow<T, A>(out + i * out_step, flipped<A>(value, mask));
  }
}

// m * 2^e, beyond whose limits every element is infinite, or 0.
template <class Op>
void finish_product(const ReduceParameters&, const Strip& strip, int64_t columns, std::byte* out,
                    int64_t out_step) {
  store_doubles<typename Op::Element>(columns, out, out_step, [&](int64_t i) {
    const auto m = load_lanes_at<Doubles>(strip.arrays[0] + i * 8);
    using Exponents = Lanes<int64_t, sizeof(Doubles) / sizeof(double)>;
    constexpr int64_t kMost = 600;
    auto e = load_lanes_at<Exponents>(strip.arrays[1] + i * 8);
    e = e > kMost ? Exponents{} + kMost : e < -kMost ? Exponents{} - kMost : e;
    return m * bits_as<Doubles>((e + 1023) << 52);
  });
}

// m + ln(1 + rest), over all but one of the largest, m.
template <class Op>
void finish_exponentials(const ReduceParameters&, const Strip& strip, int64_t columns, std::byte* out,
                         int64_t out_step) {
  store_doubles<typename Op::Element>(columns, out, out_step, [&](int64_t i) {
    const auto state = Op::template load<Doubles>(strip, i);
    const Doubles rest = state.sum + (state.count - 1.0);
    const Doubles logarithm = rest < 1.0 ? log1p_of(rest) : log_of(rest + 1.0);
    return state.largest + logarithm;
  });
}

template <class T, class A>
int64_t next_least(const Strip& strip, int64_t column, int64_t columns) {
  constexpr int64_t kAtOnce = 64;
  const auto* const values = reinterpret_cast<const A*>(strip.arrays[0]);
  for (int64_t end = column; column < columns; column = end) {
    end = std::min(column + kAtOnce, columns);
    bool any = false;
    for (int64_t i = column; i < end; ++i) any |= values[i] == Largest<T, A>::kLeast;
    if (any) return std::find(values + column, values + end, Largest<T, A>::kLeast) - values;
  }
  return columns;
}

template <class A>
bool is_equal(const Strip& strip, const Strip& other) {
  return load<A>(strip.arrays[0]) == load<A>(other.arrays[0]);
}

template <class A>
void set_nan(const Strip& strip, int64_t column) {
  store(strip.arrays[0] + column * static_cast<int64_t>(sizeof(A)), std::numeric_limits<A>::quiet_NaN());
}

#if defined(ANYDML_VECTORS)
// The first lane in which two vectors are equal, or -1.
template <class A>
ANYDML_INLINE int64_t first_equal(Wide<A> x, Wide<A> y) {
  uint64_t lanes = 0;
#if defined(ANYDML_ISA_AVX512)
  const auto a = (__m512i)x;
  const auto b = (__m512i)y;
  if constexpr (std::is_same_v<A, float>) {
    lanes = _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_EQ_OQ);
  } else if constexpr (sizeof(A) == 1) {
    lanes = _mm512_cmpeq_epi8_mask(a, b);
  } else if constexpr (sizeof(A) == 2) {
    lanes = _mm512_cmpeq_epi16_mask(a, b);
  } else if constexpr (sizeof(A) == 4) {
    lanes = _mm512_cmpeq_epi32_mask(a, b);
  } else {
    lanes = _mm512_cmpeq_epi64_mask(a, b);
  }
#else
  const auto is = bits_as<std::array<SignedOf<A>, kWideLanes<A>>>(x == y);
  for (size_t i = 0; i < is.size(); ++i) lanes |= static_cast<uint64_t>(is[i] & 1) << i;
#endif
  return lanes == 0 ? -1 : std::countr_zero(lanes);
}
#endif

// The first of some elements that is equal to a value.
template <class T, class A>
int64_t find(const ReduceParameters& parameters, const std::byte* from, int64_t count, int64_t step,
             const Strip& strip, int64_t column) {
  const A mask = bits_as<A>(static_cast<SignedOf<A>>(parameters.mask));
  const A value = flipped<A>(load<A>(strip.arrays[0] + column * static_cast<int64_t>(sizeof(A))), mask);
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kWideLanes<A>;
  constexpr int64_t kSize = sizeof(T);
  const Wide<A> values = Wide<A>{} + value;
  if (step == kSize) {
    for (; i + kLanes <= count; i += kLanes) {
      const int64_t lane = first_equal<A>(load_wide_lanes<T, A>(from + i * kSize), values);
      if (lane >= 0) return i + lane;
    }
    if (i > 0 && i < count) {
      const int64_t last = count - kLanes;
      const int64_t lane = first_equal<A>(load_wide_lanes<T, A>(from + last * kSize), values);
      return lane < 0 ? -1 : last + lane;
    }
  } else if (step == -kSize) {
    for (; i + kLanes <= count; i += kLanes) {
      if (first_equal<A>(load_wide_lanes<T, A>(from - (i + kLanes - 1) * kSize), values) >= 0) break;
    }
  }
#endif
  for (; i < count; ++i) {
    if (widen<T, A>(from + i * step) == value) return i;
  }
  return -1;
}

// The largest and their indices, which are the numbers of rows and as wide as an element.
template <class T, class A, int kVectors>
ANYDML_INLINE void index_vectors(const ReduceParameters& parameters, const Strip& strip, const Rows& rows,
                                 int64_t column, int64_t left_out) {
  using Op = Largest<T, A>;
  using V = Wide<A>;
  using Index = std::make_unsigned_t<SignedOf<A>>;
  using I = Lanes<Index, kWideLanes<A>>;
  constexpr int64_t kLanes = kWideLanes<A>;
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kNumber = sizeof(A);
  const V mask = mask_of<Op>(parameters);
  [[maybe_unused]] const V identity = V{} + Op::identity(parameters);
  V best[kVectors];
  I index[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best[v] = load_lanes_at<V>(strip.recent[0] + (column + v * kLanes) * kNumber);
    index[v] = load_lanes_at<I>(strip.recent[1] + (column + v * kLanes) * kNumber);
    if (rows.number != 0) continue;
    best[v] = without<A>(V{} + Op::kLeast, best[v], left_out);
    index[v] = without<A>(I{}, index[v], left_out);
  }
  const std::byte* from = rows.from + column * kSize;
  I row = I{} + static_cast<Index>(rows.number);
  for (int64_t r = 0; r < rows.count; ++r, from += rows.step) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V x = load_wide_lanes<T, A>(from + v * kLanes * kSize);
      if constexpr (kVectors == 1) x = without<typename Op::Number>(x, identity, left_out);
      take_larger<A>(flipped<A>(x, mask), row, best[v], index[v]);
    }
    row = row + 1;
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    store_lanes_at(strip.recent[0] + (column + v * kLanes) * kNumber, best[v]);
    store_lanes_at(strip.recent[1] + (column + v * kLanes) * kNumber, index[v]);
  }
}

template <class T, class A>
void accumulate_indices(const ReduceParameters& parameters, const Strip& strip, const Rows& rows) {
  constexpr int64_t kLanes = kWideLanes<A>;
  constexpr int kVectors = kWideBytes == 64 ? 8 : 4;
  int64_t i = 0;
  for (; i + kVectors * kLanes <= rows.columns; i += kVectors * kLanes) {
    index_vectors<T, A, kVectors>(parameters, strip, rows, i, 0);
  }
  for (; i + 2 * kLanes <= rows.columns; i += 2 * kLanes) {
    index_vectors<T, A, 2>(parameters, strip, rows, i, 0);
  }
  for (; i < rows.columns; i += kLanes) {
    const int64_t column = std::min(i, rows.columns - kLanes);
    index_vectors<T, A, 1>(parameters, strip, rows, column, i - column);
  }
}

// Of equal elements the one with the lower index wins, as rows come in any order.
template <class A>
void join_rows(const Strip& strip, int64_t columns, int64_t index, int64_t index_step) {
  auto* const best = reinterpret_cast<A*>(strip.arrays[0]);
  auto* const indices = reinterpret_cast<int64_t*>(strip.arrays[1]);
  const auto* const recent = reinterpret_cast<const A*>(strip.recent[0]);
  const auto* const numbers = reinterpret_cast<const SignedOf<A>*>(strip.recent[1]);
  if (indices[0] == kNoIndex) {
    std::memcpy(best, recent, static_cast<size_t>(columns) * sizeof(A));
    for (int64_t i = 0; i < columns; ++i) indices[i] = index + numbers[i] * index_step;
    return;
  }
  for (int64_t i = 0; i < columns; ++i) {
    const int64_t found = index + numbers[i] * index_step;
    const bool is_better = (recent[i] > best[i]) | ((recent[i] == best[i]) & (found < indices[i]));
    best[i] = is_better ? recent[i] : best[i];
    indices[i] = is_better ? found : indices[i];
  }
}

template <class T, class A>
void start_indices(const Strip& strip, int64_t columns, int64_t, const std::byte*, int64_t) {
  std::fill_n(reinterpret_cast<A*>(strip.arrays[0]), columns, Largest<T, A>::kLeast);
  std::fill_n(reinterpret_cast<int64_t*>(strip.arrays[1]), columns, kNoIndex);
}

template <class A>
void combine_indices(const Strip& strip, const Strip& other, int64_t columns) {
  auto* const best = reinterpret_cast<A*>(strip.arrays[0]);
  auto* const indices = reinterpret_cast<int64_t*>(strip.arrays[1]);
  const auto* const values = reinterpret_cast<const A*>(other.arrays[0]);
  const auto* const places = reinterpret_cast<const int64_t*>(other.arrays[1]);
  for (int64_t i = 0; i < columns; ++i) {
    const bool is_better = (values[i] > best[i]) | ((values[i] == best[i]) & (places[i] < indices[i]));
    best[i] = is_better ? values[i] : best[i];
    indices[i] = is_better ? places[i] : indices[i];
  }
}

void finish_indices(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                    int64_t out_step) {
  const auto index = [&](int64_t i) {
    const auto found = load<int64_t>(strip.arrays[1] + i * 8);
    return parameters.from_the_end ? parameters.elements - 1 - found : found;
  };
  if (parameters.index_size == 8) {
    for (int64_t i = 0; i < columns; ++i) store(out + i * out_step, index(i));
  } else if (out_step == 4) {
    for (int64_t i = 0; i < columns; ++i) store(out + i * 4, static_cast<uint32_t>(index(i)));
  } else {
    for (int64_t i = 0; i < columns; ++i) store(out + i * out_step, static_cast<uint32_t>(index(i)));
  }
}

using FinishFunction = void (*)(const ReduceParameters&, const Strip&, int64_t, std::byte*, int64_t);

template <class Op>
constexpr ReduceKernel kernel_of(FinishFunction finish) {
  return {.element_size = sizeof(typename Op::Element),
          .sizes = {Op::kSizes[0], Op::kSizes[1], Op::kSizes[2]},
          .start = start<Op>,
          .fill = fill<Op>,
          .accumulate = accumulate<Op>,
          .reduce_lines = reduce_lines<Op>,
          .combine = combine<Op>,
          .finish = finish};
}

template <class T, class A, Term kTerm>
const ReduceKernel* sum_of() {
  using Op = Sum<T, A, kTerm>;
  if constexpr (std::is_floating_point_v<A>) {
    static constexpr ReduceKernel kKernel = kernel_of<Op>(finish_sum<Op>);
    return &kKernel;
  } else {
    static constexpr ReduceKernel kKernel = kernel_of<Op>(finish_values<Op>);
    return &kKernel;
  }
}

template <class T, class A>
const ReduceKernel* sum_of(Term term) {
  switch (term) {
    case Term::kMagnitude:
      return sum_of<T, A, Term::kMagnitude>();
    case Term::kSquare:
      return sum_of<T, A, Term::kSquare>();
    default:
      return sum_of<T, A, Term::kValue>();
  }
}

template <class T, class A>
const ReduceKernel* largest_of() {
  using Op = Largest<T, A>;
  static constexpr ReduceKernel kKernel = [] {
    ReduceKernel kernel = kernel_of<Op>(finish_values<Op>);
    kernel.is_equal = is_equal<A>;
    kernel.find = find<T, A>;
    if constexpr (std::is_floating_point_v<A>) {
      kernel.next_least = next_least<T, A>;
      kernel.set_nan = set_nan<A>;
    }
    return kernel;
  }();
  return &kKernel;
}

template <class T, class A>
const ReduceKernel* largest_index_of() {
  constexpr int64_t kMost = sizeof(A) == 1 ? 1 << 7 : sizeof(A) == 2 ? 1 << 15 : int64_t{1} << 31;
  static constexpr ReduceKernel kKernel = {
      .element_size = sizeof(T),
      .sizes = {sizeof(A), sizeof(int64_t), 0},
      .start = start_indices<T, A>,
      .fill = fill<Largest<T, A>>,
      .accumulate = accumulate_indices<T, A>,
      .combine = combine_indices<A>,
      .finish = finish_indices,
      .next_least = std::is_floating_point_v<A> ? next_least<T, A> : nullptr,
      .is_equal = is_equal<A>,
      .find = find<T, A>,
      .most_rows = kMost,
      .join_rows = join_rows<A>,
  };
  return &kKernel;
}

// Of signed integers and floats.
#define ANYDML_OF_ORDERED(make, type)  \
  switch (type) {                      \
    case DataType::kFloat32:           \
      return make<float, float>();     \
    case DataType::kFloat16:           \
      return make<Half, float>();      \
    case DataType::kInt8:              \
    case DataType::kUint8:             \
      return make<int8_t, int8_t>();   \
    case DataType::kInt16:             \
    case DataType::kUint16:            \
      return make<int16_t, int16_t>(); \
    case DataType::kInt32:             \
    case DataType::kUint32:            \
      return make<int32_t, int32_t>(); \
    case DataType::kInt64:             \
    case DataType::kUint64:            \
      return make<int64_t, int64_t>(); \
    default:                           \
      return nullptr;                  \
  }

}  // namespace

const ReduceKernel* sum_kernel(DataType type, Term term) {
  // Unsigned integers are their magnitudes.
  const bool is_unsigned = type == DataType::kUint32 || type == DataType::kUint64;
  const Term taken = is_unsigned && term == Term::kMagnitude ? Term::kValue : term;
  switch (type) {
    case DataType::kFloat32:
      return sum_of<float, double>(taken);
    case DataType::kFloat16:
      return sum_of<Half, float>(taken);
    case DataType::kInt32:
    case DataType::kUint32:
      return sum_of<uint32_t, uint32_t>(taken);
    case DataType::kInt64:
    case DataType::kUint64:
      return sum_of<uint64_t, uint64_t>(taken);
    default:
      return nullptr;
  }
}

const ReduceKernel* product_kernel(DataType type) {
  static constexpr ReduceKernel kSingles =
      kernel_of<FloatProduct<float>>(finish_product<FloatProduct<float>>);
  static constexpr ReduceKernel kHalves = kernel_of<FloatProduct<Half>>(finish_product<FloatProduct<Half>>);
  using Product32 = IntegerProduct<uint32_t>;
  using Product64 = IntegerProduct<uint64_t>;
  static constexpr ReduceKernel kIntegers32 = kernel_of<Product32>(finish_values<Product32>);
  static constexpr ReduceKernel kIntegers64 = kernel_of<Product64>(finish_values<Product64>);
  switch (type) {
    case DataType::kFloat32:
      return &kSingles;
    case DataType::kFloat16:
      return &kHalves;
    case DataType::kInt32:
    case DataType::kUint32:
      return &kIntegers32;
    case DataType::kInt64:
    case DataType::kUint64:
      return &kIntegers64;
    default:
      return nullptr;
  }
}

const ReduceKernel* exponential_sum_kernel(DataType type) {
  using Singles = ExponentialSum<float>;
  using Halves = ExponentialSum<Half>;
  static constexpr ReduceKernel kSingles = kernel_of<Singles>(finish_exponentials<Singles>);
  static constexpr ReduceKernel kHalves = kernel_of<Halves>(finish_exponentials<Halves>);
  return type == DataType::kFloat32 ? &kSingles : type == DataType::kFloat16 ? &kHalves : nullptr;
}

const ReduceKernel* largest_kernel(DataType type) { ANYDML_OF_ORDERED(largest_of, type) }
const ReduceKernel* largest_index_kernel(DataType type){ANYDML_OF_ORDERED(largest_index_of, type)}

ANYDML_ISA_END
