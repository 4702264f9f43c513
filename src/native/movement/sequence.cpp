// FILL_VALUE_SEQUENCE: numbers in equal steps.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/enumeration.h"
#include "platform/isa.h"
#include "simd/bits_as.h"
#include "simd/convert.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

// Numbers are bits: of a double, or of an integer.
struct Sequence {
  int64_t start;
  int64_t delta;
  // i * delta, of integers of the output's size.
  alignas(64) std::byte steps[kConvertedAtOnce * 8];
};

// Writes the elements from `first` on, as many as are converted at once.
using Count = void (*)(const Sequence& sequence, int64_t first, std::byte* to);

// start + i * delta, modulo 2^n
template <class T>
void count_integers(const Sequence& sequence, int64_t first, std::byte* to) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const auto start = static_cast<T>(static_cast<uint64_t>(sequence.start) +
                                    static_cast<uint64_t>(first) * static_cast<uint64_t>(sequence.delta));
#if defined(ANYDML_VECTORS)
  for (int64_t i = 0; i < kConvertedAtOnce * kSize; i += kVectorBytes) {
    store_vector(to + i, load_vector<Vector<T>>(sequence.steps + i) + broadcast(start));
  }
#else
  for (int64_t i = 0; i < kConvertedAtOnce; ++i) {
    store(to + i * kSize, static_cast<T>(start + load<T>(sequence.steps + i * kSize)));
  }
#endif
}

template <class T>
Count integers(Sequence& sequence) {
  for (int64_t i = 0; i < kConvertedAtOnce; ++i) {
    store(sequence.steps + i * static_cast<int64_t>(sizeof(T)),
          static_cast<T>(static_cast<uint64_t>(i) * static_cast<uint64_t>(sequence.delta)));
  }
  return count_integers<T>;
}

// Likewise of floats, in double precision and rounded once.
template <class T>
void count_floats(const Sequence& sequence, int64_t first, std::byte* to) {
  const auto start = bits_as<double>(sequence.start);
  const auto delta = bits_as<double>(sequence.delta);
  const auto begin = static_cast<double>(first);
  for (int32_t i = 0; i < kConvertedAtOnce; ++i) {
    store(to + i * static_cast<int64_t>(sizeof(T)), static_cast<T>(start + (begin + i) * delta));
  }
  // Whatever the step is.
  if (first == 0) store(to, static_cast<T>(start));
}

void count_halves(const Sequence& sequence, int64_t first, std::byte* to) {
  std::byte numbers[kConvertedAtOnce * sizeof(double)];
  std::byte singles[kConvertedAtOnce * sizeof(float)];
  count_floats<double>(sequence, first, numbers);
  convert_for_halves<double>(numbers, singles, 1);
  narrow_to_halves(singles, to, 1);
}

// Null for what is no type of numbers.
Count choose_count(DataType type, Sequence& sequence) {
  switch (type) {
    case DataType::kFloat16:
      return count_halves;
    case DataType::kFloat32:
      return count_floats<float>;
    case DataType::kFloat64:
      return count_floats<double>;
    default:
      break;
  }
  switch (size_of(type)) {
    case 1:
      return integers<uint8_t>(sequence);
    case 2:
      return integers<uint16_t>(sequence);
    case 4:
      return integers<uint32_t>(sequence);
    case 8:
      return integers<uint64_t>(sequence);
    default:
      return nullptr;
  }
}

class SequencePlan final : public Plan {
 public:
  SequencePlan(const Layout& out, const Sequence& sequence, Count count, std::string description)
      : Plan(std::move(description)),
        sequence_(sequence),
        count_(count),
        item_(size_of(out.type)),
        elements_(out) {}

  void run(const void* const*, void* const* outputs) const override {
    elements_.write(static_cast<std::byte*>(outputs[0]),
                    [&](int64_t first, int64_t count, std::byte* to) { fill(first, count, to); });
  }

 private:
  void fill(int64_t first, int64_t count, std::byte* to) const {
    int64_t done = 0;
    for (; done + kConvertedAtOnce <= count; done += kConvertedAtOnce) {
      count_(sequence_, first + done, to + done * item_);
    }
    if (done == count) return;
    std::byte rest[kConvertedAtOnce * 8];
    count_(sequence_, first + done, rest);
    std::memcpy(to + done * item_, rest, static_cast<size_t>((count - done) * item_));
  }

  Sequence sequence_;
  Count count_;
  int64_t item_;
  Enumeration elements_;
};

}  // namespace

std::unique_ptr<Plan> make_fill_value_sequence(const Request& request, std::string& reason) {
  const Layout& out = tensor(request.outputs, 0);
  Sequence sequence{request.attributes.integer("Start"), request.attributes.integer("Delta"), {}};
  const Count count = choose_count(out.type, sequence);
  if (count == nullptr) {
    reason = "no sequence of " + std::string(name_of(out.type));
    return nullptr;
  }
  return std::make_unique<SequencePlan>(out, sequence, count,
                                        "sequence of " + std::string(name_of(out.type)));
}

ANYDML_ISA_END
