// What reductions compute: for each function the numbers of an accumulator, what an element does to them, and
// how two accumulators come together. U is a number, or a vector of them.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/math.h"
#include "reduce/kernel.h"
#include "reduce/lanes.h"
#include "reduce/tuning.h"

ANYDML_ISA_BEGIN

// What every accumulator of one number shares.
template <class T, class A, class Vector = Wide<A>>
struct OfOneNumber {
  using Element = T;
  using Number = A;
  using V = Vector;
  static constexpr int64_t kRowBytes = tuning::kRowBytes;
  static constexpr int64_t kSizes[3] = {sizeof(A), 0, 0};

  template <class U>
  struct State {
    U value;
  };
  template <class U>
  ANYDML_INLINE static State<U> load(const Strip& strip, int64_t i) {
    return {load_lanes_at<U>(strip.arrays[0] + i * kSizes[0])};
  }
  template <class U>
  ANYDML_INLINE static void store(const Strip& strip, int64_t i, const State<U>& state) {
    store_lanes_at(strip.arrays[0] + i * kSizes[0], state.value);
  }

  // One number in every lane.
  ANYDML_INLINE static State<V> spread(const State<A>& state) { return {V{} + state.value}; }
  template <int kHalf, class U>
  ANYDML_INLINE static auto half(const State<U>& state) {
    return State<decltype(half_of<kHalf>(state.value))>{half_of<kHalf>(state.value)};
  }
  template <class U>
  ANYDML_INLINE static State<A> lane(const State<U>& state, int i) {
    return {state.value[i]};
  }
  // Lanes that `pick` takes of two states.
  template <class U, class Pick>
  ANYDML_INLINE static State<U> merged(const State<U>& a, const State<U>& b, const Pick& pick) {
    return {pick(a.value, b.value)};
  }

  // After so many elements an accumulator is settled; 0 where it need not be.
  static constexpr int64_t kSettledAfter = 0;
  template <class S>
  ANYDML_INLINE static void settle(S&) {}
};

template <class T, class A, Term kTerm>
struct Sum : OfOneNumber<T, A> {
  using V = Wide<A>;
  template <class U>
  using State = typename OfOneNumber<T, A>::template State<U>;

  // Whether lines of a few elements each have kernels of their own.
  static constexpr bool kHasShortLines = kTerm == Term::kValue;
  static A identity(const ReduceParameters&) { return 0; }
  static A start(double) { return 0; }

  ANYDML_INLINE static void step(State<V>& state, V x) {
    // An integer wraps, and the square of a float is exact.
    if constexpr (kTerm == Term::kSquare) x = x * x;
    if constexpr (kTerm == Term::kMagnitude) x = magnitude(x);
    state.value = state.value + x;
  }
  template <class U>
  ANYDML_INLINE static void combine(State<U>& state, const State<U>& other) {
    state.value = state.value + other.value;
  }

 private:
  ANYDML_INLINE static V magnitude(V x) {
    using Bits = Lanes<SignedOf<A>, kWideLanes<A>>;
    const auto bits = bits_as<Bits>(x);
    if constexpr (std::is_floating_point_v<A>) {
      return bits_as<V>(bits & std::numeric_limits<SignedOf<A>>::max());
    } else {
      return bits < 0 ? V{} - x : x;
    }
  }
};

// The largest number, passing over NaN.
template <class T, class A, class Vector = Wide<A>>
struct Largest : OfOneNumber<T, A, Vector> {
  using V = Vector;
  template <class U>
  using State = typename OfOneNumber<T, A, V>::template State<U>;
  using Narrow = Largest<T, A, NarrowLanes<A>>;
  static constexpr bool kHasShortLines = true;

  static constexpr bool kHasNan = std::is_floating_point_v<A>;
  static constexpr A kLeast =
      kHasNan ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
  static A nan() { return std::numeric_limits<A>::quiet_NaN(); }
  static A identity(const ReduceParameters& parameters) {
    return flipped<A>(kLeast, bits_as<A>(static_cast<SignedOf<A>>(parameters.mask)));
  }
  static A start(double) { return kLeast; }

  // What elements are compared by, and the element again.
  template <class U>
  ANYDML_INLINE static U key(U x, U mask) {
    return flipped<A>(x, mask);
  }
  template <class U>
  ANYDML_INLINE static U element(U key, U mask) {
    return flipped<A>(key, mask);
  }
  // The bits that tell elements from those that are equal to one.
  ANYDML_INLINE static bool is_zero(A) { return false; }
  ANYDML_INLINE static bool is_equal(A key, A other) { return key == other; }

  template <class U>
  ANYDML_INLINE static void combine(State<U>& state, const State<U>& other) {
    state.value = larger<A>(other.value, state.value);
  }
};

// The same of FLOAT16, by 16-bit integers in the order of the numbers: sign and magnitude as two's
// complement, above the lowest ones by so many as there are NaNs of a sign, so that those of either sign are
// below -inf. -0 is below 0, but where indices are looked for.
template <bool kHasIndices, class Vector = Wide<int16_t>>
struct LargestHalf : OfOneNumber<int16_t, int16_t, Vector> {
  using A = int16_t;
  using V = Vector;
  template <class U>
  using State = typename OfOneNumber<A, A, V>::template State<U>;
  using Narrow = LargestHalf<kHasIndices, NarrowLanes<A>>;
  static constexpr bool kHasShortLines = true;

  static constexpr bool kHasNan = true;
  static constexpr A kMagnitude = 0x7fff;
  static constexpr A kInfinity = 0x7c00;
  static constexpr A kNans = kMagnitude - kInfinity;
  static constexpr A kLeast = (kHasIndices ? -kInfinity : -kInfinity - 1) + kNans;
  static A nan() { return key(A{0x7e00}, A{0}); }
  static A identity(const ReduceParameters& parameters) {
    return static_cast<A>(~kMagnitude ^ kInfinity ^ static_cast<A>(parameters.mask));
  }
  static A start(double) { return kLeast; }

  template <class U>
  ANYDML_INLINE static U key(U x, U mask) {
    const auto bits = static_cast<U>(x ^ mask);
    const auto sign = static_cast<U>(bits >> 15);
    if constexpr (kHasIndices) return wrapped_sum(static_cast<U>(((bits & kMagnitude) ^ sign) - sign), kNans);
    return wrapped_sum(static_cast<U>(bits ^ (sign & kMagnitude)), kNans);
  }
  template <class U>
  ANYDML_INLINE static U element(U key, U mask) {
    const auto number = wrapped_sum(key, -kNans);
    const auto sign = static_cast<U>(number >> 15);
    const auto bits = static_cast<U>(number ^ (sign & kMagnitude));
    // The lowest one has no complement, and is of no number.
    if constexpr (kHasIndices) return static_cast<U>((bits - sign) ^ mask);
    return static_cast<U>(bits ^ mask);
  }
  ANYDML_INLINE static bool is_zero(A element) { return (element & kMagnitude) == 0; }
  ANYDML_INLINE static bool is_equal(A one, A other) {
    return one == other || (is_zero(element(one, A{0})) && is_zero(element(other, A{0})));
  }

  template <class U>
  ANYDML_INLINE static void combine(State<U>& state, const State<U>& other) {
    state.value = larger<A>(other.value, state.value);
  }

 private:
  // Of signed lanes sums that leave the range are undefined.
  template <class U>
  ANYDML_INLINE static U wrapped_sum(U x, A y) {
    if constexpr (std::is_same_v<U, A>) {
      return static_cast<A>(x + y);
    } else {
      using Unsigned = Lanes<uint16_t, static_cast<int>(sizeof(U) / sizeof(A))>;
      return bits_as<U>(bits_as<Unsigned>(x) + static_cast<uint16_t>(y));
    }
  }
};

// Products of integers wrap.
template <class T>
struct IntegerProduct : OfOneNumber<T, T> {
  using V = Wide<T>;
  template <class U>
  using State = typename OfOneNumber<T, T>::template State<U>;

  static T identity(const ReduceParameters&) { return 1; }
  static T start(double) { return 1; }

  ANYDML_INLINE static void step(State<V>& state, V x) { state.value = state.value * x; }
  template <class U>
  ANYDML_INLINE static void combine(State<U>& state, const State<U>& other) {
    state.value = state.value * other.value;
  }
};

// Products of floats as m * 2^e, so that no order of the factors leaves the range of doubles. Settled, 1 <=
// |m| < 2; powers of 2 change no rounding, so that it does not matter for the result when that is done.
template <class T>
struct FloatProduct {
  using Element = T;
  using Number = double;
  using V = Wide<double>;
  static constexpr int64_t kSizes[3] = {sizeof(double), sizeof(uint64_t), 0};

  static constexpr int64_t kRowBytes = tuning::kRowBytes;
  template <class U>
  using BitsOf = std::conditional_t<std::is_same_v<U, double>, uint64_t,
                                    Lanes<uint64_t, static_cast<int>(sizeof(U) / sizeof(uint64_t))>>;
  template <class U>
  struct State {
    U m;
    BitsOf<U> e;
  };
  template <class U>
  ANYDML_INLINE static State<U> load(const Strip& strip, int64_t i) {
    return {load_lanes_at<U>(strip.arrays[0] + i * 8), load_lanes_at<BitsOf<U>>(strip.arrays[1] + i * 8)};
  }
  template <class U>
  ANYDML_INLINE static void store(const Strip& strip, int64_t i, const State<U>& state) {
    store_lanes_at(strip.arrays[0] + i * 8, state.m);
    store_lanes_at(strip.arrays[1] + i * 8, state.e);
  }

  ANYDML_INLINE static State<V> spread(const State<double>& state) {
    return {V{} + state.m, BitsOf<V>{} + state.e};
  }
  template <int kHalf, class U>
  ANYDML_INLINE static auto half(const State<U>& state) {
    return State<decltype(half_of<kHalf>(state.m))>{half_of<kHalf>(state.m), half_of<kHalf>(state.e)};
  }
  template <class U>
  ANYDML_INLINE static State<double> lane(const State<U>& state, int i) {
    return {state.m[i], state.e[i]};
  }
  template <class U, class Pick>
  ANYDML_INLINE static State<U> merged(const State<U>& a, const State<U>& b, const Pick& pick) {
    return {pick(a.m, b.m), pick(a.e, b.e)};
  }

  static double identity(const ReduceParameters&) { return 1; }
  static double start(double) { return 1; }

  // So many elements of either type, beside an m that is not away, are a normal double.
  static constexpr int64_t kSettledAfter = sizeof(T) == 2 ? 16 : 5;
  ANYDML_INLINE static void step(State<V>& state, V x) { state.m = state.m * x; }
  // Lanes whose m is away, below 2^-256, 2^256 or more, have one of the bits kAway: the biased exponent less
  // that of 2^-256 is not below 512.
  static constexpr uint64_t kAway = uint64_t{3} << 61;
  template <class U>
  ANYDML_INLINE static BitsOf<U> away_bits(const State<U>& state) {
    return bits_as<BitsOf<U>>(state.m) - (uint64_t{1023 - 256} << 52);
  }
  // The same but for 0 and what is not finite.
  template <class U>
  ANYDML_INLINE static BitsOf<U> away_bits_of_numbers(const State<U>& state) {
    return is_number(bits_as<BitsOf<U>>(state.m) & kExponent) ? away_bits(state) : BitsOf<U>{};
  }
  template <class U>
  ANYDML_INLINE static void settle(State<U>& state) {
    const auto bits = bits_as<BitsOf<U>>(state.m);
    const BitsOf<U> exponent = bits & kExponent;
    // 0, and what is not finite, stay as they are.
    const auto is_number = FloatProduct::is_number(exponent);
    const BitsOf<U> mantissa = (bits & ~kExponent) | uint64_t{1023} << 52;
    state.m = bits_as<U>(is_number ? mantissa : bits);
    state.e = state.e + (is_number ? (exponent >> 52) - 1023 : BitsOf<U>{});
  }
  // Those that are not away, or up to a few hundred that are settled.
  template <class U>
  ANYDML_INLINE static void combine(State<U>& state, const State<U>& other) {
    state.m = state.m * other.m;
    state.e = state.e + other.e;
  }

 private:
  static constexpr uint64_t kExponent = uint64_t{0x7ff} << 52;

  template <class Bits>
  ANYDML_INLINE static auto is_number(Bits exponent) {
    return (exponent - (uint64_t{1} << 52)) < (kExponent - (uint64_t{1} << 52));
  }
};

// Sums of e^(x - m), m being the largest element, but for elements that are m, which are counted: what is
// small would vanish beside a 1.
template <class T>
struct ExponentialSum {
  using Element = T;
  using Number = double;
  using V = Doubles;
  static constexpr int64_t kSizes[3] = {sizeof(double), sizeof(double), sizeof(double)};
  static constexpr int64_t kRowBytes = tuning::kShortRowBytes;

  template <class U>
  struct State {
    U sum;
    U count;
    U largest;
  };
  template <class U>
  ANYDML_INLINE static State<U> load(const Strip& strip, int64_t i) {
    return {load_lanes_at<U>(strip.arrays[0] + i * 8), load_lanes_at<U>(strip.arrays[1] + i * 8),
            load_lanes_at<U>(strip.arrays[2] + i * 8)};
  }
  template <class U>
  ANYDML_INLINE static void store(const Strip& strip, int64_t i, const State<U>& state) {
    store_lanes_at(strip.arrays[0] + i * 8, state.sum);
    store_lanes_at(strip.arrays[1] + i * 8, state.count);
    store_lanes_at(strip.arrays[2] + i * 8, state.largest);
  }

  ANYDML_INLINE static State<V> spread(const State<double>& state) {
    return {V{} + state.sum, V{} + state.count, V{} + state.largest};
  }
  template <int kHalf, class U>
  ANYDML_INLINE static auto half(const State<U>& state) {
    return State<decltype(half_of<kHalf>(state.sum))>{half_of<kHalf>(state.sum), half_of<kHalf>(state.count),
                                                      half_of<kHalf>(state.largest)};
  }
  template <class U>
  ANYDML_INLINE static State<double> lane(const State<U>& state, int i) {
    return {state.sum[i], state.count[i], state.largest[i]};
  }
  template <class U, class Pick>
  ANYDML_INLINE static State<U> merged(const State<U>& a, const State<U>& b, const Pick& pick) {
    return {pick(a.sum, b.sum), pick(a.count, b.count), pick(a.largest, b.largest)};
  }

  static double identity(const ReduceParameters&) { return -kInfinity; }
  static double start(double) { return 0; }

  static constexpr int64_t kSettledAfter = 0;
  template <class S>
  ANYDML_INLINE static void settle(S&) {}
  ANYDML_INLINE static void step(State<V>& state, V x) {
    const V term = exp_of(x - state.largest);
    const auto is_largest = x == state.largest;
    state.sum = state.sum + (is_largest ? V{} : term);
    state.count = state.count + (is_largest ? V{} + 1.0 : V{});
  }
  template <class U>
  ANYDML_INLINE static void combine(State<U>& state, const State<U>& other) {
    state.sum = state.sum + other.sum;
    state.count = state.count + other.count;
  }
};

ANYDML_ISA_END
