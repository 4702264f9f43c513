// ROI_ALIGN_GRAD. The gradients of an image are a gather: each plane adds up what regions give to it, one
// after the other, so that threads share planes and bits depend on nothing else. Those of a region are sums
// over its channels.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
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
// Planes of channels that share the weights of regions: as many as stay in a cache, and not more than these.
constexpr int64_t kBytesOfPlanes = 512 << 10;
constexpr int64_t kMostPlanes = 16;

struct Shape {
  Sampling down;
  Sampling across;
  int64_t channels;
  int64_t in_steps[4];     // of InputTensor: images, channels, rows, columns
  int64_t given_steps[4];  // of InputGradientTensor: regions, channels, rows, columns
  int64_t out_steps[4];    // of OutputGradientTensor, as of InputTensor
  int64_t region_steps[2];
  bool is_largest;
  bool is_linear;
};

struct State {
  Taps rows;
  Taps columns;
  Samples row_samples;
  Samples column_samples;
  EightOutputs eight;  // by columns
  LargestOfRow largest;
  double total = 0;  // samples of an element of the output
  bool is_dense = false;
  Patch patch;
  std::vector<double> planes;         // of an image's channels, and a vector more
  std::vector<float> given;           // a row of gradients
  std::vector<double> row;            // what a row of gradients gives to columns
  std::vector<int64_t> used_columns;  // where there are few
};

template <class T>
class AlignGradPlan final : public Plan {
 public:
  AlignGradPlan(const Shape& shape, const Regions& regions, std::string description)
      : Plan(std::move(description)), shape_(shape), regions_(regions) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    const auto* const given = static_cast<const std::byte*>(inputs[1]);
    const auto* const rois = static_cast<const std::byte*>(inputs[2]);
    const auto* const indices = static_cast<const std::byte*>(inputs[3]);
    if (outputs[0] != nullptr) of_images({in, given, rois, indices}, static_cast<std::byte*>(outputs[0]));
    if (outputs[1] != nullptr) of_regions({in, given, rois, indices}, static_cast<std::byte*>(outputs[1]));
  }

 private:
  struct Inputs {
    const std::byte* in;
    const std::byte* given;
    const std::byte* rois;
    const std::byte* indices;
  };

  int64_t bytes_of_gradients() const {
    return regions_.count * shape_.channels * shape_.down.outputs * shape_.across.outputs * kBytesOfOutput;
  }

  Plane plane_of(const std::byte* in, int64_t image, int64_t channel) const {
    return {in + image * shape_.in_steps[0] + channel * shape_.in_steps[1], shape_.in_steps[2],
            shape_.in_steps[3]};
  }

  // A row of gradients, as floats.
  void load_given(const std::byte* given, int64_t r, int64_t channel, int64_t i, State& state) const {
    state.given.resize(static_cast<size_t>(shape_.across.outputs));
    load_row<T>(
        given + r * shape_.given_steps[0] + channel * shape_.given_steps[1] + i * shape_.given_steps[2],
        shape_.given_steps[3], shape_.across.outputs, state.given.data());
  }

  // The regions of an image one after the other, and of each the channels of a part.
  void of_images(const Inputs& inputs, std::byte* out) const {
    const int64_t elements = shape_.down.size * shape_.across.size;
    const int64_t per_part =
        std::clamp<int64_t>(kBytesOfPlanes / (elements * 8), 1, std::min(kMostPlanes, shape_.channels));
    const int64_t parts = divided_up(shape_.channels, per_part);
    const int64_t bytes =
        bytes_of_gradients() + regions_.images * shape_.channels * elements * static_cast<int64_t>(sizeof(T));
    const int threads = threads_for(bytes);
    parallel_for(regions_.images * parts, threads, [&](int64_t part) {
      const int64_t image = part / parts;
      const int64_t begin = part % parts * per_part;
      const int64_t end = std::min(begin + per_part, shape_.channels);
      State state;
      state.planes.assign(static_cast<size_t>((end - begin) * elements + kEight), 0.0);
      for (int64_t r = 0; r < regions_.count; ++r) {
        const Region<T> region(regions_, r, inputs.rois, inputs.indices);
        if (region.image != image) continue;
        prepare(region, state);
        for (int64_t channel = begin; channel < end; ++channel) {
          double* const plane = state.planes.data() + (channel - begin) * elements;
          if (shape_.is_largest) {
            spread_largest(state, inputs, image, r, channel, plane);
          } else {
            spread_average(state, inputs.given, r, channel, plane);
          }
        }
      }
      for (int64_t channel = begin; channel < end; ++channel) {
        const double* from = state.planes.data() + (channel - begin) * elements;
        std::byte* const to = out + image * shape_.out_steps[0] + channel * shape_.out_steps[1];
        for (int64_t i = 0; i < shape_.down.size; ++i, from += shape_.across.size) {
          store_row(from, to + i * shape_.out_steps[2]);
        }
      }
    });
  }

  void store_row(const double* from, std::byte* to) const {
    const int64_t count = shape_.across.size;
    const int64_t step = shape_.out_steps[3];
    for (int64_t j = 0; j < count; j += kEight) {
      store_results<T>(to + j * step, step, std::min(kEight, count - j), load_eight(from + j));
    }
  }

  void prepare(const Region<T>& region, State& state) const {
    const Line down = region.down(shape_.down);
    const Line across = region.across(shape_.across);
    state.total = down.number() * across.number();
    if (shape_.is_largest) {
      state.row_samples.assign(shape_.down, down);
      state.column_samples.assign(shape_.across, across);
      state.is_dense = are_dense(state.row_samples, state.column_samples);
      if (state.is_dense) state.eight.assign(state.column_samples, shape_.across.outputs);
      return;
    }
    state.rows.assign(shape_.down, down, weights_of);
    state.columns.assign(shape_.across, across, weights_of);
    state.row.assign(static_cast<size_t>(shape_.across.size), 0.0);
    state.used_columns.clear();
    if (state.columns.highest() - state.columns.lowest() < 2 * state.columns.count()) return;
    const Tap* const last = state.columns.end(shape_.across.outputs - 1);
    for (const Tap* tap = state.columns.begin(0); tap != last; ++tap)
      state.used_columns.push_back(tap->index);
    std::sort(state.used_columns.begin(), state.used_columns.end());
    const auto end = std::unique(state.used_columns.begin(), state.used_columns.end());
    state.used_columns.erase(end, state.used_columns.end());
  }

  // Rows of gradients are spread over columns, and then over rows of the plane.
  void spread_average(State& state, const std::byte* given, int64_t r, int64_t channel, double* plane) const {
    double* const row = state.row.data();
    const int64_t left = state.columns.lowest();
    const int64_t right = state.columns.highest();
    for (int64_t i = 0; i < shape_.down.outputs; ++i) {
      if (state.rows.begin(i) == state.rows.end(i)) continue;
      for (int64_t j = left; j <= right; ++j) row[j] = 0;
      load_given(given, r, channel, i, state);
      for (int64_t j = 0; j < shape_.across.outputs; ++j) {
        const double gradient = static_cast<double>(state.given[static_cast<size_t>(j)]) / state.total;
        const Tap* const end = state.columns.end(j);
        for (const Tap* tap = state.columns.begin(j); tap != end; ++tap) {
          row[tap->index] += tap->weight * gradient;
        }
      }
      for (const Tap* tap = state.rows.begin(i); tap != state.rows.end(i); ++tap) {
        double* const to = plane + tap->index * shape_.across.size;
        const double weight = tap->weight;
        if (state.used_columns.empty()) {
          for (int64_t j = left; j <= right; ++j) to[j] += weight * row[j];
        } else {
          for (const int64_t j : state.used_columns) to[j] += weight * row[j];
        }
      }
    }
  }

  // Calls visit(largest, gradient) for the outputs of a plane of which samples are inside the input.
  template <class Visit>
  void for_largest(State& state, const Inputs& inputs, int64_t image, int64_t r, int64_t channel,
                   const Visit& visit) const {
    const Plane plane = plane_of(inputs.in, image, channel);
    const Samples& rows = state.row_samples;
    const Samples& columns = state.column_samples;
    if (state.is_dense) {
      state.patch.assign<T>(plane, rows.lowest(), rows.highest(), columns.lowest(), columns.highest());
    }
    for (int64_t i = 0; i < shape_.down.outputs; ++i) {
      state.largest.find<T>(plane, rows, i, columns, state.eight, state.patch, state.is_dense,
                            shape_.across.outputs);
      load_given(inputs.given, r, channel, i, state);
      for (int64_t j = 0; j < shape_.across.outputs; ++j) {
        const Largest& best = state.largest.of(j);
        if (best.row != nullptr) visit(best, static_cast<double>(state.given[static_cast<size_t>(j)]));
      }
    }
  }

  void spread_largest(State& state, const Inputs& inputs, int64_t image, int64_t r, int64_t channel,
                      double* plane) const {
    for_largest(state, inputs, image, r, channel, [&](const Largest& best, double gradient) {
      for (int64_t below = 0; below <= (best.row->share != 0 ? 1 : 0); ++below) {
        const double by_row = below != 0 ? best.row->share : 1 - best.row->share;
        double* const to = plane + (best.row->low + below) * shape_.across.size + best.column->low;
        to[0] += by_row * ((1 - best.column->share) * gradient);
        if (best.column->share != 0) to[1] += by_row * (best.column->share * gradient);
      }
    });
  }

  void of_regions(const Inputs& inputs, std::byte* out) const {
    const int64_t bytes = 4 * bytes_of_gradients();
    const int threads = threads_for(bytes);
    const int64_t calls = std::min(calls_for(bytes, threads), regions_.count);
    parallel_for(calls, threads, [&](int64_t call) {
      State state;
      Slopes slopes;
      const int64_t end = share_begin(call + 1, calls, regions_.count);
      for (int64_t r = share_begin(call, calls, regions_.count); r < end; ++r) {
        const Region<T> region(regions_, r, inputs.rois, inputs.indices);
        double sums[4]{};
        if (shape_.is_linear && region.is_there) {
          prepare(region, state);
          if (shape_.is_largest) {
            add_largest(state, inputs, region.image, r, sums);
          } else {
            slopes.assign(shape_, region);
            add_average(state, slopes, inputs, region.image, r, sums);
          }
        }
        for (int64_t k = 0; k < 4; ++k) {
          const double scale = k % 2 == 0 ? shape_.across.scale : shape_.down.scale;
          store_number<T>(out + r * shape_.region_steps[0] + k * shape_.region_steps[1],
                          shape_.is_linear ? sums[k] * scale : 0);
        }
      }
    });
  }

  // The derivatives of weights by the ends of a region. A sample that lies on an element has none.
  struct Slopes {
    Taps left;
    Taps top;
    Taps right;
    Taps bottom;
    // A row of sums of rows by each.
    std::vector<double> of_rows;
    std::vector<double> of_top;
    std::vector<double> of_bottom;

    void assign(const Shape& shape, const Region<T>& region) {
      const auto first = [](const Sample& sample) -> Given {
        return sample.share > 0 ? Given{-(1 - sample.along), 1 - sample.along} : Given{0, 0};
      };
      const auto last = [](const Sample& sample) -> Given {
        return sample.share > 0 ? Given{-sample.along, sample.along} : Given{0, 0};
      };
      const Line across = region.across(shape.across);
      const Line down = region.down(shape.down);
      left.assign(shape.across, across, first);
      right.assign(shape.across, across, last);
      top.assign(shape.down, down, first);
      bottom.assign(shape.down, down, last);
    }
  };

  void add_average(State& state, Slopes& slopes, const Inputs& inputs, int64_t image, int64_t r,
                   double* sums) const {
    const Taps& rows = state.rows;
    const Taps& columns = state.columns;
    const bool is_dense = are_dense(rows, columns);
    Patch& patch = state.patch;
    for (int64_t channel = 0; channel < shape_.channels; ++channel) {
      const Plane plane = plane_of(inputs.in, image, channel);
      if (is_dense) {
        patch.assign<T>(plane, rows.lowest(), rows.highest(), columns.lowest(), columns.highest());
      }
      for (int64_t i = 0; i < shape_.down.outputs; ++i) {
        if (is_dense) {
          patch.weigh_rows(rows.begin(i), rows.end(i), slopes.of_rows);
          patch.weigh_rows(slopes.top.begin(i), slopes.top.end(i), slopes.of_top);
          patch.weigh_rows(slopes.bottom.begin(i), slopes.bottom.end(i), slopes.of_bottom);
        }
        load_given(inputs.given, r, channel, i, state);
        for (int64_t j = 0; j < shape_.across.outputs; ++j) {
          const double gradient = static_cast<double>(state.given[static_cast<size_t>(j)]) / state.total;
          const auto add = [&](double& sum, const Taps& down, const std::vector<double>& weighed,
                               const Taps& across) {
            sum += gradient * (is_dense ? patch.weigh_columns(across.begin(j), across.end(j), weighed)
                                        : weighted_at<T>(plane, down, i, across, j));
          };
          add(sums[0], rows, slopes.of_rows, slopes.left);
          add(sums[1], slopes.top, slopes.of_top, columns);
          add(sums[2], rows, slopes.of_rows, slopes.right);
          add(sums[3], slopes.bottom, slopes.of_bottom, columns);
        }
      }
    }
  }

  void add_largest(State& state, const Inputs& inputs, int64_t image, int64_t r, double* sums) const {
    for (int64_t channel = 0; channel < shape_.channels; ++channel) {
      const Plane plane = plane_of(inputs.in, image, channel);
      for_largest(state, inputs, image, r, channel, [&](const Largest& best, double gradient) {
        const Sample row = *best.row;
        const Sample column = *best.column;
        const auto element = [&](int64_t m, int64_t n) {
          return load_number<T>(plane.at(row.low + m, column.low + n));
        };
        if (column.share > 0) {
          double slope = (1 - row.share) * (element(0, 1) - element(0, 0));
          if (row.share > 0) slope += row.share * (element(1, 1) - element(1, 0));
          sums[0] += (1 - column.along) * (slope * gradient);
          sums[2] += column.along * (slope * gradient);
        }
        if (row.share > 0) {
          double slope = (1 - column.share) * (element(1, 0) - element(0, 0));
          if (column.share > 0) slope += column.share * (element(1, 1) - element(0, 1));
          sums[1] += (1 - row.along) * (slope * gradient);
          sums[3] += row.along * (slope * gradient);
        }
      });
    }
  }

  Shape shape_;
  Regions regions_;
};

}  // namespace

std::unique_ptr<Plan> make_roi_align_grad(const Request& request, std::string& reason) {
  const Layout& given = tensor(request.inputs, 1);
  const Layout& rois = tensor(request.inputs, 2);
  const Layout& in = request.inputs.at(0);
  const Layout& of_images = request.outputs.at(0);
  const Layout& of_regions = request.outputs.at(1);
  const Attributes& attributes = request.attributes;
  const bool is_largest = attributes.integer("ReductionFunction") == kMax;
  require(of_images.present || of_regions.present, "no output");
  require(in.present || (!is_largest && !of_regions.present), "no input");
  const Layout& image = in.present ? in : of_images;
  require(image.sizes.size() == 4 && given.sizes.size() == 4, "four dimensions");
  const Regions regions = regions_of(rois, tensor(request.inputs, 3), image.sizes[0]);
  require(given.sizes[0] == regions.count && given.sizes[1] == image.sizes[1], "the sizes differ");
  Shape shape{sampling_of(attributes, 'Y', image.sizes[2], given.sizes[2]),
              sampling_of(attributes, 'X', image.sizes[3], given.sizes[3]),
              image.sizes[1],
              {},
              {},
              {},
              {},
              is_largest,
              attributes.integer("InterpolationMode") == 1};
  std::copy_n(given.strides.begin(), 4, shape.given_steps);
  for (const Layout* each : {&rois, &in, &of_images, &of_regions}) {
    require(!each->present || each->type == given.type, "the types differ");
  }
  if (in.present) std::copy_n(in.strides.begin(), 4, shape.in_steps);
  if (of_images.present) {
    require(of_images.sizes == image.sizes, "the sizes differ");
    std::copy_n(of_images.strides.begin(), 4, shape.out_steps);
  }
  if (of_regions.present) {
    require(of_regions.sizes == rois.sizes, "the sizes differ");
    std::copy_n(of_regions.strides.end() - 2, 2, shape.region_steps);
  }
  const std::string description = std::string("gradients of ") + (is_largest ? "maxima" : "averages") +
                                  " of samples of " + std::string(name_of(given.type));
  if (given.type == DataType::kFloat32) {
    return std::make_unique<AlignGradPlan<float>>(shape, regions, description);
  }
  if (given.type == DataType::kFloat16) {
    return std::make_unique<AlignGradPlan<Half>>(shape, regions, description);
  }
  reason = "no samples of " + std::string(name_of(given.type));
  return nullptr;
}

ANYDML_ISA_END
