// ROI_ALIGN and ROI_ALIGN1. Averages are separable: the weights of all samples of an element of the output
// are sums over rows times sums over columns, so that a row of the output is a weighted sum of rows of the
// input, and then of its columns. How many samples there are costs no time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "roi/samples.h"
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
  double total = 0;              // samples of an element of the output
  std::vector<float> elements;   // those under the region, row by row
  std::vector<double> weighted;  // a row of sums of them
};

// An element of the output, of what its samples inside the input sum up to.
ANYDML_INLINE double average(const Shape& shape, const State& state, double sum, int64_t i, int64_t j) {
  const double outside =
      state.total - static_cast<double>(state.rows.inside(i)) * static_cast<double>(state.columns.inside(j));
  return (outside > 0 ? sum + outside * shape.outside : sum) / state.total;
}

template <class T>
void average_rows(const Shape& shape, State& state, const Plane& plane, std::byte* out) {
  const int64_t top = state.rows.lowest();
  const int64_t left = state.columns.lowest();
  const int64_t height = state.rows.highest() - top + 1;
  const int64_t width = state.columns.highest() - left + 1;
  // Wide regions of few samples are made of single elements.
  const bool is_dense =
      width > 0 && height > 0 && width <= 2 * state.columns.count() && height <= 2 * state.rows.count();
  if (is_dense) {
    state.elements.resize(static_cast<size_t>(height * width));
    state.weighted.resize(static_cast<size_t>(width));
    for (int64_t i = 0; i < height; ++i) {
      load_row<T>(plane.at(top + i, left), plane.column, width, state.elements.data() + i * width);
    }
  }
  for (int64_t i = 0; i < shape.down.outputs; ++i) {
    std::byte* const row_of_out = out + i * shape.out_steps[2];
    if (!is_dense) {
      for (int64_t j = 0; j < shape.across.outputs; ++j) {
        const double sum = weighted_at<T>(plane, state.rows, i, state.columns, j);
        store_number<T>(row_of_out + j * shape.out_steps[3], average(shape, state, sum, i, j));
      }
      continue;
    }
    double* const weighted = state.weighted.data();
    std::fill(state.weighted.begin(), state.weighted.end(), 0.0);
    for (const Tap* tap = state.rows.begin(i); tap != state.rows.end(i); ++tap) {
      const float* const from = state.elements.data() + (tap->index - top) * width;
      const double weight = tap->weight;
      if (tap == state.rows.begin(i)) {
        for (int64_t j = 0; j < width; ++j) weighted[j] = static_cast<double>(from[j]) * weight;
      } else {
        for (int64_t j = 0; j < width; ++j) weighted[j] += static_cast<double>(from[j]) * weight;
      }
    }
    for (int64_t j = 0; j < shape.across.outputs; ++j) {
      double sum = 0;
      const Tap* const begin = state.columns.begin(j);
      const Tap* const end = state.columns.end(j);
      if (begin != end) sum = weighted[begin->index - left] * begin->weight;
      for (const Tap* tap = begin; tap != end && ++tap != end;) {
        sum += weighted[tap->index - left] * tap->weight;
      }
      store_number<T>(row_of_out + j * shape.out_steps[3], average(shape, state, sum, i, j));
    }
  }
}

template <class T>
void largest_rows(const Shape& shape, const State& state, const Plane& plane, std::byte* out) {
  for (int64_t i = 0; i < shape.down.outputs; ++i) {
    for (int64_t j = 0; j < shape.across.outputs; ++j) {
      const Largest best = largest_of<T>(plane, state.row_samples, i, state.column_samples, j);
      double value = best.value;
      const auto inside = static_cast<double>(state.row_samples.end(i) - state.row_samples.begin(i)) *
                          static_cast<double>(state.column_samples.end(j) - state.column_samples.begin(j));
      if (best.row == nullptr || (state.total > inside && exceeds(shape.outside, value))) {
        value = shape.outside;
      }
      store_number<T>(out + i * shape.out_steps[2] + j * shape.out_steps[3], value);
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
    } else {
      state.rows.assign(shape_.down, down, weights_of);
      state.columns.assign(shape_.across, across, weights_of);
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
