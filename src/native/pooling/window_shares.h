// What windows have for the elements under them, in gradients of pooling: numbers, and of maxima the taps
// that these lie at, of which each element looks for its own.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN
namespace {

template <bool kIsMaximum>
struct WindowShares {
  // Of maxima singles, of which half as many bytes are read, where no mask of a sum's lanes spares the
  // conversion.
#if defined(ANYDML_ISA_AVX512)
  using Share = double;
#else
  using Share = std::conditional_t<kIsMaximum, float, double>;
#endif
  static constexpr auto kLanes = static_cast<int64_t>(sizeof(Doubles) / sizeof(double));

  // Those of some windows side by side, and at which of their taps the elements are.
  struct Source {
    const Share* shares;
    const int32_t* taps;
    int32_t tap;
  };

  // The sums over windows, in their order, of kVectors vectors from one on.
  template <int kVectors>
  ANYDML_INLINE static void add(const std::vector<Source>& sources, int64_t first, Doubles* sums) {
    // One by one, as all would go through memory.
    ANYDML_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sums[v] = Doubles{};
    for (const Source& source : sources) {
      ANYDML_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sums[v] = plus(sums[v], source, first + v * kLanes);
    }
  }

 private:
  using Shares = Lanes<Share, static_cast<int>(kLanes)>;
  using Taps = Lanes<int32_t, static_cast<int>(kLanes)>;

  ANYDML_INLINE static Doubles plus(Doubles sum, const Source& source, int64_t at) {
    Shares share;
    std::memcpy(&share, source.shares + at, sizeof(share));
    if constexpr (!kIsMaximum) {
      return sum + share;
    } else {
      Taps taps;
      std::memcpy(&taps, source.taps + at, sizeof(taps));
#if defined(ANYDML_ISA_AVX512)
      const __mmask8 are_there = _mm256_cmpeq_epi32_mask((__m256i)taps, _mm256_set1_epi32(source.tap));
      return (Doubles)_mm512_mask_add_pd((__m512d)sum, are_there, (__m512d)sum, (__m512d)share);
#elif defined(ANYDML_VECTORS)
      const auto there = bits_as<Shares>(bits_as<Taps>(share) & (taps == source.tap));
      return sum + __builtin_convertvector(there, Doubles);
#else
      return taps == source.tap ? sum + share : sum;
#endif
    }
  }
};

}  // namespace
ANYDML_ISA_END
