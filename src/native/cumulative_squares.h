// Lines abreast, brought across into vectors and back, a square of elements at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cumulative_scaled.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "memory.h"
#include "stream.h"
#include "transpose.h"
#include "vector.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kLines = 8;

#if defined(ANYDML_VECTORS)

// What is read next, which memory brings meanwhile, two lines at a time: rows of `width` bytes, `step` apart.
class Ahead {
 public:
  explicit Ahead(const std::byte* first, int64_t width = 1 << 30, int64_t step = 0)
      : at_(first), left_(width), width_(width), step_(step - width) {}
  ANYDML_INLINE void bring_lines() {
    __builtin_prefetch(at_, 0, 1);
    __builtin_prefetch(at_ + kLine, 0, 1);
    at_ += 2 * kLine;
    left_ -= 2 * kLine;
    if (left_ > 0) return;
    at_ += step_;
    left_ = width_;
  }

 private:
  const std::byte* at_;
  int64_t left_;
  int64_t width_;
  int64_t step_;
};

// Of tallies: whatever they are; told where they are not moderate; or never left.
enum class Range { kAny, kWatched, kScaled };

// Walking up or down in memory.
template <class T, class Operation, bool kExclusive, bool kDown, Range kRange = Range::kAny>
class Squares {
 public:
  using Tally = TallyOf<T>;
  // As many elements of a line as 16 bytes hold, of kLines lines.
  static constexpr int64_t kSquare = kSquareBytes / static_cast<int64_t>(sizeof(T));

  explicit Squares(const Tally* tallies) {
    for (int64_t g = 0; g < kGroups; ++g) {
      tallies_[g] = load_vector<V>(reinterpret_cast<const std::byte*>(tallies + g * kSquare));
      if constexpr (kRange == Range::kWatched) watch_.look(tallies_[g]);
    }
  }
  explicit Squares(const Scaled* tallies) {
    for (int64_t g = 0; g < kGroups; ++g) {
      for (int k = 0; k < kSquare; ++k) scaled_[g].set(k, tallies[g * kSquare + k]);
      take_scaled(g);
    }
  }
  void store(Tally* tallies) const {
    for (int64_t g = 0; g < kGroups; ++g) {
      store_vector(reinterpret_cast<std::byte*>(tallies + g * kSquare), tallies_[g]);
    }
  }
  bool stayed_moderate() const { return watch_.all_moderate(); }

  ANYDML_INLINE void scan(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step) {
    for (int64_t g = 0; g < kGroups; ++g) {
      Row rows[kSquare];
      for (int64_t r = 0; r < kSquare; ++r) rows[r] = load<Row>(in + (g * kSquare + r) * in_step);
      transpose<BitsOf<T>>(rows);
      advance(g, rows, out, out_step);
    }
  }

  // The same of an input in which the lines are neighbours, and their elements in_step apart; `in` is the
  // first that is traversed.
  ANYDML_INLINE void scan_neighbours(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step) {
    for (int64_t g = 0; g < kGroups; ++g) {
      Row rows[kSquare];
      for (int64_t i = 0; i < kSquare; ++i) {
        rows[kDown ? kSquare - 1 - i : i] = load<Row>(in + i * in_step + g * kSquareBytes);
      }
      advance(g, rows, out, out_step);
    }
  }

 private:
  static constexpr int64_t kGroups = kLines / kSquare;
  static_assert(kSquare % kFactors == 0 || kRange == Range::kAny, "watched, or scaled, in time");
  using V = Vector<Tally, kSquare>;
  using Row = SquareRow<BitsOf<T>>;
  struct Nothing {};
  template <Range kOf, class Kind>
  using Only = std::conditional_t<kRange == kOf, Kind, Nothing>;

  void take_scaled(int64_t g) {
    scaled_[g].normalise();
    tallies_[g] = scaled_[g].m;
    scales_[g] = scaled_[g].scale();
  }

  ANYDML_INLINE void advance(int64_t g, Row* rows, std::byte* out, int64_t out_step) {
    V tally = tallies_[g];
    for (int64_t i = 0; i < kSquare; ++i) {
      Row& row = rows[kDown ? kSquare - 1 - i : i];
      const V next = Operation::combine(tally, widen_row<T, V>(row));
      V y = kExclusive ? tally : next;
      if constexpr (kRange == Range::kScaled) y *= scales_[g];
      row = narrow_row<T, Row>(y);
      tally = next;
      if constexpr (kRange != Range::kAny) {
        if (i % kFactors != kFactors - 1) continue;
        if constexpr (kRange == Range::kWatched) watch_.look(tally);
        if constexpr (kRange == Range::kScaled) {
          scaled_[g].m = tally;
          take_scaled(g);
          tally = tallies_[g];
        }
      }
    }
    tallies_[g] = tally;
    transpose<BitsOf<T>>(rows);
    for (int64_t r = 0; r < kSquare; ++r) anydml::store(out + (g * kSquare + r) * out_step, rows[r]);
  }

  V tallies_[kGroups];
  Only<Range::kWatched, Watch<Tally, kSquare>> watch_;
  Only<Range::kScaled, ScaledLanes<Tally, kSquare>> scaled_[kGroups];
  Only<Range::kScaled, V> scales_[kGroups];
};

// As much of kLines lines of `size` elements as fills squares, in_step and out_step apart. Meanwhile memory
// brings what is ahead, and the stage's lines leave.
template <bool kDown, class Squares>
ANYDML_INLINE void scan_squares(Squares& squares, const std::byte* in, int64_t in_step, std::byte* out,
                                int64_t out_step, int64_t size, Ahead ahead, Stage& stage) {
  constexpr int64_t kSquare = Squares::kSquare;
  constexpr int64_t kSize = kSquareBytes / kSquare;
  for (int64_t done = 0; done + kSquare <= size; done += kSquare) {
    const int64_t at = kSize * (kDown ? size - done - kSquare : done);
    squares.scan(in + at, in_step, out + at, out_step);
    static_assert(kLines * kSquareBytes == 2 * kLine);
    ahead.bring_lines();
    stage.send_line();
    stage.send_line();
  }
}

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
