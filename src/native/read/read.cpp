// READ: combines the bytes of a packed tensor by OR into one. It is no operator, but the least time that any
// operator takes which reads a tensor once, on the same threads; `anydml bench` measures reductions by it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(ANYDML_ISA_AVX512)
// Lanes do not depend on each other, so that vectors are as wide as a register.
using Word = VectorOf<uint64_t, 8>::type;
#elif defined(ANYDML_VECTORS)
using Word = Vector<uint64_t>;
#else
using Word = uint64_t;
#endif
constexpr int64_t kWord = sizeof(Word);
// One accumulator would have each load wait for the operation before.
constexpr int64_t kAccumulators = 4;

// from[0] | from[1] | ... | from[count - 1]
ANYDML_NOINLINE uint8_t combine(const std::byte* from, int64_t count) {
  Word words[kAccumulators];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kAccumulators; ++i) words[i] = Word{};
  int64_t done = 0;
  for (; done + kAccumulators * kWord <= count; done += kAccumulators * kWord) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kAccumulators; ++i) {
      Word word;
      std::memcpy(&word, from + done + i * kWord, sizeof(word));
      words[i] |= word;
    }
  }
  const Word all = (words[0] | words[1]) | (words[2] | words[3]);
  std::byte bytes[sizeof(all)];
  std::memcpy(bytes, &all, sizeof(all));
  std::byte result{};
  for (const std::byte byte : bytes) result |= byte;
  for (; done < count; ++done) result |= from[done];
  return static_cast<uint8_t>(result);
}

class ReadPlan final : public Plan {
 public:
  explicit ReadPlan(int64_t bytes) : Plan("reading"), bytes_(bytes) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const from = static_cast<const std::byte*>(inputs[0]);
    const int threads = threads_for(bytes_);
    const int64_t calls = calls_for(bytes_, threads);
    std::vector<uint8_t> results(static_cast<size_t>(calls));
    parallel_for(calls, threads, [&](int64_t call) {
      const int64_t begin = share_begin(call, calls, bytes_);
      results[static_cast<size_t>(call)] =
          combine(from + begin, share_begin(call + 1, calls, bytes_) - begin);
    });
    uint8_t result = 0;
    for (const uint8_t each : results) result = static_cast<uint8_t>(result | each);
    *static_cast<uint8_t*>(outputs[0]) = result;
  }

 private:
  int64_t bytes_;
};

}  // namespace

std::unique_ptr<Plan> make_read(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const int64_t bytes = size_of(in.type);
  if (in.sizes.size() != 1 || in.strides[0] != bytes) {
    reason = "only packed tensors of one dimension are read";
    return nullptr;
  }
  return std::make_unique<ReadPlan>(in.sizes[0] * bytes);
}

ANYDML_ISA_END
