// RANDOM_GENERATOR: Philox 4x32-10, a counter-based generator, whose blocks threads compute apart.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3".
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/enumeration.h"
#include "platform/isa.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kWords = 4;  // of a block
constexpr int kRounds = 10;
constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};  // by which the key's words grow

struct State {
  uint64_t low;  // of the counter
  uint64_t high;
  uint32_t key[2];
};

// Words of several blocks, in the lower halves of lanes; the upper ones hold anything. `product` multiplies
// lower halves, `upper` brings the upper ones down, by a shuffle, as shifts share execution ports with
// products. Compilers do not see that products need no more.
#if defined(ANYDML_VECTORS) && defined(ANYDML_ISA_AVX512)
using Words = Vector<uint64_t, 8>;
// GCC warns of what the intrinsics without a mask leave undefined.
constexpr __mmask8 kAll8Lanes = 0xff;
constexpr __mmask16 kAllLanes = 0xffff;
ANYDML_INLINE Words product(Words a, uint64_t b) {
  return (Words)_mm512_maskz_mul_epu32(kAll8Lanes, (__m512i)a, _mm512_set1_epi64(static_cast<int64_t>(b)));
}
ANYDML_INLINE Words upper(Words a) {
  return (Words)_mm512_maskz_shuffle_epi32(kAllLanes, (__m512i)a, _MM_PERM_DDBB);
}
#elif defined(ANYDML_VECTORS) && defined(ANYDML_ISA_AVX2)
using Words = Vector<uint64_t>;
ANYDML_INLINE Words product(Words a, uint64_t b) {
  return (Words)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(static_cast<int64_t>(b)));
}
ANYDML_INLINE Words upper(Words a) { return (Words)_mm256_shuffle_epi32((__m256i)a, 0xF5); }
#elif defined(ANYDML_VECTORS) && defined(__SSE2__)
using Words = Vector<uint64_t, 2>;
ANYDML_INLINE Words product(Words a, uint64_t b) {
  return (Words)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(static_cast<int64_t>(b)));
}
ANYDML_INLINE Words upper(Words a) { return (Words)_mm_shuffle_epi32((__m128i)a, 0xF5); }
#else
using Words = uint64_t;
ANYDML_INLINE Words product(Words a, uint64_t b) { return (a & 0xffffffff) * b; }
ANYDML_INLINE Words upper(Words a) { return a >> 32; }
#endif

constexpr int64_t kLanes = sizeof(Words) / sizeof(uint64_t);
// Chains of rounds that a processor computes beside each other, and blocks that they have.
constexpr int kChains = 2;
constexpr int64_t kBlocks = kChains * kLanes;

// Writes the lanes of two vectors by turns.
template <class T>
ANYDML_INLINE void store_by_turns(T a, T b, std::byte* to) {
  if constexpr (kLanes > 1) {
    const T first = shuffled(a, b, [](int lane) { return lane / 2 + lane % 2 * static_cast<int>(kLanes); });
    const T second = shuffled(a, b, [](int lane) {
      return lane / 2 + lane % 2 * static_cast<int>(kLanes) + static_cast<int>(kLanes) / 2;
    });
    a = first;
    b = second;
  }
  std::memcpy(to, &a, sizeof(T));
  std::memcpy(to + sizeof(T), &b, sizeof(T));
}

// Writes the blocks of the counter plus `first`, first + 1, and so on.
void write_blocks(const State& state, int64_t first, std::byte* to) {
  uint64_t counters[2][kBlocks];
  for (int64_t i = 0; i < kBlocks; ++i) {
    const uint64_t low = state.low + static_cast<uint64_t>(first + i);
    counters[0][i] = low;
    counters[1][i] = state.high + (low < state.low);
  }
  Words c0[kChains];
  Words c1[kChains];
  Words c2[kChains];
  Words c3[kChains];
  std::memcpy(c0, counters[0], sizeof(c0));
  std::memcpy(c2, counters[1], sizeof(c2));
  for (int i = 0; i < kChains; ++i) {
    c1[i] = c0[i] >> 32;
    c3[i] = c2[i] >> 32;
  }
  for (uint32_t round = 0; round < kRounds; ++round) {
    const Words k0 = Words{} + (state.key[0] + round * kWeyl[0]);
    const Words k1 = Words{} + (state.key[1] + round * kWeyl[1]);
    for (int i = 0; i < kChains; ++i) {
      // c0, c1, c2, c3 = high(p1) ^ c1 ^ k0, low(p1), high(p0) ^ c3 ^ k1, low(p0)
      const Words p0 = product(c0[i], kMultipliers[0]);
      const Words p1 = product(c2[i], kMultipliers[1]);
      c0[i] = upper(p1) ^ c1[i] ^ k0;
      c2[i] = upper(p0) ^ c3[i] ^ k1;
      c1[i] = p1;
      c3[i] = p0;
    }
  }
  for (int i = 0; i < kChains; ++i) {
    store_by_turns((c0[i] & 0xffffffff) | c1[i] << 32, (c2[i] & 0xffffffff) | c3[i] << 32,
                   to + 2 * i * static_cast<int64_t>(sizeof(Words)));
  }
}

class RandomGeneratorPlan final : public Plan {
 public:
  RandomGeneratorPlan(const Layout& state, const Layout& out, const Layout& new_state)
      : Plan("Philox 4x32-10"),
        step_(state.strides.back()),
        new_step_(new_state.present ? new_state.strides.back() : 0),
        elements_(out) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    uint32_t words[6];
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    for (int i = 0; i < 6; ++i) words[i] = load<uint32_t>(in + i * step_);
    const State state{words[0] | static_cast<uint64_t>(words[1]) << 32,
                      words[2] | static_cast<uint64_t>(words[3]) << 32,
                      {words[4], words[5]}};
    elements_.write(static_cast<std::byte*>(outputs[0]),
                    [&](int64_t first, int64_t count, std::byte* to) { fill(state, first, count, to); });
    auto* const new_state = static_cast<std::byte*>(outputs[1]);
    if (new_state == nullptr) return;
    const uint64_t low = state.low + static_cast<uint64_t>(divided_up(elements_.count(), kWords));
    const uint64_t high = state.high + (low < state.low);
    const uint64_t counter[] = {low, low >> 32, high, high >> 32};
    for (int i = 0; i < 4; ++i) words[i] = static_cast<uint32_t>(counter[i]);
    for (int i = 0; i < 6; ++i) store(new_state + i * new_step_, words[i]);
  }

 private:
  static constexpr int64_t kItem = sizeof(uint32_t);
  static constexpr int64_t kAtOnce = kBlocks * kWords;

  static void fill(const State& state, int64_t first, int64_t count, std::byte* to) {
    for (int64_t done = 0; done < count;) {
      const int64_t block = (first + done) / kWords;
      const int64_t skipped = (first + done) % kWords;
      if (skipped == 0 && count - done >= kAtOnce) {
        write_blocks(state, block, to + done * kItem);
        done += kAtOnce;
        continue;
      }
      std::byte blocks[kAtOnce * kItem];
      write_blocks(state, block, blocks);
      const int64_t taken = std::min(kAtOnce - skipped, count - done);
      std::memcpy(to + done * kItem, blocks + skipped * kItem, static_cast<size_t>(taken * kItem));
      done += taken;
    }
  }

  int64_t step_;
  int64_t new_step_;
  Enumeration elements_;
};

}  // namespace

std::unique_ptr<Plan> make_random_generator(const Request& request, std::string&) {
  return std::make_unique<RandomGeneratorPlan>(tensor(request.inputs, 0), tensor(request.outputs, 0),
                                               request.outputs[1]);
}

ANYDML_ISA_END
