// Exact requantisation: round(sum * factor / scale), a quotient of exact numbers, halves to the even integer.
//
// A quotient in double precision is off by less than 2^-51 of itself, and so says the integer next to the
// exact one wherever it is not as close to a half. There the half is compared exactly: sum * factor, as the
// sum of two doubles, with half * scale, which is exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "simd/convert.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

// What an output is computed by; of a row, of which the factor may have one value for each column.
struct Scaling {
  double scale;  // of the output
  int64_t zero_point;
  int64_t lowest;
  int64_t highest;
};

constexpr int64_t kRequantizedAtOnce = 64;
// Added to a double below 2^51, it leaves the nearest integer in the sum.
constexpr double kRounder = 0x1.8p52;
// Beyond every output, whatever its zero point.
constexpr double kFar = 1024;
constexpr double kNearHalf = 0.5 - 0x1p-40;

// `nearest` is the quotient rounded, and `rest` what it was rounded by.
ANYDML_NOINLINE inline double settled(double sum, double factor, double scale, double nearest, double rest) {
  const double step = rest < 0 ? -1 : 1;
  const double high = sum * factor;
  const double low = std::fma(sum, factor, -high);
  const double beyond = ((high - (nearest + step / 2) * scale) + low) * (scale < 0 ? -step : step);
  const bool is_odd = std::fmod(nearest, 2) != 0;
  return beyond > 0 || (beyond == 0 && is_odd) ? nearest + step : nearest;
}

// nearest[i] = round(sums[i] * slopes[i]), rests[i] what it was rounded by; NaN is 0, what is far comes near.
// Returns whether one may be next to a half.
inline bool round_quotients(const double* sums, const double* slopes, double* nearest, double* rests) {
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = sizeof(Vector<double>) / sizeof(double);
  Vector<int64_t> are_near = {};
  for (int64_t i = 0; i < kRequantizedAtOnce; i += kLanes) {
    const auto at = [i](const double* from) {
      return load_vector<Vector<double>>(reinterpret_cast<const std::byte*>(from + i));
    };
    const Vector<double> quotient = clamped(at(sums) * at(slopes), -kFar, kFar);
    const Vector<double> whole = (quotient + kRounder) - kRounder;
    const Vector<double> rest = quotient - whole;
    are_near |= (Vector<int64_t>)(rest >= kNearHalf) | (Vector<int64_t>)(rest <= -kNearHalf);
    store_vector(reinterpret_cast<std::byte*>(nearest + i), whole);
    store_vector(reinterpret_cast<std::byte*>(rests + i), rest);
  }
  int64_t any = 0;
  for (int lane = 0; lane < kLanes; ++lane) any |= are_near[lane];
  return any != 0;
#else
  bool are_near = false;
  for (int64_t i = 0; i < kRequantizedAtOnce; ++i) {
    double quotient = sums[i] * slopes[i];
    quotient = quotient == quotient ? std::clamp(quotient, -kFar, kFar) : 0;
    nearest[i] = (quotient + kRounder) - kRounder;
    rests[i] = quotient - nearest[i];
    are_near |= std::fabs(rests[i]) >= kNearHalf;
  }
  return are_near;
#endif
}

// integers[i] = clamp(x[i], lowest, highest)
inline void saturate(const double* x, double lowest, double highest, int32_t* integers) {
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = sizeof(Vector<double>) / sizeof(double);
  for (int64_t i = 0; i < kRequantizedAtOnce; i += kLanes) {
    const auto lanes = load_vector<Vector<double>>(reinterpret_cast<const std::byte*>(x + i));
    store_vector(reinterpret_cast<std::byte*>(integers + i),
                 __builtin_convertvector(clamped(lanes, lowest, highest), Vector<int32_t, kLanes>));
  }
#else
  for (int64_t i = 0; i < kRequantizedAtOnce; ++i) {
    integers[i] = static_cast<int32_t>(std::clamp(x[i], lowest, highest));
  }
#endif
}

// outputs[i] = clamp(round(sums[i] * factors[i] / scale) + zero point), for kRequantizedAtOnce of them.
// `slopes` are factors / scale. Where they are exact, and so are products by them, no half is doubtful.
template <class Out>
void requantize(const double* sums, const double* factors, const double* slopes, bool is_exact,
                const Scaling& scaling, Out* outputs) {
  double nearest[kRequantizedAtOnce];
  double rests[kRequantizedAtOnce];
  if (round_quotients(sums, slopes, nearest, rests) && !is_exact) {
    for (int64_t i = 0; i < kRequantizedAtOnce; ++i) {
      if (std::fabs(rests[i]) < kNearHalf) continue;
      nearest[i] = settled(sums[i], factors[i], scaling.scale, nearest[i], rests[i]);
    }
  }
  // Integers both, so that it is the same to add the zero point behind the ends.
  int32_t integers[kRequantizedAtOnce];
  const int64_t zero_point = scaling.zero_point;
  saturate(nearest, static_cast<double>(scaling.lowest - zero_point),
           static_cast<double>(scaling.highest - zero_point), integers);
  for (int64_t i = 0; i < kRequantizedAtOnce; ++i) {
    outputs[i] = static_cast<Out>(integers[i] + static_cast<int32_t>(zero_point));
  }
}

// As above in single precision, which is quicker, of sums + addend, by a slope for each or, where `step` is
// 0, by the first kSlopesAtOnce, which are the same: false where one of the quotients is so near to a half
// that doubles have to tell; then outputs are not those. A quotient that is within the limits is below 256,
// and off by three roundings: by less than 3 * 2^-24 * 256 < 2^-14.
// Slopes are multiplied by kSlopeUnit beforehand.
constexpr int64_t kSlopesAtOnce = 16;
#if defined(ANYDML_ISA_AVX512)
constexpr int kSlopeBits = 14;
#else
constexpr int kSlopeBits = 0;
#endif
constexpr float kSlopeUnit = 1 << kSlopeBits;
constexpr float kNearHalfInSingles = 0.5f - 0x1p-14f;

template <class Out>
ANYDML_INLINE bool requantize_in_singles(const int32_t* sums, int32_t addend, const float* slopes,
                                         int64_t step, const Scaling& scaling, Out* outputs) {
#if defined(ANYDML_ISA_AVX512)
  // In fixed point, of kSlopeUnit: a quotient and the zero point are off by 1/2 + 1/8, and by 1/2 as they
  // become an integer. A half is doubtful where what is left of it, from one unit below on, is at most two.
  // What is too small saturates as it is packed.
  constexpr int64_t kLanes = 16;
  // GCC takes what it does without masks for uninitialised.
  constexpr __mmask16 kAll = 0xffff;
  constexpr int64_t kVectors = kRequantizedAtOnce / kLanes;
  constexpr auto kUnit = static_cast<int32_t>(kSlopeUnit);
  const __m512 point = _mm512_set1_ps(static_cast<float>(scaling.zero_point) * kSlopeUnit);
  const __m512 highest = _mm512_set1_ps(static_cast<float>(scaling.highest) * kSlopeUnit);
  __m512i integers[kVectors];
  __m512i nearest = _mm512_set1_epi32(kUnit);
#pragma GCC unroll 4
  for (int64_t i = 0; i < kVectors; ++i) {
    const __m512i total = _mm512_add_epi32(_mm512_loadu_si512(sums + i * kLanes), _mm512_set1_epi32(addend));
    const __m512 fixed = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(kAll, total),
                                         _mm512_loadu_ps(slopes + i * kLanes * step), point);
    const __m512i above =
        _mm512_add_epi32(_mm512_maskz_cvtps_epi32(kAll, _mm512_maskz_min_ps(kAll, fixed, highest)),
                         _mm512_set1_epi32(kUnit / 2 + 1));
    nearest = _mm512_maskz_min_epu32(kAll, nearest, _mm512_and_si512(above, _mm512_set1_epi32(kUnit - 1)));
    integers[i] = _mm512_maskz_srai_epi32(kAll, above, kSlopeBits);
  }
  // Packing takes 16 bytes of each vector in turn.
  const __m512i low_words = _mm512_packs_epi32(integers[0], integers[1]);
  const __m512i high_words = _mm512_packs_epi32(integers[2], integers[3]);
  const __m512i bytes = std::is_signed_v<Out> ? _mm512_packs_epi16(low_words, high_words)
                                              : _mm512_packus_epi16(low_words, high_words);
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(outputs, _mm512_maskz_permutexvar_epi32(kAll, in_order, bytes));
  return _mm512_cmple_epu32_mask(nearest, _mm512_set1_epi32(2)) == 0;
#else
  // Integers both, so that it is the same to saturate before quotients are rounded.
  const auto low = static_cast<float>(scaling.lowest - scaling.zero_point);
  const auto high = static_cast<float>(scaling.highest - scaling.zero_point);
  const auto zero_point = static_cast<int32_t>(scaling.zero_point);
#if defined(ANYDML_VECTORS)
  constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(float));
  Vector<int32_t> are_near = {};
  for (int64_t i = 0; i < kRequantizedAtOnce; i += kLanes) {
    const auto total =
        (Vector<int32_t>)(load_vector<Vector<uint32_t>>(reinterpret_cast<const std::byte*>(sums + i)) +
                          static_cast<uint32_t>(addend));
    const auto slope = load_vector<Vector<float>>(reinterpret_cast<const std::byte*>(slopes + i * step));
    const auto quotient = clamped(__builtin_convertvector(total, Vector<float>) * slope, low, high);
    const Vector<float> whole = (quotient + 0x1.8p23f) - 0x1.8p23f;
    const Vector<float> rest = quotient - whole;
    are_near |=
        (Vector<int32_t>)(rest >= kNearHalfInSingles) | (Vector<int32_t>)(rest <= -kNearHalfInSingles);
    const auto integers = __builtin_convertvector(whole, Vector<int32_t>) + zero_point;
    const auto bytes = __builtin_convertvector(integers, Vector<Out, kLanes>);
    std::memcpy(outputs + i, &bytes, sizeof(bytes));
  }
  int32_t any = 0;
  for (int lane = 0; lane < kLanes; ++lane) any |= are_near[lane];
  return any == 0;
#else
  for (int64_t i = 0; i < kRequantizedAtOnce; ++i) {
    const auto total = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(addend));
    const float quotient = std::clamp(static_cast<float>(total) * slopes[i * step], low, high);
    const float whole = (quotient + 0x1.8p23f) - 0x1.8p23f;
    if (std::fabs(quotient - whole) >= kNearHalfInSingles) return false;
    outputs[i] = static_cast<Out>(static_cast<int32_t>(whole) + zero_point);
  }
  return true;
#endif
#endif
}

// Whether singles hold a slope without losing more of it than its last bits.
inline bool is_usual(double slope) { return std::fabs(slope) > 0x1p-100 && std::fabs(slope) < 0x1p100; }

// Whether a slope is exact, and its products by integers of 33 bits are: it has at most 20.
inline bool is_short(double slope, double factor, double scale) {
  return slope * scale == factor && (std::bit_cast<uint64_t>(slope) & ((uint64_t{1} << 33) - 1)) == 0 &&
         slope - slope == 0;
}

}  // namespace
ANYDML_ISA_END
