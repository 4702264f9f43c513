// Prefix scans of short rows that follow each other: segmented scans, of as many whole rows as a register has
// lanes for. Step k adds what the element before has come to, to the elements at place k of all rows:
//   y(0) = identity o x(0),   y(k) = y(k - 1) o x(k)
// Integers, whose order does not matter, are combined with those 1, 2, 4 and 8 places before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "simd/half.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_ISA_AVX512)

template <class T, class Operation>
class LaneRows {
 public:
  LaneRows(int64_t size, bool exclusive, bool down)
      : rows_(kIsFloat<T> && size == kLanes ? 0 : kLanes / size),
        steps_(0),
        used_(0),
        firsts_(0),
        exclusive_(exclusive) {
    if (rows_ == 0) return;
    const auto place = [&](int64_t lane) { return down ? size - 1 - lane % size : lane % size; };
    for (int64_t distance = 1; distance < size; distance = kIsFloat<T> ? distance + 1 : 2 * distance) {
      masks_[steps_] = 0;
      const int64_t from = kIsFloat<T> ? 1 : distance;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const bool is_taken = kIsFloat<T> ? place(lane) == distance : place(lane) >= distance;
        if (is_taken) masks_[steps_] = static_cast<Mask>(masks_[steps_] | 1 << lane);
        places_[steps_][lane] = static_cast<Index>((down ? lane + from : lane - from) & (kLanes - 1));
      }
      ++steps_;
    }
    for (int64_t lane = 0; lane < rows_ * size; ++lane) {
      used_ = static_cast<Mask>(used_ | 1 << lane);
      if (place(lane) == 0) firsts_ = static_cast<Mask>(firsts_ | 1 << lane);
    }
    bytes_ = rows_ * size * static_cast<int64_t>(sizeof(T));
  }

  // How many rows are scanned at a time; 0 where they are too long, or whole rows of floats fill a register,
  // which transposed tiles do in fewer steps.
  int64_t rows_at_once() const { return kVectors * rows_; }

  // Scans a multiple of that many rows. `in` and `out` may be the same.
  ANYDML_NOINLINE void scan(const std::byte* in, std::byte* out, int64_t rows, StagedWriter& stage) const {
    for (; rows > 0; rows -= rows_at_once(), in += kVectors * bytes_, out += kVectors * bytes_) {
      for (int64_t line = 0; line < kVectors * bytes_; line += kLine) {
        prefetch_line(in + kPrefetchDistance + line);
        stage.send_line();
      }
      V x[kVectors];
      V y[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        x[v] = load(in + v * bytes_);
        y[v] = Operation::combine(V{} + static_cast<A>(Operation::kIdentity), x[v]);
      }
      for (int64_t step = 0; step < steps_; ++step) {
        const Mask mask = masks_[step];
        const auto places =
            load_vector<Vector<Index, kLanes>>(reinterpret_cast<const std::byte*>(places_[step]));
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const V before = permuted(y[v], places);
          y[v] = taken(mask, Operation::combine(before, kIsFloat<T> ? x[v] : y[v]), y[v]);
        }
      }
      if (exclusive_) {
        const auto places =
            load_vector<Vector<Index, kLanes>>(reinterpret_cast<const std::byte*>(places_[0]));
        const V identity = V{} + static_cast<A>(Operation::kIdentity);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) y[v] = taken(firsts_, identity, permuted(y[v], places));
      }
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) store(out + v * bytes_, y[v]);
    }
  }

 private:
  using A = AccumulatorOf<T>;
  static constexpr int64_t kLanes = 64 / sizeof(A);
  // So many registers are scanned side by side, as each step waits for the one before. Xeon with AVX-512, one
  // thread, 32 KiB: rows of 3 float16 took 28.5 us as transposed tiles, and take 4.1 with four registers and
  // 3.7 with eight; of float32 22, 10.5 and 10.1; rows of 11 float16 13.8, 14.5 and 12.8.
  static constexpr int kVectors = 8;
  using V = Vector<A, kLanes>;
  using Index = std::conditional_t<sizeof(A) == 4, int32_t, int64_t>;
  using Mask = std::conditional_t<kLanes == 16, __mmask16, __mmask8>;
  static constexpr Mask kAll = static_cast<Mask>(~0);

  ANYDML_INLINE static V permuted(V v, Vector<Index, kLanes> places) {
    if constexpr (sizeof(A) == 4) {
      return (V)_mm512_maskz_permutexvar_epi32(kAll, (__m512i)places, (__m512i)v);
    } else {
      return (V)_mm512_maskz_permutexvar_epi64(kAll, (__m512i)places, (__m512i)v);
    }
  }
  ANYDML_INLINE static V taken(Mask mask, V a, V b) {
    if constexpr (std::is_same_v<A, float>) {
      return (V)_mm512_mask_mov_ps((__m512)b, mask, (__m512)a);
    } else if constexpr (std::is_same_v<A, double>) {
      return (V)_mm512_mask_mov_pd((__m512d)b, mask, (__m512d)a);
    } else if constexpr (sizeof(A) == 4) {
      return (V)_mm512_mask_mov_epi32((__m512i)b, mask, (__m512i)a);
    } else {
      return (V)_mm512_mask_mov_epi64((__m512i)b, mask, (__m512i)a);
    }
  }
  // The elements of whole rows alone.
  ANYDML_INLINE V load(const std::byte* from) const {
    if constexpr (std::is_same_v<T, float>) {
      return (V)_mm512_maskz_cvtps_pd(kAll, _mm256_maskz_loadu_ps(used_, from));
    } else if constexpr (std::is_same_v<T, Half>) {
      return (V)_mm512_maskz_cvtph_ps(kAll, _mm256_maskz_loadu_epi16(used_, from));
    } else if constexpr (sizeof(A) == 4) {
      return (V)_mm512_maskz_loadu_epi32(used_, from);
    } else {
      return (V)_mm512_maskz_loadu_epi64(used_, from);
    }
  }
  ANYDML_INLINE void store(std::byte* to, V y) const {
    if constexpr (std::is_same_v<T, float>) {
      _mm256_mask_storeu_ps(to, used_, _mm512_maskz_cvtpd_ps(kAll, (__m512d)y));
    } else if constexpr (std::is_same_v<T, Half>) {
      const __m256i halves =
          _mm512_maskz_cvtps_ph(kAll, (__m512)y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm256_mask_storeu_epi16(to, used_, halves);
    } else if constexpr (sizeof(A) == 4) {
      _mm512_mask_storeu_epi32(to, used_, (__m512i)y);
    } else {
      _mm512_mask_storeu_epi64(to, used_, (__m512i)y);
    }
  }

  int64_t rows_;  // in a register
  int64_t bytes_ = 0;
  int64_t steps_;
  Mask used_;
  Mask firsts_;
  bool exclusive_;
  Mask masks_[kLanes];
  alignas(64) Index places_[kLanes][kLanes];
};

#endif  // ANYDML_ISA_AVX512

ANYDML_ISA_END
