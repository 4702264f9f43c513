// ROI_POOLING: of the rows of a bin, the largest element of each column, and of those the largest of each
// bin.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "roi/samples.h"
#include "simd/eight.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

// What an element of the output is worth in bytes that are copied.
constexpr int64_t kBytesOfOutput = 64;
// Rows that are converted before they are compared: a wide load of what two narrow stores have just written
// waits until they have left the processor.
constexpr int64_t kRowsAtOnce = 16;
constexpr double kFarthest = 4503599627370496;  // 2^52

// From its first element to before its last one.
struct Bin {
  int64_t begin;
  int64_t end;
};

struct Shape {
  int64_t regions;
  int64_t images;
  int64_t channels;
  int64_t sizes[2];      // of the input: height, width
  int64_t pooled[2];     // numbers of bins
  int64_t in_steps[4];   // images, channels, rows, columns
  int64_t roi_steps[2];  // regions, numbers
  int64_t out_steps[4];  // regions, channels, rows, columns
  double scale;
};

// Halves away from zero. NaN stays.
double rounded(double x) {
  const double whole = x < 0 ? std::ceil(x - 0.5) : std::floor(x + 0.5);
  return std::min(std::max(whole, -kFarthest), kFarthest);
}

int64_t within(double x, int64_t size) {
  const double last = static_cast<double>(size);
  return x > 0 ? static_cast<int64_t>(x < last ? x : last) : 0;
}

void bins_of(double first, double last, int64_t size, int64_t count, std::vector<Bin>& bins) {
  bins.assign(static_cast<size_t>(count), Bin{0, 0});
  if (std::isnan(first) || std::isnan(last)) return;
  const double begin = rounded(first);
  const double extent = std::max(rounded(last) - begin + 1, 1.0);
  const double number = static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i);
    bins[static_cast<size_t>(i)] = {within(std::floor(at * extent / number) + begin, size),
                                    within(std::ceil((at + 1) * extent / number) + begin, size)};
  }
}

struct State {
  std::vector<Bin> rows;
  std::vector<Bin> columns;
  Patch patch;
  std::vector<float> largest;  // of each column
};

// The larger one, and `best` where one of them is NaN: an instruction, of whole vectors too.
inline float larger(float candidate, float best) { return candidate > best ? candidate : best; }

// The largest element of a bin, one after the other, as NaNs are among them, or elements that are -inf.
template <class T>
ANYDML_NOINLINE float largest_of_any(const Plane& plane, const Bin& rows, const Bin& columns) {
  float best = static_cast<float>(load<T>(plane.at(rows.begin, columns.begin)));
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      const auto element = static_cast<float>(load<T>(plane.at(i, j)));
      best = exceeds(element, best) ? element : best;
    }
  }
  return best;
}

template <class T>
void pool_plane(const Shape& shape, State& state, const Plane& plane, std::byte* out) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  int64_t left = shape.sizes[1];
  int64_t right = 0;
  for (const Bin& bin : state.columns) {
    if (bin.begin >= bin.end) continue;
    left = std::min(left, bin.begin);
    right = std::max(right, bin.end);
  }
  const int64_t width = std::max<int64_t>(right - left, 0);
  state.largest.resize(static_cast<size_t>(width));
  const bool is_packed = std::is_same_v<T, float> && plane.column == sizeof(T);
  for (const Bin& rows : state.rows) {
    const bool is_empty = rows.begin >= rows.end || width == 0;
    float* const largest = state.largest.data();
    std::fill_n(largest, width, kLeast);
    for (int64_t first = rows.begin; first < rows.end && !is_empty; first += kRowsAtOnce) {
      const int64_t last = std::min(rows.end, first + kRowsAtOnce);
      if (!is_packed) state.patch.template assign<T>(plane, first, last - 1, left, right - 1);
      for (int64_t i = first; i < last; ++i) {
        const std::byte* const from = is_packed ? plane.at(i, left) : state.patch.row(i);
        for (int64_t j = 0; j < width; ++j) {
          largest[j] = larger(load<float>(from + j * static_cast<int64_t>(sizeof(float))), largest[j]);
        }
      }
    }
    std::byte* to = out;
    double staged[kEight]{};
    const auto bins = static_cast<int64_t>(state.columns.size());
    for (int64_t b = 0; b < bins; ++b) {
      const Bin& columns = state.columns[static_cast<size_t>(b)];
      float best = 0;
      if (!is_empty && columns.begin < columns.end) {
        best = kLeast;
        for (int64_t j = columns.begin - left; j < columns.end - left; ++j) best = larger(largest[j], best);
        if (best == kLeast) [[unlikely]]
          best = largest_of_any<T>(plane, rows, columns);
      }
      staged[b % kEight] = static_cast<double>(best);
      if (b % kEight == kEight - 1 || b == bins - 1) {
        store_results<T>(to, shape.out_steps[3], b % kEight + 1, load_eight(staged));
        to += kEight * shape.out_steps[3];
      }
    }
    out += shape.out_steps[2];
  }
}

template <class T>
class PoolingPlan final : public Plan {
 public:
  PoolingPlan(const Shape& shape, std::string description) : Plan(std::move(description)), shape_(shape) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    const auto* const rois = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t planes = shape_.regions * shape_.channels;
    const int64_t bytes = planes * shape_.pooled[0] * shape_.pooled[1] * kBytesOfOutput;
    const int threads = threads_for(bytes);
    const int64_t calls = std::min(calls_for(bytes, threads), planes);
    parallel_for(calls, threads, [&](int64_t call) {
      State state;
      int64_t known = -1;
      int64_t image = 0;
      const int64_t end = share_begin(call + 1, calls, planes);
      for (int64_t number = share_begin(call, calls, planes); number < end; ++number) {
        const int64_t r = number / shape_.channels;
        const int64_t channel = number % shape_.channels;
        if (r != known) {
          known = r;
          image = prepare(rois + r * shape_.roi_steps[0], state);
        }
        const Plane plane{in + image * shape_.in_steps[0] + channel * shape_.in_steps[1], shape_.in_steps[2],
                          shape_.in_steps[3]};
        pool_plane<T>(shape_, state, plane, out + r * shape_.out_steps[0] + channel * shape_.out_steps[1]);
      }
    });
  }

 private:
  // The image of a region; the first, of which all bins are empty, where there is none.
  int64_t prepare(const std::byte* roi, State& state) const {
    double numbers[5];
    for (int64_t i = 0; i < 5; ++i) numbers[i] = load_number<T>(roi + i * shape_.roi_steps[1]);
    const double image = numbers[0];
    if (!(image >= 0 && image < static_cast<double>(shape_.images) && image == std::floor(image))) {
      state.rows.assign(static_cast<size_t>(shape_.pooled[0]), Bin{0, 0});
      state.columns.assign(static_cast<size_t>(shape_.pooled[1]), Bin{0, 0});
      return 0;
    }
    for (int64_t d = 0; d < 2; ++d) {
      bins_of(numbers[2 - d] * shape_.scale, numbers[4 - d] * shape_.scale, shape_.sizes[d], shape_.pooled[d],
              d == 0 ? state.rows : state.columns);
    }
    return static_cast<int64_t>(image);
  }

  Shape shape_;
};

}  // namespace

std::unique_ptr<Plan> make_roi_pooling(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& rois = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  require(in.sizes.size() == 4 && rois.sizes.size() == 4 && out.sizes.size() == 4, "four dimensions");
  require(in.type == rois.type && in.type == out.type, "the types differ");
  require(rois.sizes[3] == 5 && out.sizes[0] == rois.sizes[2] && out.sizes[1] == in.sizes[1],
          "the sizes differ");
  Shape shape{out.sizes[0],
              in.sizes[0],
              in.sizes[1],
              {in.sizes[2], in.sizes[3]},
              {out.sizes[2], out.sizes[3]},
              {},
              {rois.strides[2], rois.strides[3]},
              {},
              request.attributes.real("SpatialScale")};
  std::copy_n(in.strides.begin(), 4, shape.in_steps);
  std::copy_n(out.strides.begin(), 4, shape.out_steps);
  const std::string description = "maxima of bins of " + std::string(name_of(in.type));
  if (in.type == DataType::kFloat32) return std::make_unique<PoolingPlan<float>>(shape, description);
  if (in.type == DataType::kFloat16) return std::make_unique<PoolingPlan<Half>>(shape, description);
  reason = "no bins of " + std::string(name_of(in.type));
  return nullptr;
}

ANYDML_ISA_END
