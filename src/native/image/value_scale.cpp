// VALUE_SCALE_2D: y = scale * x + bias[channel], in double precision and rounded once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/eight.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

// Elements of a row that are computed together.
constexpr int64_t kPart = 1024;

template <class T>
ANYDML_INLINE void scale_one(const std::byte* from, std::byte* to, double scale, double bias) {
  const double y = static_cast<double>(static_cast<float>(load<T>(from))) * scale + bias;
  if constexpr (std::is_same_v<T, Half>) {
    store(to, static_cast<Half>(single_for_half(y)));
  } else {
    store(to, static_cast<T>(y));
  }
}

// The product of two singles is exact in doubles, so that it is all the same whether it is fused with the
// sum.
ANYDML_INLINE Eight scaled(Eight x, Eight scale, Eight bias) {
#if defined(ANYDML_ISA_AVX512)
  return (Eight)_mm512_fmadd_pd((__m512d)x, (__m512d)scale, (__m512d)bias);
#else
  return x * scale + bias;
#endif
}

template <class T>
void scale_row(const std::byte* from, int64_t in, std::byte* to, int64_t out, int64_t count, double scale,
               double bias) {
  constexpr int64_t kItem = sizeof(T);
  if (in != kItem || out != kItem) {
    for (int64_t i = 0; i < count; ++i) scale_one<T>(from + i * in, to + i * out, scale, bias);
    return;
  }
  int64_t first = 0;
  const Eight scales = all_eight(scale);
  const Eight biases = all_eight(bias);
  for (; first + kEight <= count; first += kEight) {
    narrow_eight<T>(to + first * kItem, scaled(widen_eight<T>(from + first * kItem), scales, biases));
  }
  for (int64_t i = first; i < count; ++i) scale_one<T>(from + i * kItem, to + i * kItem, scale, bias);
}

template <class T>
class ValueScalePlan final : public Plan {
 public:
  ValueScalePlan(std::vector<Loop> rows, Loop row, double scale, std::vector<double> bias,
                 std::string description)
      : Plan(std::move(description)),
        rows_(std::move(rows)),
        row_(row),
        per_row_(divided_up(row.size, kPart)),
        scale_(scale),
        bias_(std::move(bias)) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t parts = steps_of(rows_) * per_row_;
    const int64_t bytes = 2 * steps_of(rows_) * row_.size * kItem;
    const int threads = threads_for(bytes);
    const int64_t calls = std::min(calls_for(bytes, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      LoopCursor cursor(rows_, number / per_row_);
      StagedWriter staged(row_.out == kItem && bytes / 2 >= kStreamFrom);
      for (int64_t of_row = number % per_row_; number < end; ++number) {
        const int64_t first = of_row * kPart;
        const int64_t count = std::min(kPart, row_.size - first);
        std::byte* const to = out + cursor.out() + first * row_.out;
        scale_row<T>(in + cursor.in() + first * row_.in, row_.in,
                     row_.out == kItem ? staged.reserve(to, count * kItem) : to, row_.out, count, scale_,
                     bias_[static_cast<size_t>(cursor.index(1))]);
        if (++of_row == per_row_) {
          of_row = 0;
          cursor.advance();
        }
      }
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

  std::vector<Loop> rows_;  // over images, channels, and what their elements are not folded into
  Loop row_;
  int64_t per_row_;  // parts
  double scale_;
  std::vector<double> bias_;
};

}  // namespace

std::unique_ptr<Plan> make_value_scale_2d(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  require(in.sizes.size() == 4 && in.sizes == out.sizes && in.type == out.type, "the tensors differ");
  std::vector<Loop> loops = loops_over(in, out);
  std::vector<Loop> rows(loops.begin(), loops.begin() + 2);
  std::vector<Loop> planes = fold({loops.begin() + 2, loops.end()});
  const Loop row = take_innermost(planes);
  rows.insert(rows.end(), planes.begin(), planes.end());
  const double scale = request.attributes.real("Scale");
  std::vector<double> bias = request.attributes.reals("Bias");
  require(static_cast<int64_t>(bias.size()) == in.sizes[1], "the channels");
  const std::string description = "scale and bias of channels of " + std::string(name_of(in.type));
  if (in.type == DataType::kFloat32) {
    return std::make_unique<ValueScalePlan<float>>(std::move(rows), row, scale, std::move(bias), description);
  }
  if (in.type == DataType::kFloat16) {
    return std::make_unique<ValueScalePlan<Half>>(std::move(rows), row, scale, std::move(bias), description);
  }
  reason = "no channels of " + std::string(name_of(in.type));
  return nullptr;
}

ANYDML_ISA_END
