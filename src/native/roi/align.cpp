// ROI_ALIGN and ROI_ALIGN1. Averages are separable: the weights of all samples of an element of the output
// are sums over rows times sums over columns, so that a row of the output is a weighted sum of rows of the
// input, and then of its columns. How many samples there are costs no time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "roi/eight_outputs.h"
#include "roi/samples.h"
#include "simd/eight.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kMax = 7;  // of DML_REDUCE_FUNCTION; the other one is the average
// What an element of the output is worth in bytes that are copied.
constexpr int64_t kBytesOfOutput = 64;

struct Shape {
  Sampling down;
  Sampling across;
  int64_t channels;
  int64_t in_steps[4];   // images, channels, rows, columns
  int64_t out_steps[4];  // regions, channels, rows, columns
  double outside;        // OutOfBoundsInputValue
  bool is_largest;
};

// What a thread works on: a region, and one of its channels after the other.
struct State {
  Taps rows;
  Taps columns;
  Samples row_samples;
  Samples column_samples;
  EightOutputs eight;  // by columns
  double total = 0;    // samples of an element of the output
  bool is_dense = false;
  Patch patch;
  std::vector<double> sums;  // of its rows
  LargestOfRow largest;
};

// An element of the output, of what its samples inside the input sum up to.
ANYDML_INLINE double average(const Shape& shape, const State& state, double sum, int64_t i, int64_t j) {
  const double outside =
      state.total - static_cast<double>(state.rows.inside(i)) * static_cast<double>(state.columns.inside(j));
  return (outside > 0 ? sum + outside * shape.outside : sum) / state.total;
}

// The same of eight that follow each other.
ANYDML_INLINE Eight average_eight(const Shape& shape, const State& state, Eight sum, int64_t i, int64_t b) {
  const double rows = -static_cast<double>(state.rows.inside(i));
  const Eight outside = all_eight(state.total) + all_eight(rows) * state.eight.inside(b);
  const Eight all = where_larger(outside, Eight{}, sum + outside * all_eight(shape.outside), sum);
  return all / all_eight(state.total);
}

template <class T>
void average_rows(const Shape& shape, State& state, const Plane& plane, std::byte* out) {
  const Taps& rows = state.rows;
  const Taps& columns = state.columns;
  const int64_t outputs = shape.across.outputs;
  const int64_t step = shape.out_steps[3];
  Patch& patch = state.patch;
  if (state.is_dense) {
    patch.assign<T>(plane, rows.lowest(), rows.highest(), columns.lowest(), columns.highest());
  }
  for (int64_t i = 0; i < shape.down.outputs; ++i, out += shape.out_steps[2]) {
    if (state.is_dense) {
      patch.weigh_rows(rows.begin(i), rows.end(i), state.sums);
      for (int64_t j = 0; j < outputs; j += kEight) {
        const Eight sum = state.eight.sum(j / kEight, state.sums.data());
        store_results<T>(out + j * step, step, std::min(kEight, outputs - j),
                         average_eight(shape, state, sum, i, j / kEight));
      }
      continue;
    }
    for (int64_t j = 0; j < outputs; ++j) {
      const double sum = weighted_at<T>(plane, rows, i, columns, j);
      store_number<T>(out + j * step, average(shape, state, sum, i, j));
    }
  }
}

template <class T>
void largest_rows(const Shape& shape, State& state, const Plane& plane, std::byte* out) {
  const Samples& rows = state.row_samples;
  const Samples& columns = state.column_samples;
  if (state.is_dense) {
    state.patch.assign<T>(plane, rows.lowest(), rows.highest(), columns.lowest(), columns.highest());
  }
  for (int64_t i = 0; i < shape.down.outputs; ++i, out += shape.out_steps[2]) {
    state.largest.find<T>(plane, rows, i, columns, state.eight, state.patch, state.is_dense,
                          shape.across.outputs);
    for (int64_t j = 0; j < shape.across.outputs; ++j) {
      const int64_t pairs = (rows.end(i) - rows.begin(i)) * (columns.end(j) - columns.begin(j));
      double value = shape.outside;
      if (pairs > 0) {
        const double best = state.largest.of(j).value;
        const bool is_outside = state.total > static_cast<double>(pairs) && exceeds(shape.outside, best);
        value = is_outside ? shape.outside : best;
        if (value != value) value = std::numeric_limits<double>::quiet_NaN();
      }
      store_number<T>(out + j * shape.out_steps[3], value);
    }
  }
}

template <class T>
class AlignPlan final : public Plan {
 public:
  AlignPlan(const Shape& shape, const Regions& regions, std::string description)
      : Plan(std::move(description)), shape_(shape), regions_(regions) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    const auto* const rois = static_cast<const std::byte*>(inputs[1]);
    const auto* const indices = static_cast<const std::byte*>(inputs[2]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t planes = regions_.count * shape_.channels;
    const int64_t bytes = planes * shape_.down.outputs * shape_.across.outputs * kBytesOfOutput;
    const int threads = threads_for(bytes);
    const int64_t calls = std::min(calls_for(bytes, threads), planes);
    parallel_for(calls, threads, [&](int64_t call) {
      State state;
      int64_t known = -1;
      Plane plane{in, shape_.in_steps[2], shape_.in_steps[3]};
      int64_t image = 0;
      const int64_t end = share_begin(call + 1, calls, planes);
      for (int64_t number = share_begin(call, calls, planes); number < end; ++number) {
        const int64_t r = number / shape_.channels;
        const int64_t channel = number % shape_.channels;
        if (r != known) {
          known = r;
          const Region<T> region(regions_, r, rois, indices);
          image = region.is_there ? region.image : 0;
          prepare(region, state);
        }
        plane.first = in + image * shape_.in_steps[0] + channel * shape_.in_steps[1];
        std::byte* const to = out + r * shape_.out_steps[0] + channel * shape_.out_steps[1];
        if (shape_.is_largest) {
          largest_rows<T>(shape_, state, plane, to);
        } else {
          average_rows<T>(shape_, state, plane, to);
        }
      }
    });
  }

 private:
  void prepare(const Region<T>& region, State& state) const {
    const Line down = region.down(shape_.down);
    const Line across = region.across(shape_.across);
    state.total = down.number() * across.number();
    if (shape_.is_largest) {
      state.row_samples.assign(shape_.down, down);
      state.column_samples.assign(shape_.across, across);
      state.is_dense = are_dense(state.row_samples, state.column_samples);
      if (state.is_dense) state.eight.assign(state.column_samples, shape_.across.outputs);
    } else {
      state.rows.assign(shape_.down, down, weights_of);
      state.columns.assign(shape_.across, across, weights_of);
      // Wide regions of few samples are made of single elements.
      state.is_dense = are_dense(state.rows, state.columns);
      if (state.is_dense) state.eight.assign(state.columns, shape_.across.outputs);
    }
  }

  Shape shape_;
  Regions regions_;
};

}  // namespace

std::unique_ptr<Plan> make_roi_align(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& rois = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  const Attributes& attributes = request.attributes;
  require(in.sizes.size() == 4 && out.sizes.size() == 4, "four dimensions");
  require(in.type == rois.type && in.type == out.type, "the types differ");
  const Regions regions = regions_of(rois, tensor(request.inputs, 2), in.sizes[0]);
  require(out.sizes[0] == regions.count && out.sizes[1] == in.sizes[1], "the sizes differ");
  Shape shape{sampling_of(attributes, 'Y', in.sizes[2], out.sizes[2]),
              sampling_of(attributes, 'X', in.sizes[3], out.sizes[3]),
              in.sizes[1],
              {},
              {},
              attributes.real("OutOfBoundsInputValue"),
              attributes.integer("ReductionFunction") == kMax};
  std::copy_n(in.strides.begin(), 4, shape.in_steps);
  std::copy_n(out.strides.begin(), 4, shape.out_steps);
  const std::string description = std::string(shape.is_largest ? "maxima" : "averages") + " of samples of " +
                                  std::string(name_of(in.type));
  if (in.type == DataType::kFloat32) return std::make_unique<AlignPlan<float>>(shape, regions, description);
  if (in.type == DataType::kFloat16) return std::make_unique<AlignPlan<Half>>(shape, regions, description);
  reason = "no samples of " + std::string(name_of(in.type));
  return nullptr;
}

ANYDML_ISA_END
