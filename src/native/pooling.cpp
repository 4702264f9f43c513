// QUANTIZED_LINEAR_AVERAGE_POOLING.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "isa.h"
#include "kernels.h"
#include "layout.h"
#include "memory.h"

ANYDML_ISA_BEGIN
namespace {

// The taps of one window along one dimension.
struct Taps {
  int64_t start;    // bytes from the dimension's first element to the first tap inside the input
  int64_t inside;   // taps inside the input
  int64_t visited;  // those among them that are elements of their own: 1 where the dimension is broadcast
  int64_t counted;  // taps that the average divides by
};

// One spatial dimension.
struct Window {
  int64_t input;
  int64_t output;
  int64_t stride;
  int64_t size;
  int64_t start_padding;
  int64_t end_padding;
  int64_t dilation;
  bool include_padding;
  int64_t in_stride;
  int64_t out_stride;
  int64_t tap_step;

  // Tap k of output o lies at o * stride - start_padding + k * dilation. Sizes, paddings and dilations go up
  // to 2^32 - 1, so the taps inside are found by arithmetic and padding is never walked.
  Taps taps(int64_t o) const {
    const int64_t origin = o * stride - start_padding;
    const int64_t first = taps_before(0 - origin);
    const int64_t inside = taps_before(input - origin) - first;
    // A tap beyond the padded extent, which a ceiling size makes possible, is never counted.
    const int64_t counted = include_padding ? taps_before(input + end_padding - origin) : inside;
    const int64_t start = inside > 0 ? (origin + first * dilation) * in_stride : 0;
    return {start, inside, in_stride == 0 ? std::min<int64_t>(inside, 1) : inside, counted};
  }

 private:
  // How many of the taps lie less than `distance` after the first: min(ceil(distance / dilation), size).
  int64_t taps_before(int64_t distance) const {
    return distance <= 0 ? 0 : std::min((distance - 1) / dilation + 1, size);
  }
};

// A scale or zero point: one value per channel, or one for all, and then the step is 0. An absent one is 0.
struct PerChannel {
  size_t input;
  int64_t step;

  template <class T>
  T at(const void* const* inputs, int64_t channel) const {
    const auto* values = static_cast<const std::byte*>(inputs[input]);
    return values == nullptr ? T{0} : load<T>(values + channel * step);
  }
};

struct Geometry {
  Loop batch;
  Loop channels;
  std::array<Window, 3> windows;  // depth, height, width
  PerChannel input_scale, input_zero_point, output_scale, output_zero_point;
};

struct Quantization {
  double input_scale;
  double output_scale;
  int64_t input_zero_point;
  int64_t output_zero_point;
};

// q = round((sum * input_scale) / (count * output_scale)) + output_zero_point, even at ties, saturated
template <class Out>
Out requantize(int64_t sum, int64_t count, const Quantization& quantization) {
  auto q = static_cast<double>(quantization.output_zero_point);
  if (count > 0) {
    q += std::nearbyint((static_cast<double>(sum) * quantization.input_scale) /
                        (static_cast<double>(count) * quantization.output_scale));
  }
  // A NaN, which no valid scale gives, must not reach the cast: fmax turns it into the lowest.
  constexpr double kLowest = std::numeric_limits<Out>::lowest();
  constexpr double kMax = std::numeric_limits<Out>::max();
  return static_cast<Out>(std::fmin(std::fmax(q, kLowest), kMax));
}

template <class In, class Step>
int64_t sum_run(const std::byte* in, int64_t taps, Step step) {
  int64_t sum = 0;
  for (int64_t k = 0; k < taps; ++k) sum += load<In>(in + k * step);
  return sum;
}

template <class In, class Out>
class AveragePooling final : public Plan {
 public:
  AveragePooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)), geometry_(geometry) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]);
    auto* out = static_cast<std::byte*>(outputs[0]);
    const Geometry& g = geometry_;
    for (int64_t c = 0; c < g.channels.size; ++c) {
      const Quantization quantization{g.input_scale.at<float>(inputs, c), g.output_scale.at<float>(inputs, c),
                                      g.input_zero_point.at<In>(inputs, c),
                                      g.output_zero_point.at<Out>(inputs, c)};
      for (int64_t n = 0; n < g.batch.size; ++n) {
        pool(in + n * g.batch.in + c * g.channels.in, out + n * g.batch.out + c * g.channels.out,
             quantization);
      }
    }
  }

 private:
  void pool(const std::byte* in, std::byte* out, const Quantization& quantization) const {
    const auto& [depth, height, width] = geometry_.windows;
    for (int64_t od = 0; od < depth.output; ++od) {
      const Taps d = depth.taps(od);
      for (int64_t oh = 0; oh < height.output; ++oh) {
        const Taps h = height.taps(oh);
        for (int64_t ow = 0; ow < width.output; ++ow) {
          store(out + od * depth.out_stride + oh * height.out_stride + ow * width.out_stride,
                average(in, d, h, width.taps(ow), quantization));
        }
      }
    }
  }

  // sum of (x - zero point) = sum of x - taps inside * zero point: a tap on padding is a real 0 and adds
  // none.
  Out average(const std::byte* in, const Taps& d, const Taps& h, const Taps& w,
              const Quantization& quantization) const {
    const int64_t inside = d.inside * h.inside * w.inside;
    const int64_t visited = d.visited * h.visited * w.visited;
    // Every element visited stands for equally many taps.
    const int64_t raw_sum = inside > 0 ? sum_window(in, d, h, w) * (inside / visited) : 0;
    return requantize<Out>(raw_sum - inside * quantization.input_zero_point,
                           d.counted * h.counted * w.counted, quantization);
  }

  int64_t sum_window(const std::byte* in, const Taps& d, const Taps& h, const Taps& w) const {
    const auto& [depth, height, width] = geometry_.windows;
    int64_t sum = 0;
    for (int64_t kd = 0; kd < d.visited; ++kd) {
      for (int64_t kh = 0; kh < h.visited; ++kh) {
        const std::byte* row = in + d.start + h.start + w.start + kd * depth.tap_step + kh * height.tap_step;
        sum += width.tap_step == 1 ? sum_run<In>(row, w.visited, std::integral_constant<int64_t, 1>{})
                                   : sum_run<In>(row, w.visited, width.tap_step);
      }
    }
    return sum;
  }

  Geometry geometry_;
};

constexpr Window kUnitWindow{.input = 1,
                             .output = 1,
                             .stride = 1,
                             .size = 1,
                             .start_padding = 0,
                             .end_padding = 0,
                             .dilation = 1,
                             .include_padding = false,
                             .in_stride = 0,
                             .out_stride = 0,
                             .tap_step = 0};

int64_t checked(int64_t value, int64_t lowest) {
  require(lowest <= value && value <= std::numeric_limits<uint32_t>::max(),
          "a pooling attribute is out of range");
  return value;
}

Window window_of(const Request& request, size_t spatial) {
  const Layout& in = request.inputs[0];
  const Layout& out = request.outputs[0];
  const size_t d = spatial + 2;
  const auto attribute = [&](size_t index, int64_t lowest) {
    return checked(request.attributes.at(index).at(spatial), lowest);
  };
  Window window{.input = in.sizes[d],
                .output = out.sizes[d],
                .stride = attribute(0, 1),
                .size = attribute(1, 1),
                .start_padding = attribute(2, 0),
                .end_padding = attribute(3, 0),
                .dilation = attribute(4, 1),
                .include_padding = request.attributes.at(5).at(0) != 0,
                .in_stride = in.strides[d],
                .out_stride = out.strides[d],
                .tap_step = 0};
  // A step is taken only between two taps inside; where there cannot be two, it might overflow.
  if (window.dilation < window.input) window.tap_step = window.dilation * window.in_stride;
  const int64_t padded = window.start_padding + window.input + window.end_padding;
  require(window.output - 2 <= padded / window.stride, "a window starts beyond the padded input");
  return window;
}

PerChannel per_channel(const Request& request, size_t input, DataType type) {
  const Layout& layout = request.inputs.at(input);
  if (!layout.present) return {input, 0};
  const int64_t channels = request.inputs[0].sizes[1];
  require(layout.type == type, "the type of a scale or zero point is wrong");
  require(layout.sizes.at(1) == 1 || layout.sizes[1] == channels, "a scale or zero point is not per channel");
  return {input, layout.sizes[1] == 1 ? 0 : layout.strides[1]};
}

Geometry geometry_of(const Request& request) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  const size_t rank = in.sizes.size();
  require(rank == 4 || rank == 5, "pooling takes 4 or 5 dimensions");
  require(out.sizes.size() == rank && in.sizes[0] == out.sizes[0] && in.sizes[1] == out.sizes[1],
          "the sizes of input and output differ");
  tensor(request.inputs, 1);
  tensor(request.inputs, 3);
  const bool deep = rank == 5;
  return {.batch = {in.sizes[0], in.strides[0], out.strides[0]},
          .channels = {in.sizes[1], in.strides[1], out.strides[1]},
          .windows = {deep ? window_of(request, 0) : kUnitWindow, window_of(request, deep ? 1 : 0),
                      window_of(request, deep ? 2 : 1)},
          .input_scale = per_channel(request, 1, DataType::kFloat32),
          .input_zero_point = per_channel(request, 2, in.type),
          .output_scale = per_channel(request, 3, DataType::kFloat32),
          .output_zero_point = per_channel(request, 4, out.type)};
}

// Windows of so few taps that a sum of bytes over them fits 64 bits, and is exact in a double.
constexpr int64_t kMostTaps = int64_t{1} << 45;

bool countable(const std::array<Window, 3>& windows) {
  int64_t taps = 1;
  for (const Window& window : windows) {
    if (taps > kMostTaps / window.size) return false;
    taps *= window.size;
  }
  return true;
}

std::string describe(const Request& request) {
  std::string window;
  for (const int64_t size : request.attributes[1]) {
    if (!window.empty()) window += 'x';
    window += std::to_string(size);
  }
  return "average pooling " + std::string(name_of(request.inputs[0].type)) + " to " +
         std::string(name_of(request.outputs[0].type)) + ", window of " + window;
}

template <class In>
std::unique_ptr<Plan> make_pooling(const Geometry& geometry, DataType out, std::string description) {
  if (out == DataType::kInt8) {
    return std::make_unique<AveragePooling<In, int8_t>>(geometry, std::move(description));
  }
  return std::make_unique<AveragePooling<In, uint8_t>>(geometry, std::move(description));
}

bool is_byte(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

}  // namespace

std::unique_ptr<Plan> make_quantized_linear_average_pooling(const Request& request, std::string& reason) {
  const Geometry geometry = geometry_of(request);
  const DataType in = request.inputs[0].type;
  const DataType out = request.outputs[0].type;
  if (!is_byte(in) || !is_byte(out)) {
    reason = "no pooling of " + std::string(name_of(in)) + " to " + std::string(name_of(out));
    return nullptr;
  }
  if (!countable(geometry.windows)) {
    reason = "a window has more than 2^45 taps";
    return nullptr;
  }
  if (in == DataType::kInt8) return make_pooling<int8_t>(geometry, out, describe(request));
  return make_pooling<uint8_t>(geometry, out, describe(request));
}

ANYDML_ISA_END
