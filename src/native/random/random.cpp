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

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kWords = 4;    // of a block
constexpr int64_t kBlocks = 16;  // that are computed at once, in lanes of 64 bits
constexpr int kRounds = 10;
constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};  // by which the key's words grow

struct State {
  uint64_t low;  // of the counter
  uint64_t high;
  uint32_t key[2];
};

inline uint64_t low_half(uint64_t x) { return x & 0xffffffff; }

// Writes the blocks of the counter plus `first`, first + 1, and so on. Upper halves of what stands for a word
// hold anything, as only products are wider than it.
void write_blocks(const State& state, int64_t first, std::byte* to) {
  uint64_t words[2 * kBlocks];
  for (int64_t lane = 0; lane < kBlocks; ++lane) {
    const uint64_t low = state.low + static_cast<uint64_t>(first + lane);
    const uint64_t high = state.high + (low < state.low);
    uint64_t c0 = low;
    uint64_t c1 = low >> 32;
    uint64_t c2 = high;
    uint64_t c3 = high >> 32;
#pragma GCC unroll 10
    for (uint32_t round = 0; round < kRounds; ++round) {
      // c0, c1, c2, c3 = high(p1) ^ c1 ^ k0, low(p1), high(p0) ^ c3 ^ k1, low(p0)
      const uint64_t p0 = low_half(c0) * kMultipliers[0];
      const uint64_t p1 = low_half(c2) * kMultipliers[1];
      c0 = p1 >> 32 ^ c1 ^ (state.key[0] + round * kWeyl[0]);
      c2 = p0 >> 32 ^ c3 ^ (state.key[1] + round * kWeyl[1]);
      c1 = p1;
      c3 = p0;
    }
    words[2 * lane] = low_half(c0) | c1 << 32;
    words[2 * lane + 1] = low_half(c2) | c3 << 32;
  }
  std::memcpy(to, words, sizeof(words));
}

class RandomGeneratorPlan final : public Plan {
 public:
  RandomGeneratorPlan(const Layout& state, const Layout& out, const Layout& new_state)
      : Plan("Philox 4x32-10, " + std::to_string(kBlocks) + " blocks at once"),
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
