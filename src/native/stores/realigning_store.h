// Where outputs that follow each other in memory leave, straight from registers: to where they belong, or
// around the caches, half a vector at a time, as libraries hand out memory aligned for these. Of outputs that
// begin elsewhere, each half fills up what the one before it left, and leaves the rest of itself.
//
// The last elements of a row leave in no other way: a line that is streamed in part and stored in part waits
// for memory several times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

inline constexpr int kPiece = kVectorBytes / 2;
using Piece = Vector<uint8_t, kPiece>;

// What a vector of tallies gives, in the order of the walk.
template <class T>
inline constexpr int kPiecesOf = sizeof(T) == sizeof(AccumulatorOf<T>) ? 2 : 1;
template <class T, bool kDown>
ANYDML_INLINE std::array<Piece, kPiecesOf<T>> pieces_of(Vector<AccumulatorOf<T>> y) {
  if constexpr (kPiecesOf<T> == 1) {
    return {narrow_row<T, Piece>(y)};
  } else {
    const auto bytes = (Vector<uint8_t>)y;
    return {square_of<Piece>(bytes, kDown ? 1 : 0), square_of<Piece>(bytes, kDown ? 0 : 1)};
  }
}
template <class T, bool kDown>
ANYDML_INLINE Piece piece_of(T first, T second) {
  return (Piece)(kDown ? Vector<T, 2>{second, first} : Vector<T, 2>{first, second});
}

// Whether a window takes an instruction or two.
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
inline constexpr bool kShifts = true;
#else
inline constexpr bool kShifts = false;
#endif

// Of two pieces end to end, the one that begins so many bytes, an even number, after the lower one does.
class ByteRealigner {
 public:
  explicit ByteRealigner(int64_t start) {
#if defined(ANYDML_ISA_AVX512)
    words_ = Words{0, 1, 2, 3, 4, 5, 6, 7} + static_cast<uint16_t>(start / 2);
#elif defined(ANYDML_ISA_AVX2)
    // A place whose highest bit is set is none.
    const Piece places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const auto from = places + static_cast<uint8_t>(start);
    lower_ = from | ((Piece)(from >= kPiece) & 0x80);
    higher_ = from - kPiece;
#else
    start_ = start;
#endif
  }

  ANYDML_INLINE Piece of(Piece lower, Piece higher) const {
#if defined(ANYDML_ISA_AVX512)
    return (Piece)_mm_permutex2var_epi16((__m128i)lower, (__m128i)words_, (__m128i)higher);
#elif defined(ANYDML_ISA_AVX2)
    return (Piece)(_mm_shuffle_epi8((__m128i)lower, (__m128i)lower_) |
                   _mm_shuffle_epi8((__m128i)higher, (__m128i)higher_));
#else
    std::byte both[2 * kPiece];
    store_vector(both, lower);
    store_vector(both + kPiece, higher);
    return load_vector<Piece>(both + start_);
#endif
  }

 private:
#if defined(ANYDML_ISA_AVX512)
  using Words = Vector<uint16_t, kPiece / 2>;
  Words words_;
#elif defined(ANYDML_ISA_AVX2)
  Piece lower_;
  Piece higher_;
#else
  int64_t start_;
#endif
};

// How outputs leave: to where they belong, or around the caches, as they are or shifted.
enum class StoreMode { kCached, kNonTemporal, kRealigned };

// The first bytes of a piece, an even number.
ANYDML_INLINE void store_bytes(std::byte* to, Piece piece, int64_t count) {
  if (count == kPiece) return store_vector(to, piece);
  auto bits = ((Vector<uint64_t, 2>)piece)[0];
  if (count >= 8) {
    store(to, bits);
    bits = ((Vector<uint64_t, 2>)piece)[1];
    to += 8;
  }
  if (count & 4) {
    store(to, static_cast<uint32_t>(bits));
    bits >>= 32;
    to += 4;
  }
  if (count & 2) store(to, static_cast<uint16_t>(bits));
}

// What one thread holds back of its outputs, from kernel to kernel.
class PendingStore {
 public:
  PendingStore(bool streams, bool down) : streams_(streams), down_(down) {}
  PendingStore(const PendingStore&) = delete;
  PendingStore& operator=(const PendingStore&) = delete;
  ~PendingStore() {
    if (!streams_) return;
    store_held();
    stream_fence();
  }

  bool streams() const { return streams_; }

  // How rows do whose walks begin at `first`, and others `step` bytes apart.
  StoreMode store_mode(const std::byte* first, int64_t step) const {
    const auto begins = reinterpret_cast<uintptr_t>(first) | static_cast<uintptr_t>(step);
    if (!streams_) return StoreMode::kCached;
    if (begins % kPiece == 0) return StoreMode::kNonTemporal;
    return kShifts && begins % 2 == 0 ? StoreMode::kRealigned : StoreMode::kCached;
  }

 private:
  template <StoreMode kMode, bool kDown>
  friend class RealigningStore;

  // A walk that begins at `first`, and does not go on from where the one before it ended.
  ANYDML_NOINLINE void begin(std::byte* first) {
    store_held();
    const auto at = reinterpret_cast<uintptr_t>(first);
    filled_ = skipped_ = static_cast<int64_t>((down_ ? -at : at) % kPiece);
    to_ = down_ ? first + filled_ - kPiece : first - filled_;
  }

  void store_held() {
    const int64_t size = filled_ - skipped_;
    std::byte* const to = to_ + (down_ ? kPiece - filled_ : skipped_);
    if (size > 0) std::memcpy(to, held_ + (down_ ? 0 : kPiece - size), static_cast<size_t>(size));
  }

  bool streams_;
  bool down_;
  std::byte* to_ = nullptr;                      // where the piece belongs that is begun, of which
  int64_t filled_ = 0;                           // so many bytes are passed, in the order of the walk,
  int64_t skipped_ = 0;                          // and so many of these are others'.
  alignas(kPiece) std::byte held_[kPiece] = {};  // the last that came
};

// What a kernel writes through, which walks up or down in memory. Around the caches, to what begin() says.
template <StoreMode kMode, bool kDown>
class RealigningStore {
 public:
  static constexpr bool kStreams = true;

  explicit RealigningStore(PendingStore& pending) : pending_(pending) { enter(); }
  RealigningStore(const RealigningStore&) = delete;
  RealigningStore& operator=(const RealigningStore&) = delete;
  ~RealigningStore() { leave(); }

  // What follows belongs to the `size` bytes at `out`.
  void begin(std::byte* out, int64_t size) {
    std::byte* const first = kDown ? out + size : out;
    if (first - (kDown ? kPiece - filled_ : filled_) == to_) return;
    leave();
    pending_.begin(first);
    enter();
  }
  // Whether what comes next meets others' bytes in its piece; only put_part() may put it there.
  bool at_shared_granule() const { return skipped_ > 0; }

  template <class T>
  ANYDML_INLINE void put(std::byte* to, Vector<AccumulatorOf<T>> y) {
    for (const Piece piece : pieces_of<T, kDown>(y)) put_piece(to, piece);
  }
  // Two of 8 bytes, in the order of the walk.
  template <class T>
  ANYDML_INLINE void put_pair(std::byte* to, T first, T second) {
    put_piece(to, piece_of<T, kDown>(first, second));
  }
  ANYDML_INLINE void put_piece(std::byte*, Piece piece) {
    stream_half<uint8_t>(to_, kMode == StoreMode::kRealigned ? filled_up(piece) : piece);
    step();
    held_ = piece;
  }
  // The first `count` bytes of a piece on the walk, which lie at `to`.
  ANYDML_INLINE void put_part(std::byte*, Piece piece, int64_t count) {
    filled_ += count;
    if (filled_ >= kPiece) {
      const Piece whole = filled_up(piece);
      if (at_shared_granule()) {
        store_own(to_, whole, std::exchange(skipped_, 0));
      } else {
        stream_half<uint8_t>(to_, whole);
      }
      step();
      filled_ -= kPiece;
    }
    if (count == kPiece) {
      held_ = piece;
    } else {
      held_ = window(ByteRealigner(kDown ? kPiece - count : count), held_, piece);
      aim();
    }
  }

  // Between these two, another one may use the outlet.
  void leave() {
    pending_.to_ = to_;
    pending_.filled_ = filled_;
    pending_.skipped_ = skipped_;
    store_vector(pending_.held_, held_);
  }
  void enter() {
    to_ = pending_.to_;
    filled_ = pending_.filled_;
    skipped_ = pending_.skipped_;
    held_ = load_vector<Piece>(pending_.held_);
    aim();
  }

 private:
  ANYDML_INLINE static Piece window(const ByteRealigner& window, Piece before, Piece piece) {
    return kDown ? window.of(piece, before) : window.of(before, piece);
  }
  // A piece of which others have the first bytes.
  ANYDML_NOINLINE static void store_own(std::byte* to, Piece whole, int64_t skipped) {
    store_bytes(to + (kDown ? 0 : skipped), kDown ? whole : ByteRealigner(skipped).of(whole, whole),
                kPiece - skipped);
  }
  // What the piece that is begun becomes with the first bytes of the one that comes.
  ANYDML_INLINE Piece filled_up(Piece piece) const { return window(fill_, held_, piece); }
  void aim() { fill_ = ByteRealigner(kDown ? filled_ : kPiece - filled_); }
  void step() { to_ += kDown ? -kPiece : kPiece; }

  PendingStore& pending_;
  std::byte* to_;
  int64_t filled_;
  int64_t skipped_;
  Piece held_;
  ByteRealigner fill_{0};
};

// To where it says.
template <bool kDown>
class RealigningStore<StoreMode::kCached, kDown> {
 public:
  static constexpr bool kStreams = false;

  RealigningStore() = default;
  explicit RealigningStore(PendingStore&) {}

  void begin(std::byte*, int64_t) {}
  static constexpr bool at_shared_granule() { return false; }

  template <class T>
  ANYDML_INLINE void put(std::byte* to, Vector<AccumulatorOf<T>> y) {
    store_wide<T, AccumulatorOf<T>>(to, y);
  }
  template <class T>
  ANYDML_INLINE void put_pair(std::byte* to, T first, T second) {
    store(to + (kDown ? sizeof(T) : 0), first);
    store(to + (kDown ? 0 : sizeof(T)), second);
  }
  ANYDML_INLINE void put_piece(std::byte* to, Piece piece) { store_vector(to, piece); }
  ANYDML_INLINE void put_part(std::byte* to, Piece piece, int64_t count) {
    store_bytes(to, kDown ? ByteRealigner(kPiece - count).of(piece, piece) : piece, count);
  }

  void leave() {}
  void enter() {}
};

// A piece, perhaps the first, amid others' bytes.
template <class Outputs>
ANYDML_INLINE void put_first(Outputs& outputs, std::byte* to, Piece piece) {
  if (!outputs.at_shared_granule()) [[likely]] {
    outputs.put_piece(to, piece);
  } else {
    outputs.put_part(to, piece, kPiece);
  }
}

// `size` bytes that a walk up or down leaves at `out`, from `in`; a piece may be read there.
template <StoreMode kMode, bool kDown>
ANYDML_NOINLINE void put_bytes(PendingStore& pending, std::byte* out, const std::byte* in, int64_t size) {
  RealigningStore<kMode, kDown> outputs(pending);
  outputs.begin(out, size);
  for (int64_t done = 0; done < size; done += kPiece) {
    const int64_t count = std::min<int64_t>(kPiece, size - done);
    outputs.put_part(out + (kDown ? size - done - count : done),
                     load_vector<Piece>(in + (kDown ? size - done - kPiece : done)), count);
  }
}

// A line's outputs, or the first `size` bytes of them on the walk, which lie at `out`.
template <bool kDown, class Outputs>
ANYDML_INLINE void put_pieces(Outputs& outputs, std::byte* out, const Piece* pieces, int64_t size) {
#pragma GCC unroll 4
  for (int64_t begin = 0; begin < kLine; begin += kPiece) {
    if (begin >= size) break;
    const int64_t count = std::min<int64_t>(kPiece, size - begin);
    outputs.put_part(out + (kDown ? size - begin - count : begin), pieces[begin / kPiece], count);
  }
}

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
