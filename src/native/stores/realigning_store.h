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
inline constexpr int kPiecesOf = sizeof(T) == sizeof(TallyOf<T>) ? 2 : 1;
template <class T, bool kDown>
ANYDML_INLINE std::array<Piece, kPiecesOf<T>> pieces_of(Vector<TallyOf<T>> y) {
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
class Window {
 public:
  explicit Window(int64_t start) {
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
enum class Way { kStored, kStreamed, kShifted };

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
class Outlet {
 public:
  Outlet(bool streams, bool down) : streams_(streams), down_(down) {}
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;
  ~Outlet() {
    if (!streams_) return;
    store_held();
    stream_fence();
  }

  bool streams() const { return streams_; }

  // How rows do whose walks begin at `first`, and others `step` bytes apart.
  Way way(const std::byte* first, int64_t step) const {
    const auto begins = reinterpret_cast<uintptr_t>(first) | static_cast<uintptr_t>(step);
    if (!streams_) return Way::kStored;
    if (begins % kPiece == 0) return Way::kStreamed;
    return kShifts && begins % 2 == 0 ? Way::kShifted : Way::kStored;
  }

 private:
  template <Way kWay, bool kDown>
  friend class Sink;

  // A walk that begins at `first`, and does not go on from where the one before it ended.
  ANYDML_APART void begin(std::byte* first) {
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
template <Way kWay, bool kDown>
class Sink {
 public:
  static constexpr bool kStreams = true;

  explicit Sink(Outlet& outlet) : outlet_(outlet) { enter(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink() { leave(); }

  // What follows belongs to the `size` bytes at `out`.
  void begin(std::byte* out, int64_t size) {
    std::byte* const first = kDown ? out + size : out;
    if (first - (kDown ? kPiece - filled_ : filled_) == to_) return;
    leave();
    outlet_.begin(first);
    enter();
  }
  // Whether what comes next meets others' bytes in its piece; only put_part() may put it there.
  bool is_amid() const { return skipped_ > 0; }

  template <class T>
  ANYDML_INLINE void put(std::byte* to, Vector<TallyOf<T>> y) {
    for (const Piece piece : pieces_of<T, kDown>(y)) put_piece(to, piece);
  }
  // Two of 8 bytes, in the order of the walk.
  template <class T>
  ANYDML_INLINE void put_pair(std::byte* to, T first, T second) {
    put_piece(to, piece_of<T, kDown>(first, second));
  }
  ANYDML_INLINE void put_piece(std::byte*, Piece piece) {
    stream_half<uint8_t>(to_, kWay == Way::kShifted ? filled_up(piece) : piece);
    step();
    held_ = piece;
  }
  // The first `count` bytes of a piece on the walk, which lie at `to`.
  ANYDML_INLINE void put_part(std::byte*, Piece piece, int64_t count) {
    filled_ += count;
    if (filled_ >= kPiece) {
      const Piece whole = filled_up(piece);
      if (is_amid()) {
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
      held_ = window(Window(kDown ? kPiece - count : count), held_, piece);
      aim();
    }
  }

  // Between these two, another one may use the outlet.
  void leave() {
    outlet_.to_ = to_;
    outlet_.filled_ = filled_;
    outlet_.skipped_ = skipped_;
    store_vector(outlet_.held_, held_);
  }
  void enter() {
    to_ = outlet_.to_;
    filled_ = outlet_.filled_;
    skipped_ = outlet_.skipped_;
    held_ = load_vector<Piece>(outlet_.held_);
    aim();
  }

 private:
  ANYDML_INLINE static Piece window(const Window& window, Piece before, Piece piece) {
    return kDown ? window.of(piece, before) : window.of(before, piece);
  }
  // A piece of which others have the first bytes.
  ANYDML_APART static void store_own(std::byte* to, Piece whole, int64_t skipped) {
    store_bytes(to + (kDown ? 0 : skipped), kDown ? whole : Window(skipped).of(whole, whole),
                kPiece - skipped);
  }
  // What the piece that is begun becomes with the first bytes of the one that comes.
  ANYDML_INLINE Piece filled_up(Piece piece) const { return window(fill_, held_, piece); }
  void aim() { fill_ = Window(kDown ? filled_ : kPiece - filled_); }
  void step() { to_ += kDown ? -kPiece : kPiece; }

  Outlet& outlet_;
  std::byte* to_;
  int64_t filled_;
  int64_t skipped_;
  Piece held_;
  Window fill_{0};
};

// To where it says.
template <bool kDown>
class Sink<Way::kStored, kDown> {
 public:
  static constexpr bool kStreams = false;

  Sink() = default;
  explicit Sink(Outlet&) {}

  void begin(std::byte*, int64_t) {}
  static constexpr bool is_amid() { return false; }

  template <class T>
  ANYDML_INLINE void put(std::byte* to, Vector<TallyOf<T>> y) {
    store_wide<T, TallyOf<T>>(to, y);
  }
  template <class T>
  ANYDML_INLINE void put_pair(std::byte* to, T first, T second) {
    store(to + (kDown ? sizeof(T) : 0), first);
    store(to + (kDown ? 0 : sizeof(T)), second);
  }
  ANYDML_INLINE void put_piece(std::byte* to, Piece piece) { store_vector(to, piece); }
  ANYDML_INLINE void put_part(std::byte* to, Piece piece, int64_t count) {
    store_bytes(to, kDown ? Window(kPiece - count).of(piece, piece) : piece, count);
  }

  void leave() {}
  void enter() {}
};

// A piece, perhaps the first, amid others' bytes.
template <class Outputs>
ANYDML_INLINE void put_first(Outputs& outputs, std::byte* to, Piece piece) {
  if (!outputs.is_amid()) [[likely]] {
    outputs.put_piece(to, piece);
  } else {
    outputs.put_part(to, piece, kPiece);
  }
}

// `size` bytes that a walk up or down leaves at `out`, from `in`; a piece may be read there.
template <Way kWay, bool kDown>
ANYDML_APART void put_bytes(Outlet& outlet, std::byte* out, const std::byte* in, int64_t size) {
  Sink<kWay, kDown> outputs(outlet);
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
