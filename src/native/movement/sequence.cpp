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

ANYDML_ISA_BEGIN
namespace {

// Numbers are bits: of a double, or of an integer.
struct Sequence {
  int64_t start;
  int64_t delta;
};

// Writes the elements from `first` on, as many as are converted at once.
using Count = void (*)(const Sequence& sequence, int64_t first, std::byte* to);

// start + i * delta, modulo 2^n
template <class T>
void count_integers(const Sequence& sequence, int64_t first, std::byte* to) {
  const auto delta = static_cast<T>(sequence.delta);
  const auto start = static_cast<T>(static_cast<T>(sequence.start) + static_cast<T>(first) * delta);
  T numbers[kConvertedAtOnce];
  for (int64_t i = 0; i < kConvertedAtOnce; ++i) {
    numbers[i] = static_cast<T>(start + static_cast<T>(i) * delta);
  }
  std::memcpy(to, numbers, sizeof(numbers));
}

void count_doubles(const Sequence& sequence, int64_t first, std::byte* to) {
  const auto start = bits_as<double>(sequence.start);
  const auto delta = bits_as<double>(sequence.delta);
  const auto begin = static_cast<double>(first);
  double numbers[kConvertedAtOnce];
  for (int32_t i = 0; i < kConvertedAtOnce; ++i) numbers[i] = start + (begin + i) * delta;
  // Whatever the step is.
  if (first == 0) numbers[0] = start;
  std::memcpy(to, numbers, sizeof(numbers));
}

void count_singles(const Sequence& sequence, int64_t first, std::byte* to) {
  std::byte numbers[kConvertedAtOnce * sizeof(double)];
  count_doubles(sequence, first, numbers);
  convert<float, double>(numbers, to, 1);
}

void count_halves(const Sequence& sequence, int64_t first, std::byte* to) {
  std::byte numbers[kConvertedAtOnce * sizeof(double)];
  std::byte singles[kConvertedAtOnce * sizeof(float)];
  count_doubles(sequence, first, numbers);
  convert_for_halves<double>(numbers, singles, 1);
  narrow_to_halves(singles, to, 1);
}

Count choose_count(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return count_halves;
    case DataType::kFloat32:
      return count_singles;
    case DataType::kFloat64:
      return count_doubles;
    default:
      break;
  }
  switch (size_of(type)) {
    case 1:
      return count_integers<uint8_t>;
    case 2:
      return count_integers<uint16_t>;
    case 4:
      return count_integers<uint32_t>;
    case 8:
      return count_integers<uint64_t>;
    default:
      return nullptr;
  }
}

class SequencePlan final : public Plan {
 public:
  SequencePlan(const Layout& out, Sequence sequence, Count count, std::string description)
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
  const Count count = choose_count(out.type);
  if (count == nullptr) {
    reason = "no sequence of " + std::string(name_of(out.type));
    return nullptr;
  }
  const Sequence sequence{request.attributes.integer("Start"), request.attributes.integer("Delta")};
  return std::make_unique<SequencePlan>(out, sequence, count,
                                        "sequence of " + std::string(name_of(out.type)));
}

ANYDML_ISA_END
