// Prefix scans of a group of rows by transposed tiles: a tile of elements is transposed, so that a vector
// holds one element of each row, scanned, and transposed back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

// The rows that are scanned together, one in each lane.
inline constexpr int64_t kRowsPerGroup = 8;

#if defined(ANYDML_VECTORS)

// Prefetches what is read next, two cache lines for each tile that is scanned.
class Prefetcher {
 public:
  explicit Prefetcher(const std::byte* first) : at_(first) {}
  ANYDML_INLINE void prefetch_lines() {
    __builtin_prefetch(at_, 0, 1);
    __builtin_prefetch(at_ + kLine, 0, 1);
    at_ += 2 * kLine;
  }

 private:
  const std::byte* at_;
};

// The accumulators of a group of rows, and the loops that bring them on by a tile.
template <class T, class Operation, bool kDown>
class TransposeTileScan {
 public:
  using Accumulator = AccumulatorOf<T>;
  // The elements of a row in one tile: as many as 16 bytes hold.
  static constexpr int64_t kTile = kSquareBytes / static_cast<int64_t>(sizeof(T));

  TransposeTileScan(const Accumulator* accumulators, bool exclusive) : exclusive_(exclusive) {
    for (int64_t g = 0; g < kGroups; ++g) {
      accumulators_[g] = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators + g * kTile));
    }
  }
  void store(Accumulator* accumulators) const {
    for (int64_t g = 0; g < kGroups; ++g) {
      store_vector(reinterpret_cast<std::byte*>(accumulators + g * kTile), accumulators_[g]);
    }
  }

  // Scans kTiles adjacent tiles of each row.
  template <int64_t kTiles>
  ANYDML_INLINE void scan(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step) {
    for (int64_t g = 0; g < kGroups; ++g) {
      Rows<kTiles> rows[kTile];
      load_rows<kTiles>(rows, in + g * kTile * in_step, in_step);
      advance_rows<kTiles>(g, rows, out, out_step);
    }
  }

  // Scans a tile of an input in which neighbouring rows are contiguous, so that it needs no transposition,
  // and the elements of a row are in_step bytes apart. `in` is the first element that is traversed.
  ANYDML_INLINE void scan_neighbours(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step) {
    for (int64_t g = 0; g < kGroups; ++g) {
      Row rows[kTile];
      for (int64_t i = 0; i < kTile; ++i) {
        rows[kDown ? kTile - 1 - i : i] = load<Row>(in + i * in_step + g * kSquareBytes);
      }
      advance_rows<1>(g, rows, out, out_step);
    }
  }

 private:
  static constexpr int64_t kGroups = kRowsPerGroup / kTile;
  using V = Vector<Accumulator, kTile>;
  using Row = SquareRow<BitsOf<T>>;
  template <int64_t kTiles>
  using Rows = SquareRow<BitsOf<T>, kTiles>;

  // Calls body(at, tile) for every element of a row in some tiles, in the order of traversal.
  template <int64_t kTiles, class Body>
  ANYDML_INLINE static void traverse(const Body& body) {
#pragma GCC unroll 2
    for (int64_t s = 0; s < kTiles; ++s) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kTile; ++i) {
        body(kDown ? kTile - 1 - i : i, kDown ? kTiles - 1 - s : s);
      }
    }
  }

  template <int64_t kTiles>
  ANYDML_INLINE static void load_rows(Rows<kTiles>* rows, const std::byte* in, int64_t in_step) {
    for (int64_t r = 0; r < kTile; ++r) rows[r] = load_vector<Rows<kTiles>>(in + r * in_step);
    transpose<BitsOf<T>, kTiles>(rows);
  }

  template <int64_t kTiles>
  ANYDML_INLINE static void store_rows(const Row (*outputs)[kTiles], std::byte* out, int64_t out_step) {
    Rows<kTiles> rows[kTile];
    for (int64_t i = 0; i < kTile; ++i) rows[i] = side_by_side<Rows<kTiles>>(outputs[i]);
    transpose<BitsOf<T>, kTiles>(rows);
    for (int64_t r = 0; r < kTile; ++r) store_vector(out + r * out_step, rows[r]);
  }

  template <int64_t kTiles>
  ANYDML_INLINE void advance_rows(int64_t g, const Rows<kTiles>* rows, std::byte* out, int64_t out_step) {
    V accumulator = accumulators_[g];
    Row before = narrow_row<T, Row>(accumulator);
    Row outputs[kTile][kTiles];
    traverse<kTiles>([&](int64_t at, int64_t tile) {
      accumulator = Operation::combine(accumulator, widen_row<T, V>(square_of<Row>(rows[at], tile)));
      outputs[at][tile] = narrow_row<T, Row>(accumulator);
    });
    accumulators_[g] = accumulator;
    if (exclusive_) {
      traverse<kTiles>([&](int64_t at, int64_t tile) { std::swap(before, outputs[at][tile]); });
    }
    store_rows<kTiles>(outputs, out + g * kTile * out_step, out_step);
  }

  V accumulators_[kGroups];
  bool exclusive_;
};

// Overlaps the scan of kTiles tiles of each row with memory: as many bytes are prefetched, and sent from the
// stage.
template <int64_t kTiles>
ANYDML_INLINE void overlap_memory(Prefetcher& prefetcher, StagedWriter& stage) {
  static_assert(kRowsPerGroup * kSquareBytes == 2 * kLine);
  for (int64_t s = 0; s < kTiles; ++s) {
    prefetcher.prefetch_lines();
    stage.send_line();
    stage.send_line();
  }
}

// Scans the whole tiles of a group's rows of `size` elements from the `done`-th element on, kTiles at a time;
// returns how many elements are done.
template <bool kDown, int64_t kTiles, class TransposeTileScan>
ANYDML_INLINE int64_t scan_tiles_at_once(TransposeTileScan& tiles, const std::byte* in, int64_t in_step,
                                         std::byte* out, int64_t out_step, int64_t size, int64_t done,
                                         Prefetcher& prefetcher, StagedWriter& stage) {
  constexpr int64_t kSize = kSquareBytes / TransposeTileScan::kTile;
  constexpr int64_t kCount = kTiles * TransposeTileScan::kTile;
  for (; done + kCount <= size; done += kCount) {
    const int64_t at = kSize * (kDown ? size - done - kCount : done);
    tiles.template scan<kTiles>(in + at, in_step, out + at, out_step);
    overlap_memory<kTiles>(prefetcher, stage);
  }
  return done;
}

template <bool kDown, class TransposeTileScan>
ANYDML_INLINE void scan_tiles(TransposeTileScan& tiles, const std::byte* in, int64_t in_step, std::byte* out,
                              int64_t out_step, int64_t size, Prefetcher prefetcher, StagedWriter& stage) {
  int64_t done =
      scan_tiles_at_once<kDown, kTilesAtOnce>(tiles, in, in_step, out, out_step, size, 0, prefetcher, stage);
  if constexpr (kTilesAtOnce > 1) {
    scan_tiles_at_once<kDown, 1>(tiles, in, in_step, out, out_step, size, done, prefetcher, stage);
  }
}

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
