// Scans along an axis whose elements lie next to each other in memory, in either direction.
//
// A row is cut into blocks of kBlock elements, a block into groups of as many vectors as a vector has lanes.
// With P(i) the prefix of x within its vector, G the tally of the group's vectors before, L that of the
// block's groups before, and C that of the blocks before,
//   y(i) = ((C o L) o G) o P(i),   L' = L o G(end),   C' = C o L(end):
// what depends on the group before is one operation, and no block's L depends on C. So one thread that
// carries C along and several that first reduce blocks to L(end) get the same bits. What is left of a block
// goes on vector by vector, and then one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cumulative_columns.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "memory.h"
#include "vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

inline constexpr int64_t kBlock = 2048;
inline constexpr int64_t kShortRow = 16;

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

  // C and L.
  struct Progress {
    State carry = identity();
    State local = identity();

    void end_block() {
      carry = Operation::combine(carry, local);
      local = identity();
    }
  };

  // Goes on in a block: the part is a whole one, or starts a multiple of a
  // group's elements into one.
  static void scan(const std::byte* in, std::byte* out, int64_t size, Progress& progress) {
    if constexpr (kScaled) {
      scan_scaled(in, out, size, progress);
    } else if constexpr (std::is_same_v<T, uint64_t> && std::is_same_v<Operation, Product>) {
      scan_multiplying(in, out, size, progress);
    } else {
      scan_adding(in, out, size, progress);
    }
  }

  // A row too short for vectors, one by one.
  static void scan_short(const std::byte* in, std::byte* out, int64_t size) {
    Tally tally = static_cast<Tally>(Operation::kIdentity);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t at = element(size, i);
      const Tally next = Operation::combine(tally, widen<T, Tally>(in + at));
      narrow<T, Tally>(out + at, output(tally, next));
      tally = next;
    }
  }

 private:
  // Where the i-th element traversed, or the lowest of the `count` from it on, lies in a block of that size.
  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }

  static constexpr Tally output(Tally before, Tally next) {
    return kOutput == Output::kExclusive ? before : next;
  }

  // y = base o p, or, where exclusive, base o what is before p.
  template <class V>
  static void write(std::byte* to, V base, V p, V identity) {
    if constexpr (kOutput != Output::kNone) {
      if constexpr (kOutput == Output::kExclusive) p = shift_later<kDown>(p, identity);
      store_wide<T, Tally>(to, Operation::combine(base, p));
    }
  }

  static void scan_adding(const std::byte* in, std::byte* out, int64_t size, Progress& progress) {
    using V = Vector<Tally>;
    constexpr int64_t kLanes = kLanesOf<V>;
    constexpr int kLast = kLastLane<V, kDown>;
    constexpr int64_t kGroup = kLanes * kLanes;
    const V identity = broadcast(RowScan::identity());
    const V before = broadcast(progress.carry);
    V local = broadcast(progress.local);
    int64_t i = 0;
    for (; i + kGroup <= size; i += kGroup) {
      V v[kLanes];
      for (int64_t k = 0; k < kLanes; ++k) {
        v[k] = load_wide<T, Tally>(in + element(size, i + k * kLanes, kLanes));
      }
      if constexpr (kOutput == Output::kNone) {
        const V g = prefixes<Operation, false>(totals<Operation>(v), identity);
        local = Operation::combine(local, broadcast_lane<kLanes - 1>(g));
      } else {
        for (V& each : v) each = prefixes<Operation, kDown>(each, identity);
        const V g = prefixes<Operation, false>(last_lanes<kDown>(v), identity);
        const V base = Operation::combine(Operation::combine(before, local), shift_later<false>(g, identity));
        [&]<int... k>(std::integer_sequence<int, k...>) {
          (write(out + element(size, i + k * kLanes, kLanes), broadcast_lane<k>(base), v[k], identity), ...);
        }(std::make_integer_sequence<int, static_cast<int>(kLanes)>{});
        local = Operation::combine(local, broadcast_lane<kLanes - 1>(g));
      }
    }
    for (; i + kLanes <= size; i += kLanes) {
      const int64_t at = element(size, i, kLanes);
      const V p = prefixes<Operation, kDown>(load_wide<T, Tally>(in + at), identity);
      write(out + at, Operation::combine(before, local), p, identity);
      local = Operation::combine(local, broadcast_lane<kLast>(p));
    }
    Tally tally = local[0];
    for (; i < size; ++i) {
      const int64_t at = element(size, i);
      const Tally next = Operation::combine(tally, widen<T, Tally>(in + at));
      if constexpr (kOutput != Output::kNone) {
        narrow<T, Tally>(out + at, Operation::combine(progress.carry, output(tally, next)));
      }
      tally = next;
    }
    progress.local = tally;
  }

  // Few machines multiply vectors of 64-bit integers; one by one is fast enough where results are written,
  // and where none is, four products go side by side.
  static void scan_multiplying(const std::byte* in, std::byte* out, int64_t size, Progress& progress) {
    Tally carry = progress.carry;
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
      if constexpr (kOutput != Output::kNone) store(out + at, output(carry, next));
      carry = next;
    }
    progress.carry = carry;
  }

  // Products of four floats are always normal doubles, and products of 2^-100 to 2^100 with a tally are so
  // four times in a row: then the tally is put back into its range after sixteen floats, else after four.
  static void scan_scaled(const std::byte* in, std::byte* out, int64_t size, Progress& progress) {
    constexpr int64_t kLanes = 4;
    constexpr int kVectors = 4;
    constexpr int kLast = kLastLane<Vector<double>, kDown>;
    const Vector<double> identity = broadcast(1.0);
    const Scaled carry = progress.carry;
    Scaled local = progress.local;
    int64_t i = 0;
    for (; i + kLanes * kVectors <= size; i += kLanes * kVectors) {
      Vector<double> p[kVectors];
      for (int k = 0; k < kVectors; ++k) {
        p[k] = prefixes<Product, kDown>(load_wide<T, double>(in + element(size, i + k * kLanes, kLanes)),
                                        identity);
      }
      if (all_moderate(last_lanes<kDown>(p))) {
        Scaled base = carry * local;
        for (int k = 0; k < kVectors; ++k) {
          write_scaled(out + element(size, i + k * kLanes, kLanes), base, p[k]);
          base.m *= p[k][kLast];
          local.m *= p[k][kLast];
        }
        local = normalised(local.m, local.e);
      } else {
        for (int k = 0; k < kVectors; ++k) {
          write_scaled(out + element(size, i + k * kLanes, kLanes), carry * local, p[k]);
          local = normalised(local.m * p[k][kLast], local.e);
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
    progress.local = local;
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
      if constexpr (kOutput == Output::kExclusive) p = shift_later<kDown>(p, broadcast(1.0));
      Vector<double> y = p * base.m;
      if (base.e != 0) y = y * root_of_scale(base.e, false) * root_of_scale(base.e, true);
      store_wide<T, double>(to, y);
    }
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
