// Where the largest elements are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "reduce/accumulate.h"
#include "reduce/kernel.h"
#include "reduce/lanes.h"
#include "reduce/operations.h"
#include "reduce/tuning.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// The lanes in which two vectors are equal, as bits.
template <class A>
ANYDML_INLINE uint64_t equal_lanes(Wide<A> x, Wide<A> y) {
#if defined(ANYDML_ISA_AVX512)
  const auto a = (__m512i)x;
  const auto b = (__m512i)y;
  if constexpr (std::is_same_v<A, float>) {
    return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_EQ_OQ);
  } else if constexpr (sizeof(A) == 1) {
    return _mm512_cmpeq_epi8_mask(a, b);
  } else if constexpr (sizeof(A) == 2) {
    return _mm512_cmpeq_epi16_mask(a, b);
  } else if constexpr (sizeof(A) == 4) {
    return _mm512_cmpeq_epi32_mask(a, b);
  } else {
    return _mm512_cmpeq_epi64_mask(a, b);
  }
#elif defined(ANYDML_VECTORS)
  uint64_t lanes = 0;
  const auto is = bits_as<std::array<SignedOf<A>, kWideLanes<A>>>(x == y);
  for (size_t i = 0; i < is.size(); ++i) lanes |= static_cast<uint64_t>(is[i] & 1) << i;
  return lanes;
#else
  return x == y;
#endif
}

template <class Op>
int64_t next_least(const Strip& strip, int64_t column, int64_t columns) {
  using A = typename Op::Number;
  // Arrays of accumulators are longer by a vector than there are columns.
  const Wide<A> least = Wide<A>{} + Op::kLeast;
  for (; column < columns; column += kWideLanes<A>) {
    const auto values = load_lanes_at<Wide<A>>(strip.arrays[0] + column * static_cast<int64_t>(sizeof(A)));
    const uint64_t found = equal_lanes<A>(values, least);
    if (found != 0) return std::min(column + std::countr_zero(found), columns);
  }
  return columns;
}

template <class Op>
bool is_equal(const Strip& strip, const Strip& other) {
  using A = typename Op::Number;
  return Op::is_equal(load<A>(strip.arrays[0]), load<A>(other.arrays[0]));
}

// Of one sign, whatever the mask.
template <class Op>
void set_nan(const ReduceParameters& parameters, const Strip& strip, int64_t column) {
  using A = typename Op::Number;
  const A mask = bits_as<A>(static_cast<SignedOf<A>>(parameters.mask));
  store(strip.arrays[0] + column * static_cast<int64_t>(sizeof(A)),
        Op::key(Op::element(Op::nan(), A{}), mask));
}

// The first of adjacent elements that is equal to a value, or -1. 64 are compared before anything is decided,
// as a processor mistakes most decisions.
template <class Op>
ANYDML_INLINE int64_t find_adjacent(const std::byte* from, int64_t count, typename Op::Number value) {
  using A = typename Op::Number;
  // What is put behind the last ones, and passed over.
  alignas(64) static constexpr std::byte kOthers[std::max(kWideBytes, 8)]{};
  constexpr int64_t kLanes = kWideLanes<A>;
  constexpr int64_t kSize = sizeof(typename Op::Element);
  // Both zeros, where they differ as elements.
  const bool is_zero = Op::is_zero(value);
  if (is_zero) value = A{};
  const Wide<A> values = Wide<A>{} + value;
  const auto equal = [&](Wide<A> x) {
    if constexpr (requires { Op::kMagnitude; }) {
      const A significant = is_zero ? Op::kMagnitude : A{-1};
      x = static_cast<Wide<A>>(x & significant);
    }
    return equal_lanes<A>(x, values);
  };
  // The places of up to 64 elements, as bits.
  const auto found_in = [&](int64_t begin, int64_t some) {
    uint64_t found = 0;
    for (int64_t v = 0; v < some; v += kLanes) {
      const std::byte* const at = from + (begin + v) * kSize;
      const int64_t left = some - v;
      if (left >= kLanes) {
        found |= equal(load_elements<Op>(at)) << v;
      } else {
        found |= (equal(load_first_elements<Op>(at, left, kOthers)) & ((uint64_t{1} << left) - 1)) << v;
      }
    }
    return found;
  };
  int64_t i = 0;
  // Of lines of two such blocks both, without a decision, of which each second one would be mistaken.
  if (count > 64 && count <= 128) {
    uint64_t first = 0;
    ANYDML_UNROLL(8)
    for (int64_t v = 0; v < 64; v += kLanes) first |= equal(load_elements<Op>(from + v * kSize)) << v;
    const uint64_t second = found_in(64, count - 64);
    const uint64_t all = -static_cast<uint64_t>(first != 0);
    const uint64_t found = (first & all) | (second & ~all);
    return found == 0 ? -1 : std::countr_zero(found) + static_cast<int64_t>(64 & ~all);
  }
  for (; i + 64 <= count; i += 64) {
    uint64_t found = 0;
    ANYDML_UNROLL(8)
    for (int64_t v = 0; v < 64; v += kLanes) {
      found |= equal(load_elements<Op>(from + (i + v) * kSize)) << v;
    }
    if (found != 0) return i + std::countr_zero(found);
  }
  const uint64_t found = found_in(i, count - i);
  return found == 0 ? -1 : i + std::countr_zero(found);
}

// The element whose key an accumulator is.
template <class Op>
typename Op::Number element_at(const ReduceParameters& parameters, const Strip& strip, int64_t column) {
  using A = typename Op::Number;
  const A mask = bits_as<A>(static_cast<SignedOf<A>>(parameters.mask));
  return Op::element(load<A>(strip.arrays[0] + column * static_cast<int64_t>(sizeof(A))), mask);
}

// The first of some elements that is equal to a value.
template <class Op>
int64_t find(const ReduceParameters& parameters, const std::byte* from, int64_t count, int64_t step,
             const Strip& strip, int64_t column) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  const A value = element_at<Op>(parameters, strip, column);
  constexpr int64_t kSize = sizeof(T);
  if (step == kSize) {
    return find_adjacent<Op>(from, count, value);
  }
  int64_t i = 0;
  const bool is_zero = Op::is_zero(value);
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kWideLanes<A>;
  const Wide<A> values = Wide<A>{} + value;
  if (step == -kSize && !is_zero) {
    for (; i + kLanes <= count; i += kLanes) {
      if (equal_lanes<A>(load_wide_lanes<T, A>(from - (i + kLanes - 1) * kSize), values) != 0) break;
    }
  }
#endif
  for (; i < count; ++i) {
    const A element = widen<T, A>(from + i * step);
    if (element == value || (is_zero && Op::is_zero(element))) return i;
  }
  return -1;
}

// The indices of lines whose largest elements are known. Lines without a number have the first one.
template <class Op>
void find_in_lines(const ReduceParameters& parameters, const Strip& strip, const Lines& lines) {
  using A = typename Op::Number;
  for (int64_t line = 0; line < lines.count; ++line) {
    const A value = element_at<Op>(parameters, strip, line);
    const int64_t found = find_adjacent<Op>(lines.from + line * lines.step, lines.elements, value);
    store(strip.arrays[1] + line * 8, std::max<int64_t>(found, 0));
  }
}

// The largest and their indices, which are the numbers of rows and as wide as an element.
template <class Op, int kVectors>
ANYDML_INLINE void index_vectors(const ReduceParameters& parameters, const Strip& strip, const Rows& rows,
                                 int64_t column, int64_t left_out) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  using V = Wide<A>;
  using Index = std::make_unsigned_t<SignedOf<A>>;
  using I = Lanes<Index, kWideLanes<A>>;
  constexpr int64_t kLanes = kWideLanes<A>;
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kNumber = sizeof(A);
  const V mask = mask_of<Op>(parameters);
  [[maybe_unused]] const V identity = V{} + Op::identity(parameters);
  const auto is_left_out = is_first_lane<A, V>(left_out);
  V best[kVectors];
  I index[kVectors];
  ANYDML_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    best[v] = load_lanes_at<V>(strip.recent[0] + (column + v * kLanes) * kNumber);
    index[v] = load_lanes_at<I>(strip.recent[1] + (column + v * kLanes) * kNumber);
    if (rows.number != 0) continue;
    best[v] = is_left_out ? best[v] : V{} + Op::kLeast;
    index[v] = is_left_out ? index[v] : I{};
  }
  const std::byte* from = rows.from + column * kSize;
  I row = I{} + static_cast<Index>(rows.number);
  for (int64_t r = 0; r < rows.count; ++r, from += rows.step) {
    ANYDML_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      if (v * kLanes * kSize % 64 == 0) prefetch_line(from + v * kLanes * kSize + rows.ahead);
      V x = load_wide_lanes<T, A>(from + v * kLanes * kSize);
      if constexpr (kVectors == 1) x = is_left_out ? identity : x;
      take_larger<A>(Op::key(x, mask), row, best[v], index[v]);
    }
    row = row + 1;
  }
  ANYDML_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    store_lanes_at(strip.recent[0] + (column + v * kLanes) * kNumber, best[v]);
    store_lanes_at(strip.recent[1] + (column + v * kLanes) * kNumber, index[v]);
  }
}

template <class Op>
void accumulate_indices(const ReduceParameters& parameters, const Strip& strip, const Rows& rows) {
  constexpr int64_t kLanes = kWideLanes<typename Op::Number>;
  constexpr int kVectors = kWideBytes == 64 ? 8 : 4;
  int64_t i = 0;
  for (; i + kVectors * kLanes <= rows.columns; i += kVectors * kLanes) {
    index_vectors<Op, kVectors>(parameters, strip, rows, i, 0);
  }
  for (; i + 2 * kLanes <= rows.columns; i += 2 * kLanes) {
    index_vectors<Op, 2>(parameters, strip, rows, i, 0);
  }
  for (; i < rows.columns; i += kLanes) {
    const int64_t column = std::min(i, rows.columns - kLanes);
    index_vectors<Op, 1>(parameters, strip, rows, column, i - column);
  }
}

// The largest and their indices, of planes.
template <class Op>
ANYDML_NOINLINE void index_planes(const ReduceParameters& parameters, const Strip& strip,
                                  const Planes& planes) {
  using A = typename Op::Number;
  using V = typename Op::V;
  using Index = std::make_unsigned_t<SignedOf<A>>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(A);
  using I = Lanes<Index, kLanes>;
  constexpr int64_t kNumber = sizeof(A);
  const V mask = mask_of<Op>(parameters);
  alignas(64) std::byte identities[kLanes * sizeof(typename Op::Element)];
  fill<Op>(parameters, identities, kLanes);
  const int64_t step = planes.step;
  for_each_plane<Op>(planes, [&]<int kCount>(std::integral_constant<int, kCount>, int64_t place,
                                             const std::byte* from, int64_t left) {
    V best[kCount];
    I index[kCount];
    ANYDML_UNROLL(16)
    for (int k = 0; k < kCount; ++k) {
      best[k] = V{} + Op::kLeast;
      index[k] = I{};
    }
    const auto take_rows = [&](const auto& load) {
      I row{};
      for (int64_t r = 0; r < planes.rows; ++r, from += planes.row_step) {
        ANYDML_UNROLL(16)
        for (int k = 0; k < kCount; ++k) {
          take_larger<A>(Op::key(load(from + k * step), mask), row, best[k], index[k]);
        }
        row = row + 1;
      }
    };
    if (kCount > 1 || left == kLanes) {
      take_rows([](const std::byte* at) { return load_elements<Op>(at); });
    } else {
      take_rows([&](const std::byte* at) { return load_first_elements<Op>(at, left, identities); });
    }
    ANYDML_UNROLL(16)
    for (int k = 0; k < kCount; ++k) {
      store_lanes_at(strip.recent[0] + (place + k * planes.columns) * kNumber, best[k]);
      store_lanes_at(strip.recent[1] + (place + k * planes.columns) * kNumber, index[k]);
    }
  });
}

// Of equal elements the one with the lower index wins, as rows come in any order. Without branches, of which
// a processor would mistake every second.
template <class A>
ANYDML_INLINE void take_better(A value, int64_t place, A& best, int64_t& index) {
  const bool is_better = (value > best) | ((value == best) & (place < index));
  const int64_t all = -static_cast<int64_t>(is_better);
  index = (place & all) | (index & ~all);
  best = value > best ? value : best;
}

// Joins columns from the i-th one on, whose indices as 64-bit lanes are what place(i, kLanes) returns, or of
// one what place(i, 1) does.
template <class A, class Place>
ANYDML_INLINE void join_columns(const Strip& strip, const std::byte* values, int64_t i, int64_t end,
                                const Place& place) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  // Comparisons in as many lanes as there are indices in a register, which are widened.
  constexpr int kLanes = kWideLanes<int64_t>;
  using V = Lanes<A, kLanes>;
  using I = Lanes<int64_t, kLanes>;
  for (; i + kLanes <= end; i += kLanes) {
    std::byte* const best_at = strip.arrays[0] + i * static_cast<int64_t>(sizeof(A));
    std::byte* const index_at = strip.arrays[1] + i * 8;
    const auto value = load_lanes_at<V>(values + i * static_cast<int64_t>(sizeof(A)));
    auto best = load_lanes_at<V>(best_at);
    auto index = load_lanes_at<I>(index_at);
    const I own = place(i, std::integral_constant<int, kLanes>{});
    const auto is_larger = value > best;
    const I is_better =
        __builtin_convertvector(is_larger, I) | (__builtin_convertvector(value == best, I) & (own < index));
    index = is_better ? own : index;
    best = is_larger ? value : best;
    store_lanes_at(best_at, best);
    store_lanes_at(index_at, index);
  }
#endif
  auto* const best = reinterpret_cast<A*>(strip.arrays[0]);
  auto* const indices = reinterpret_cast<int64_t*>(strip.arrays[1]);
  for (; i < end; ++i) {
    take_better(reinterpret_cast<const A*>(values)[i], place(i, std::integral_constant<int, 1>{}), best[i],
                indices[i]);
  }
}

// Whether any of a vector of columns is larger than what was found before.
template <class A>
ANYDML_INLINE bool has_larger(const Strip& strip, int64_t i) {
  const auto best = load_lanes_at<Wide<A>>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(A)));
  const auto value = load_lanes_at<Wide<A>>(strip.recent[0] + i * static_cast<int64_t>(sizeof(A)));
  return equal_lanes<A>(larger<A>(value, best), best) != ~uint64_t{0} >> (64 - kWideLanes<A>);
}

template <class A>
void join_rows(const Strip& strip, int64_t columns, int64_t index, int64_t index_step, bool is_later) {
  auto* const indices = reinterpret_cast<int64_t*>(strip.arrays[1]);
  const auto* const numbers = reinterpret_cast<const SignedOf<A>*>(strip.recent[1]);
  if (indices[0] == kNoIndex) {
    std::memcpy(strip.arrays[0], strip.recent[0], static_cast<size_t>(columns) * sizeof(A));
    for (int64_t i = 0; i < columns; ++i) indices[i] = index + numbers[i] * index_step;
    return;
  }
  const auto place = [&]<int kLanes>(int64_t i, std::integral_constant<int, kLanes>) {
    if constexpr (kLanes == 1) {
      return index + numbers[i] * index_step;
#if defined(ANYDML_VECTORS)
    } else {
      using Numbers = Lanes<SignedOf<A>, kLanes>;
      const auto own = load_lanes_at<Numbers>(reinterpret_cast<const std::byte*>(numbers + i));
      return __builtin_convertvector(own, Lanes<int64_t, kLanes>) * index_step + index;
#endif
    }
  };
  // Later rows change only what they have larger elements of: of bytes, which are joined often, few.
  const int64_t block = is_later ? kWideLanes<A> : columns;
  for (int64_t i = 0; i < columns; i += block) {
    if (is_later && !has_larger<A>(strip, i)) continue;
    join_columns<A>(strip, strip.recent[0], i, std::min(i + block, columns), place);
  }
}

// Puts together rows of `phases` rows each, which have been accumulated side by side: as long as their
// numbers fit an element, in halves, as narrow as that. Lanes behind the columns that remain are those of the
// other half, which are not needed any more.
template <class A>
void join_phases(const Strip& strip, int64_t columns, int64_t phases) {
  using Number = SignedOf<A>;
  using V = Wide<A>;
  using I = Lanes<Number, kWideLanes<A>>;
  constexpr int64_t kLanes = kWideLanes<A>;
  constexpr int64_t kSize = sizeof(A);
  auto* const numbers = reinterpret_cast<Number*>(strip.recent[1]);
  for (int64_t phase = 0; phase < phases; ++phase) {
    Number* const own = numbers + phase * columns;
    for (int64_t i = 0; i < columns; ++i) own[i] = static_cast<Number>(own[i] * phases + phase);
  }
  for (int64_t half = phases / 2; half > 0; half /= 2) {
    const int64_t other = half * columns * kSize;
    for (int64_t i = 0; i < half * columns; i += kLanes) {
      std::byte* const value = strip.recent[0] + i * kSize;
      std::byte* const place = strip.recent[1] + i * kSize;
      auto best = load_lanes_at<V>(value);
      auto number = load_lanes_at<I>(place);
      take_first<A>(load_lanes_at<V>(value + other), load_lanes_at<I>(place + other), best, number);
      store_lanes_at(value, best);
      store_lanes_at(place, number);
    }
  }
}

template <class Op>
void start_indices(const Strip& strip, int64_t columns, int64_t, const std::byte*, int64_t) {
  std::fill_n(reinterpret_cast<typename Op::Number*>(strip.arrays[0]), columns, Op::kLeast);
  std::fill_n(reinterpret_cast<int64_t*>(strip.arrays[1]), columns, kNoIndex);
}

template <class A>
void combine_indices(const Strip& strip, const Strip& other, int64_t columns) {
  join_columns<A>(strip, other.arrays[0], 0, columns,
                  [&]<int kLanes>(int64_t i, std::integral_constant<int, kLanes>) {
                    return load_lanes_at<std::conditional_t<kLanes == 1, int64_t, Lanes<int64_t, kLanes>>>(
                        other.arrays[1] + i * 8);
                  });
}

// Stores indices, counted from the last element, elements - 1 - i, where that is wanted.
template <class Index>
ANYDML_INLINE void store_indices(const ReduceParameters& parameters, const Index* indices, int64_t columns,
                                 std::byte* out, int64_t out_step) {
  const int64_t flip = parameters.from_the_end ? -1 : 0;
  const int64_t last = parameters.from_the_end ? parameters.elements : 0;
  const auto index = [&](int64_t i) { return last + (indices[i] ^ flip); };
  if (parameters.index_size == 8 && out_step == 8) {
    for (int64_t i = 0; i < columns; ++i) store(out + i * 8, index(i));
  } else if (parameters.index_size == 8) {
    for (int64_t i = 0; i < columns; ++i) store(out + i * out_step, index(i));
  } else if (out_step == 4) {
    for (int64_t i = 0; i < columns; ++i) store(out + i * 4, static_cast<uint32_t>(index(i)));
  } else {
    for (int64_t i = 0; i < columns; ++i) store(out + i * out_step, static_cast<uint32_t>(index(i)));
  }
}

void finish_indices(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                    int64_t out_step) {
  store_indices(parameters, reinterpret_cast<const int64_t*>(strip.arrays[1]), columns, out, out_step);
}

template <class A>
void finish_numbers(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                    int64_t out_step) {
  store_indices(parameters, reinterpret_cast<const SignedOf<A>*>(strip.recent[1]), columns, out, out_step);
}

}  // namespace
ANYDML_ISA_END
