// Scans along an axis whose elements lie next to each other in memory, in either direction.
//
// A row is cut into blocks of kBlock elements. With P(i) the prefix of x within its vector, L the tally of
// the block's vectors before, and C the tally of the blocks before,
//   y(i) = (C o L) o P(i),   L' = L o P(last),   C' = C o L(end):
// what depends on the vector before is one operation, and no block's L depends on C. So one thread that
// carries C along and several that first reduce blocks to L(end) get the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cumulative_tally.h"
#include "isa.h"
#include "memory.h"
#include "vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

inline constexpr int64_t kBlock = 2048;
inline constexpr int64_t kShortRow = 16;

enum class Output { kNone, kInclusive, kExclusive };

// How a block of rows of T is scanned, walking up or down in memory. `in` and `out` are where the block's
// elements lie lowest, and may be the same.
template <class T, class Operation, Output kOutput, bool kDown>
class RowScan {
  static constexpr int64_t kSize = sizeof(T);
  // Where no order of combining changes the result, or none takes it out of range.
  static constexpr bool kScaled = kIsFloat<T> && std::is_same_v<Operation, Product>;

 public:
  using Tally = TallyOf<T>;
  using State = std::conditional_t<kScaled, Scaled, Tally>;

  static State identity() {
    if constexpr (kScaled) {
      return Scaled{};
    } else {
      return static_cast<Tally>(Operation::kIdentity);
    }
  }

  static State combine(State a, State b) { return Operation::combine(a, b); }

  // Returns the tally after the block, given the one before.
  static State scan(const std::byte* in, std::byte* out, int64_t size, State carry) {
    if constexpr (kScaled) {
      return scan_scaled(in, out, size, carry);
    } else if constexpr (std::is_same_v<T, uint64_t> && std::is_same_v<Operation, Product>) {
      return scan_multiplying(in, out, size, carry);
    } else {
      return scan_adding(in, out, size, carry);
    }
  }

  // A row too short for vectors, one by one.
  static void scan_short(const std::byte* in, std::byte* out, int64_t size) {
    Tally tally = static_cast<Tally>(Operation::kIdentity);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t at = element(size, i);
      const Tally next = Operation::combine(tally, widen<T, Tally>(in + at));
      narrow<T, Tally>(out + at, kOutput == Output::kExclusive ? tally : next);
      tally = next;
    }
  }

 private:
  // Where the i-th element traversed, or the lowest of the `count` from it on, lies in a block of that size.
  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }

  template <class Wide>
  static Vector<Wide> load_next(const std::byte* from) {
    const Vector<Wide> v = load_wide<T, Wide>(from);
    if constexpr (kDown) return reversed(v);
    return v;
  }

  template <class Wide>
  static void store_next(std::byte* to, Vector<Wide> v) {
    if constexpr (kDown) v = reversed(v);
    store_wide<T, Wide>(to, v);
  }

  static State scan_adding(const std::byte* in, std::byte* out, int64_t size, State carry) {
    using V = Vector<Tally>;
    constexpr int64_t kLanes = kVectorBytes / sizeof(Tally);
    const V identity = broadcast(RowScan::identity());
    const V before = broadcast(carry);
    V local = identity;
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      const int64_t at = element(size, i, kLanes);
      const V p = prefixes<Operation>(load_next<Tally>(in + at), identity);
      if constexpr (kOutput != Output::kNone) {
        const V base = Operation::combine(before, local);
        store_next<Tally>(
            out + at, Operation::combine(base, kOutput == Output::kExclusive ? shift_up(p, identity) : p));
      }
      local = Operation::combine(local, broadcast_last(p));
    }
    Tally tally = local[0];
    for (; i < size; ++i) {
      const int64_t at = element(size, i);
      const Tally next = Operation::combine(tally, widen<T, Tally>(in + at));
      if constexpr (kOutput != Output::kNone) {
        narrow<T, Tally>(out + at, Operation::combine(carry, kOutput == Output::kExclusive ? tally : next));
      }
      tally = next;
    }
    return Operation::combine(carry, tally);
  }

  // Few machines multiply vectors of 64-bit integers; one by one is fast enough where results are written,
  // and where none is, four products go side by side.
  static State scan_multiplying(const std::byte* in, std::byte* out, int64_t size, State carry) {
    int64_t i = 0;
    if constexpr (kOutput == Output::kNone) {
      Tally tallies[4] = {carry, 1, 1, 1};
      for (; i + 4 <= size; i += 4) {
        for (int64_t lane = 0; lane < 4; ++lane) tallies[lane] *= load<T>(in + element(size, i + lane));
      }
      carry = tallies[0] * tallies[1] * (tallies[2] * tallies[3]);
    }
    for (; i < size; ++i) {
      const int64_t at = element(size, i);
      const Tally next = carry * load<T>(in + at);
      if constexpr (kOutput != Output::kNone) store(out + at, kOutput == Output::kExclusive ? carry : next);
      carry = next;
    }
    return carry;
  }

  // Products of four floats are always normal doubles, and products of 2^-100 to 2^100 with a tally are so
  // four times in a row: then the tally is put back into its range after sixteen floats, else after four.
  static Scaled scan_scaled(const std::byte* in, std::byte* out, int64_t size, Scaled carry) {
    constexpr int64_t kLanes = 4;
    constexpr int kVectors = 4;
    const Vector<double> identity = broadcast(1.0);
    Scaled local;
    int64_t i = 0;
    for (; i + kLanes * kVectors <= size; i += kLanes * kVectors) {
      Vector<double> p[kVectors];
      for (int k = 0; k < kVectors; ++k) {
        p[k] = prefixes<Product>(load_next<double>(in + element(size, i + k * kLanes, kLanes)), identity);
      }
      if (all_moderate(Vector<double>{p[0][3], p[1][3], p[2][3], p[3][3]})) {
        Scaled base = carry * local;
        for (int k = 0; k < kVectors; ++k) {
          write_scaled(out + element(size, i + k * kLanes, kLanes), base, p[k]);
          base.m *= p[k][3];
          local.m *= p[k][3];
        }
        local = normalised(local.m, local.e);
      } else {
        for (int k = 0; k < kVectors; ++k) {
          write_scaled(out + element(size, i + k * kLanes, kLanes), carry * local, p[k]);
          local = normalised(local.m * p[k][3], local.e);
        }
      }
    }
    for (; i < size; ++i) {
      const int64_t at = element(size, i);
      const Scaled next = normalised(local.m * widen<T, double>(in + at), local.e);
      if constexpr (kOutput != Output::kNone) {
        const Scaled y = carry * (kOutput == Output::kExclusive ? local : next);
        narrow<T, double>(out + at, y.m * root_of_scale(y.e, false) * root_of_scale(y.e, true));
      }
      local = next;
    }
    return carry * local;
  }

  // Within 2^-100 to 2^100, or 0.
  static bool all_moderate(Vector<double> v) {
    const Vector<double> magnitude = v < 0 ? -v : v;
    const auto bad = (magnitude > 0x1p100) | ((magnitude < 0x1p-100) & (v != 0)) | (v != v);
    return (bad[0] | bad[1] | bad[2] | bad[3]) == 0;
  }

  // y = base o p. Where base.e is not 0, |base.m| is within 2^-401 to 2^401 and so nothing overflows on the
  // way.
  static void write_scaled(std::byte* to, Scaled base, Vector<double> p) {
    if constexpr (kOutput != Output::kNone) {
      if constexpr (kOutput == Output::kExclusive) p = shift_up(p, broadcast(1.0));
      Vector<double> y = p * base.m;
      if (base.e != 0) y = y * root_of_scale(base.e, false) * root_of_scale(base.e, true);
      store_next<double>(to, y);
    }
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
