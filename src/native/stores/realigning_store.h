// A realigning store: outputs go from registers to memory without a buffer in between, 16 bytes (a granule)
// at a time, by ordinary or by non-temporal stores. A non-temporal store needs an aligned address. Where an
// output begins elsewhere, each granule is put together from the end of one value and the beginning of the
// next one.
//
// The last elements of a row are written in the same way, together with the first ones of the row that
// follows: a cache line that is written in part by ordinary stores and in part by non-temporal ones waits for
// memory several times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "platform/isa.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

inline constexpr int kGranule = kVectorBytes / 2;
using Granule = Vector<uint8_t, kGranule>;

// The granules that a vector of accumulators is rounded to, in the order of traversal.
template <class T, class V>
inline constexpr int kGranulesOf = sizeof(T) == sizeof(V{}[0]) ? 2 : 1;
template <class T, bool kDown, class V>
ANYDML_INLINE std::array<Granule, kGranulesOf<T, V>> granules_of(V y) {
  if constexpr (kGranulesOf<T, V> == 1) {
    return {narrow_row<T, Granule>(y)};
  } else {
    const auto bytes = (Vector<uint8_t>)y;
    return {square_of<Granule>(bytes, kDown ? 1 : 0), square_of<Granule>(bytes, kDown ? 0 : 1)};
  }
}
template <class T, bool kDown>
ANYDML_INLINE Granule granule_of(T first, T second) {
  return (Granule)(kDown ? Vector<T, 2>{second, first} : Vector<T, 2>{first, second});
}

// Whether the processor realigns a granule in an instruction or two. Where it does not, outputs that are not
// aligned are written by ordinary stores.
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
inline constexpr bool kRealigns = true;
#else
inline constexpr bool kRealigns = false;
#endif

// Byte realignment (palignr with a run-time distance): of two granules end to end, gives the one that begins
// `start` bytes, an even number, after the lower one does.
class ByteRealigner {
 public:
  explicit ByteRealigner(int64_t start) {
#if defined(ANYDML_ISA_AVX512)
    words_ = Words{0, 1, 2, 3, 4, 5, 6, 7} + static_cast<uint16_t>(start / 2);
#elif defined(ANYDML_ISA_AVX2)
    // The shuffle gives 0 for an index whose highest bit is set.
    const Granule places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const auto from = places + static_cast<uint8_t>(start);
    lower_ = from | ((Granule)(from >= kGranule) & 0x80);
    higher_ = from - kGranule;
#else
    start_ = start;
#endif
  }

  ANYDML_INLINE Granule of(Granule lower, Granule higher) const {
#if defined(ANYDML_ISA_AVX512)
    return (Granule)_mm_permutex2var_epi16((__m128i)lower, (__m128i)words_, (__m128i)higher);
#elif defined(ANYDML_ISA_AVX2)
    return (Granule)(_mm_shuffle_epi8((__m128i)lower, (__m128i)lower_) |
                     _mm_shuffle_epi8((__m128i)higher, (__m128i)higher_));
#else
    std::byte both[2 * kGranule];
    store_vector(both, lower);
    store_vector(both + kGranule, higher);
    return load_vector<Granule>(both + start_);
#endif
  }

 private:
#if defined(ANYDML_ISA_AVX512)
  using Words = Vector<uint16_t, kGranule / 2>;
  Words words_;
#elif defined(ANYDML_ISA_AVX2)
  Granule lower_;
  Granule higher_;
#else
  int64_t start_;
#endif
};

// How outputs are stored: by ordinary stores, or by non-temporal ones at addresses that are aligned, or that
// are not.
enum class StoreMode { kCached, kNonTemporal, kRealigned };

// A realigning store serves aligned outputs too, so that kernels need no third form.
inline constexpr StoreMode kStreamed = kRealigns ? StoreMode::kRealigned : StoreMode::kNonTemporal;

// Stores the first `count` bytes of a granule, an even number.
ANYDML_INLINE void store_bytes(std::byte* to, Granule granule, int64_t count) {
  if (count == kGranule) return store_vector(to, granule);
  auto bits = ((Vector<uint64_t, 2>)granule)[0];
  if (count >= 8) {
    store(to, bits);
    bits = ((Vector<uint64_t, 2>)granule)[1];
    to += 8;
  }
  if (count & 4) {
    store(to, static_cast<uint32_t>(bits));
    bits >>= 32;
    to += 4;
  }
  if (count & 2) store(to, static_cast<uint16_t>(bits));
}

// What stays of a thread's realigning store from one kernel call to the next: the bytes of the granule that
// is not full yet. A kernel keeps them in registers while it runs.
class RealigningBuffer {
 public:
  RealigningBuffer(bool non_temporal, bool down) : non_temporal_(non_temporal), down_(down) {}
  RealigningBuffer(const RealigningBuffer&) = delete;
  RealigningBuffer& operator=(const RealigningBuffer&) = delete;
  ~RealigningBuffer() {
    if (!non_temporal_) return;
    store_rest();
    stream_fence();
  }

  bool is_non_temporal() const { return non_temporal_; }

  // The mode for rows whose traversal begins at `first`, and at others `step` bytes apart.
  StoreMode mode_for(const std::byte* first, int64_t step) const {
    const auto begins = reinterpret_cast<uintptr_t>(first) | static_cast<uintptr_t>(step);
    if (!non_temporal_) return StoreMode::kCached;
    if (begins % kGranule == 0) return StoreMode::kNonTemporal;
    return kRealigns && begins % 2 == 0 ? StoreMode::kRealigned : StoreMode::kCached;
  }

 private:
  template <StoreMode kStoreMode, bool kDown>
  friend class RealigningStore;

  // Begins a traversal at `first`, which does not go on from the end of the one before it.
  ANYDML_NOINLINE void begin(std::byte* first) {
    store_rest();
    const auto at = reinterpret_cast<uintptr_t>(first);
    filled_ = foreign_ = static_cast<int64_t>((down_ ? -at : at) % kGranule);
    to_ = down_ ? first + filled_ - kGranule : first - filled_;
  }

  void store_rest() {
    const int64_t size = filled_ - foreign_;
    std::byte* const to = to_ + (down_ ? kGranule - filled_ : foreign_);
    if (size > 0) std::memcpy(to, last_ + (down_ ? 0 : kGranule - size), static_cast<size_t>(size));
  }

  bool non_temporal_;
  bool down_;
  std::byte* to_ = nullptr;  // the granule that is not full yet
  int64_t filled_ = 0;       // the bytes of it that are passed, in the order of traversal,
  int64_t foreign_ = 0;      // and of those the ones that are not the row's own
  alignas(kGranule) std::byte last_[kGranule] = {};  // the last granule that came, of which it has the end
};

// What a kernel writes through, upwards or downwards in memory, by non-temporal stores to the place that
// begin() is given.
template <StoreMode kStoreMode, bool kDown>
class RealigningStore {
 public:
  static constexpr bool kIsNonTemporal = true;

  explicit RealigningStore(RealigningBuffer& buffer) : buffer_(buffer) { load_state(); }
  RealigningStore(const RealigningStore&) = delete;
  RealigningStore& operator=(const RealigningStore&) = delete;
  ~RealigningStore() { save_state(); }

  // The next outputs belong to the `size` bytes at `out`.
  void begin(std::byte* out, int64_t size) {
    std::byte* const first = kDown ? out + size : out;
    if (first - (kDown ? kGranule - filled_ : filled_) == to_) return;
    save_state();
    buffer_.begin(first);
    load_state();
  }
  // Whether the granule at hand has bytes that are not the row's own. Only put_part() may write there.
  bool at_shared_granule() const { return foreign_ > 0; }

  template <class T, class V>
  ANYDML_INLINE void put(std::byte* to, V y) {
    for (const Granule granule : granules_of<T, kDown>(y)) put_granule(to, granule);
  }
  // Two elements of 8 bytes, in the order of traversal.
  template <class T>
  ANYDML_INLINE void put_pair(std::byte* to, T first, T second) {
    put_granule(to, granule_of<T, kDown>(first, second));
  }
  ANYDML_INLINE void put_granule(std::byte*, Granule granule) {
    // A branch, as aligned outputs need no shuffle.
    Granule whole = granule;
    if (kStoreMode == StoreMode::kRealigned && filled_ != 0) whole = filled_up(granule);
    stream_half<uint8_t>(to_, whole);
    advance();
    last_ = granule;
  }
  // The first `count` bytes of a granule in the order of traversal, which belong to `to`.
  ANYDML_INLINE void put_part(std::byte*, Granule granule, int64_t count) {
    filled_ += count;
    if (filled_ >= kGranule) {
      const Granule whole = filled_up(granule);
      if (at_shared_granule()) {
        store_own(to_, whole, std::exchange(foreign_, 0));
      } else {
        stream_half<uint8_t>(to_, whole);
      }
      advance();
      filled_ -= kGranule;
    }
    if (count == kGranule) {
      last_ = granule;
    } else {
      last_ = realigned(ByteRealigner(kDown ? kGranule - count : count), last_, granule);
      set_realigner();
    }
  }

  // Between these two calls another store may use the buffer.
  void save_state() {
    buffer_.to_ = to_;
    buffer_.filled_ = filled_;
    buffer_.foreign_ = foreign_;
    store_vector(buffer_.last_, last_);
  }
  void load_state() {
    to_ = buffer_.to_;
    filled_ = buffer_.filled_;
    foreign_ = buffer_.foreign_;
    last_ = load_vector<Granule>(buffer_.last_);
    set_realigner();
  }

 private:
  ANYDML_INLINE static Granule realigned(const ByteRealigner& realigner, Granule before, Granule granule) {
    return kDown ? realigner.of(granule, before) : realigner.of(before, granule);
  }
  // Stores a granule whose first bytes are not the row's own.
  ANYDML_NOINLINE static void store_own(std::byte* to, Granule whole, int64_t skipped) {
    store_bytes(to + (kDown ? 0 : skipped), kDown ? whole : ByteRealigner(skipped).of(whole, whole),
                kGranule - skipped);
  }
  // The end of the last granule, and the first bytes of the one that comes.
  ANYDML_INLINE Granule filled_up(Granule granule) const { return realigned(realigner_, last_, granule); }
  void set_realigner() { realigner_ = ByteRealigner(kDown ? filled_ : kGranule - filled_); }
  void advance() { to_ += kDown ? -kGranule : kGranule; }

  RealigningBuffer& buffer_;
  std::byte* to_;
  int64_t filled_;
  int64_t foreign_;
  Granule last_;
  ByteRealigner realigner_{0};
};

// The same by ordinary stores, to the place that each call names.
template <bool kDown>
class RealigningStore<StoreMode::kCached, kDown> {
 public:
  static constexpr bool kIsNonTemporal = false;

  RealigningStore() = default;
  explicit RealigningStore(RealigningBuffer&) {}

  void begin(std::byte*, int64_t) {}
  static constexpr bool at_shared_granule() { return false; }

  template <class T, class V>
  ANYDML_INLINE void put(std::byte* to, V y) {
    store_wide<T, std::remove_cvref_t<decltype(y[0])>>(to, y);
  }
  template <class T>
  ANYDML_INLINE void put_pair(std::byte* to, T first, T second) {
    store(to + (kDown ? sizeof(T) : 0), first);
    store(to + (kDown ? 0 : sizeof(T)), second);
  }
  ANYDML_INLINE void put_granule(std::byte* to, Granule granule) { store_vector(to, granule); }
  ANYDML_INLINE void put_part(std::byte* to, Granule granule, int64_t count) {
    store_bytes(to, kDown ? ByteRealigner(kGranule - count).of(granule, granule) : granule, count);
  }

  void save_state() {}
  void load_state() {}
};

// Puts a granule, which may be the first of a row and have bytes that are not the row's own.
template <class Outputs>
ANYDML_INLINE void put_first(Outputs& outputs, std::byte* to, Granule granule) {
  if (!outputs.at_shared_granule()) [[likely]] {
    outputs.put_granule(to, granule);
  } else {
    outputs.put_part(to, granule, kGranule);
  }
}

// Copies `size` bytes from `in` to `out`. A whole granule may be read at either end of them.
template <StoreMode kStoreMode, bool kDown>
ANYDML_NOINLINE void put_bytes(RealigningBuffer& buffer, std::byte* out, const std::byte* in, int64_t size) {
  RealigningStore<kStoreMode, kDown> outputs(buffer);
  outputs.begin(out, size);
  for (int64_t done = 0; done < size; done += kGranule) {
    const int64_t count = std::min<int64_t>(kGranule, size - done);
    outputs.put_part(out + (kDown ? size - done - count : done),
                     load_vector<Granule>(in + (kDown ? size - done - kGranule : done)), count);
  }
}

// Puts a line's granules, or the first `size` bytes of them in the order of traversal, which belong to `out`.
template <bool kDown, class Outputs>
ANYDML_INLINE void put_granules(Outputs& outputs, std::byte* out, const Granule* granules, int64_t size) {
#pragma GCC unroll 4
  for (int64_t begin = 0; begin < kLine; begin += kGranule) {
    if (begin >= size) break;
    const int64_t count = std::min<int64_t>(kGranule, size - begin);
    outputs.put_part(out + (kDown ? size - begin - count : begin), granules[begin / kGranule], count);
  }
}

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
