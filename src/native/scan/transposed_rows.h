// Lines abreast, brought across into vectors and back, a square of elements at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kRowsPerGroup = 8;

#if defined(ANYDML_VECTORS)

// What is read next, which memory brings meanwhile, two lines at a time.
class Prefetcher {
 public:
  explicit Prefetcher(const std::byte* first) : at_(first) {}
  ANYDML_INLINE void bring_lines() {
    __builtin_prefetch(at_, 0, 1);
    __builtin_prefetch(at_ + kLine, 0, 1);
    at_ += 2 * kLine;
  }

 private:
  const std::byte* at_;
};

// Walking up or down in memory.
template <class T, class Operation, bool kExclusive, bool kDown>
class TransposeTileScan {
 public:
  using Accumulator = AccumulatorOf<T>;
  // As many elements of a line as 16 bytes hold, of kLines lines.
  static constexpr int64_t kSquare = kSquareBytes / static_cast<int64_t>(sizeof(T));

  explicit TransposeTileScan(const Accumulator* accumulators) {
    for (int64_t g = 0; g < kGroups; ++g) {
      tallies_[g] = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators + g * kSquare));
    }
  }
  void store(Accumulator* accumulators) const {
    for (int64_t g = 0; g < kGroups; ++g) {
      store_vector(reinterpret_cast<std::byte*>(accumulators + g * kSquare), tallies_[g]);
    }
  }

  // kSquares squares of each line, side by side.
  template <int64_t kSquares>
  ANYDML_INLINE void scan(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step) {
    for (int64_t g = 0; g < kGroups; ++g) {
      Rows<kSquares> rows[kSquare];
      load_rows<kSquares>(rows, in + g * kSquare * in_step, in_step);
      advance_rows<kSquares>(g, rows, out, out_step);
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
      advance_rows<1>(g, rows, out, out_step);
    }
  }

 private:
  static constexpr int64_t kGroups = kRowsPerGroup / kSquare;
  using V = Vector<Accumulator, kSquare>;
  using Row = SquareRow<BitsOf<T>>;
  template <int64_t kSquares>
  using Rows = SquareRow<BitsOf<T>, kSquares>;

  // The tally up to an element, or before it.
  ANYDML_INLINE static V advance(V& accumulator, Row x) {
    const V next = Operation::combine(accumulator, widen_row<T, V>(x));
    const V y = kExclusive ? accumulator : next;
    accumulator = next;
    return y;
  }

  // Calls body(at, square) for every element of a line in some squares, in the order of traversal.
  template <int64_t kSquares, class Body>
  ANYDML_INLINE static void traverse(const Body& body) {
#pragma GCC unroll 2
    for (int64_t s = 0; s < kSquares; ++s) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kSquare; ++i) {
        body(kDown ? kSquare - 1 - i : i, kDown ? kSquares - 1 - s : s);
      }
    }
  }

  template <int64_t kSquares>
  ANYDML_INLINE static void load_rows(Rows<kSquares>* rows, const std::byte* in, int64_t in_step) {
    for (int64_t r = 0; r < kSquare; ++r) rows[r] = load_vector<Rows<kSquares>>(in + r * in_step);
    transpose<BitsOf<T>, kSquares>(rows);
  }

  template <int64_t kSquares>
  ANYDML_INLINE static void store_rows(const Row (*outputs)[kSquares], std::byte* out, int64_t out_step) {
    Rows<kSquares> rows[kSquare];
    for (int64_t i = 0; i < kSquare; ++i) rows[i] = side_by_side<Rows<kSquares>>(outputs[i]);
    transpose<BitsOf<T>, kSquares>(rows);
    for (int64_t r = 0; r < kSquare; ++r) store_vector(out + r * out_step, rows[r]);
  }

  template <int64_t kSquares>
  ANYDML_INLINE void advance_rows(int64_t g, const Rows<kSquares>* rows, std::byte* out, int64_t out_step) {
    V accumulator = tallies_[g];
    Row outputs[kSquare][kSquares];
    traverse<kSquares>([&](int64_t at, int64_t square) {
      outputs[at][square] = narrow_row<T, Row>(advance(accumulator, square_of<Row>(rows[at], square)));
    });
    tallies_[g] = accumulator;
    store_rows<kSquares>(outputs, out + g * kSquare * out_step, out_step);
  }

  V tallies_[kGroups];
};

// While so many squares of each line are scanned, memory brings as many bytes, and the stage sends them.
template <int64_t kSquares>
ANYDML_INLINE void overlap_memory(Prefetcher& ahead, StagedWriter& stage) {
  static_assert(kRowsPerGroup * kSquareBytes == 2 * kLine);
  for (int64_t s = 0; s < kSquares; ++s) {
    ahead.bring_lines();
    stage.send_line();
    stage.send_line();
  }
}

// As much of kLines lines of `size` elements, from the `done`-th on, as fills rows of squares, in_step and
// out_step apart; returns how many are done then. Meanwhile memory brings what is ahead, and the stage's
// lines leave.
template <bool kDown, int64_t kSquares, class TransposeTileScan>
ANYDML_INLINE int64_t scan_squares_beside(TransposeTileScan& squares, const std::byte* in, int64_t in_step,
                                          std::byte* out, int64_t out_step, int64_t size, int64_t done,
                                          Prefetcher& ahead, StagedWriter& stage) {
  constexpr int64_t kSize = kSquareBytes / TransposeTileScan::kSquare;
  constexpr int64_t kCount = kSquares * TransposeTileScan::kSquare;
  for (; done + kCount <= size; done += kCount) {
    const int64_t at = kSize * (kDown ? size - done - kCount : done);
    squares.template scan<kSquares>(in + at, in_step, out + at, out_step);
    overlap_memory<kSquares>(ahead, stage);
  }
  return done;
}

template <bool kDown, class TransposeTileScan>
ANYDML_INLINE void scan_squares(TransposeTileScan& squares, const std::byte* in, int64_t in_step,
                                std::byte* out, int64_t out_step, int64_t size, Prefetcher ahead,
                                StagedWriter& stage) {
  int64_t done =
      scan_squares_beside<kDown, kSquaresBeside>(squares, in, in_step, out, out_step, size, 0, ahead, stage);
  if constexpr (kSquaresBeside > 1) {
    scan_squares_beside<kDown, 1>(squares, in, in_step, out, out_step, size, done, ahead, stage);
  }
}

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
