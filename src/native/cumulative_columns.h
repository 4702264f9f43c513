// Scans along an axis of which several lines lie side by side in memory: a strip of columns goes along the
// axis together, its tallies in the first cache.
//   y(i, j) = t(j) o x(i, j),   t'(j) = y(i, j)   (exclusive: y(i, j) = t(j))
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cumulative_tally.h"
#include "isa.h"
#include "layout.h"
#include "memory.h"
#include "vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

inline constexpr int64_t kStrip = 2048;

template <class T, class Operation, bool kExclusive>
class ColumnScan {
  using Tally = TallyOf<T>;
  static constexpr int64_t kSize = sizeof(T);

 public:
  static void scan(Loop axis, int64_t width, const std::byte* in, std::byte* out, bool streams) {
    alignas(64) Tally tallies[kStrip];
    alignas(64) std::byte staged[kStrip * kSize];
    std::fill_n(tallies, width, static_cast<Tally>(Operation::kIdentity));
    for (int64_t i = 0; i < axis.size; ++i) {
      std::byte* to = out + i * axis.out;
      advance(tallies, width, in + i * axis.in, streams ? staged : to);
      if (streams) stream_copy(to, staged, width * kSize);
    }
    if (streams) stream_fence();
  }

 private:
  static void advance(Tally* tallies, int64_t width, const std::byte* in, std::byte* out) {
    using V = Vector<Tally>;
    constexpr int64_t kLanes = kVectorBytes / sizeof(Tally);
    int64_t j = 0;
    for (; j + kLanes <= width; j += kLanes) {
      auto* held = reinterpret_cast<std::byte*>(tallies + j);
      const V tally = load_vector<V>(held);
      const V next = Operation::combine(tally, load_wide<T, Tally>(in + j * kSize));
      store_wide<T, Tally>(out + j * kSize, kExclusive ? tally : next);
      store_vector(held, next);
    }
    for (; j < width; ++j) {
      const Tally next = Operation::combine(tallies[j], widen<T, Tally>(in + j * kSize));
      narrow<T, Tally>(out + j * kSize, kExclusive ? tallies[j] : next);
      tallies[j] = next;
    }
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
