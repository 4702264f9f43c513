// Gradients of maxima, at the first maximum of each window, which is found once more. Where windows do not
// overlap, an element has one gradient at most: a row of windows has rows of the output for itself. Else a
// tile of the output at a time adds up, in double precision, what all windows that reach into it have for it,
// in their order, so that threads share the output and bits depend on nothing else.
#include <algorithm>
#include <array>
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
#include "normalization/hardmax_lines.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pooling/channels_grad.h"
#include "pooling/geometry.h"
#include "pooling/planes_grad.h"
#include "pooling/rows.h"
#include "pooling/whole.h"
#include "pooling/windows.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
class MaximumGradPlan final : public Plan {
 public:
  MaximumGradPlan(Nest nest, const Layout& gradient, const Layout& out, std::string description)
      : Plan(std::move(description)),
        nest_(std::move(nest)),
        gradient_(gradient.strides),
        out_(out.strides),
        batch_(out.sizes[0]),
        channels_(out.sizes[1]) {
    const Sliding& height = nest_.outer[2].window;
    const Sliding& width = nest_.row.window;
    are_apart_ = are_apart(height) && are_apart(width);
    at_once_ = places_at_once(width);
    columns_ = std::min(width.size, kColumns);
    rows_ = std::clamp<int64_t>(kTile / columns_, 1, height.size);
    across_ = divided_up(width.size, columns_);
    down_ = are_apart_ ? height.places : divided_up(height.size, rows_);
    const auto taps = [](const Sliding& window) { return std::min({window.taps, window.size, int64_t{16}}); };
    bytes_ = batch_ * channels_ *
             (height.places * width.places * taps(height) * taps(width) + 2 * height.size * width.size) *
             kItem;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const auto* const gradient = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t of_plane = are_apart_ ? down_ : down_ * across_;
    const int64_t tiles = batch_ * channels_ * of_plane;
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), tiles);
    parallel_for(calls, threads, [&](int64_t call) {
      std::vector<double> sums(are_apart_ ? 0 : static_cast<size_t>(rows_ * columns_));
      for (int64_t i = share_begin(call, calls, tiles); i < share_begin(call + 1, calls, tiles); ++i) {
        const int64_t plane = i / of_plane;
        const int64_t n = plane / channels_;
        const int64_t c = plane % channels_;
        const Plane those{n, c, x, gradient + n * gradient_[0] + c * gradient_[1],
                          out + n * out_[0] + c * out_[1]};
        if (are_apart_) {
          scatter(those, i % of_plane);
        } else {
          gather(those, i % of_plane / across_, i % across_, sums.data());
        }
      }
    });
  }

 private:
  using Number = std::conditional_t<std::is_same_v<T, Half>, float, T>;
  static constexpr int64_t kItem = sizeof(T);
  // Sums of a tile fit the second cache.
  static constexpr int64_t kTile = 1 << 14;
  static constexpr int64_t kColumns = 1024;

  struct Plane {
    int64_t n;
    int64_t c;
    const std::byte* x;  // of the whole tensor
    const std::byte* gradient;
    std::byte* out;
  };

  static bool are_apart(const Sliding& window) {
    return (window.taps - 1) * window.dilation < window.stride || window.places == 1;
  }

  // Calls take(element, gradient) for each of the windows of a row, the element counted within the plane.
  template <class Take>
  void for_each_window(const Plane& plane, int64_t row, const Range& places, const Take& take) const {
    constexpr auto kAsTheyAre = [](Number*, int64_t) {};
    for (int64_t first = places.begin; first < places.end; first += at_once_) {
      const Part part{{plane.n, plane.c, row, 0}, first, std::min(at_once_, places.end - first)};
      Number most[kPart];
      int64_t indices[kPart];
      PartWindows<T, Number, Maximum, true, decltype(kAsTheyAre)>(nest_, part, kAsTheyAre, most, indices)
          .add(0, plane.x, 0);
      double gradients[kPart];
      load_row<T>(plane.gradient + row * gradient_[2] + first * gradient_[3], gradient_[3], part.size,
                  gradients);
      for (int64_t i = 0; i < part.size; ++i) {
        if (indices[i] >= 0) take(indices[i], gradients[i]);
      }
    }
  }

  // The rows of the output that belong to a row of windows: from where it begins to where the next one does.
  void scatter(const Plane& plane, int64_t row) const {
    const Sliding& height = nest_.outer[2].window;
    const Sliding& width = nest_.row.window;
    const auto begin = [&](int64_t place) {
      return std::clamp<int64_t>(height.origin(place), 0, height.size);
    };
    const Range rows{row == 0 ? 0 : begin(row), row + 1 == height.places ? height.size : begin(row + 1)};
    constexpr double kZeros[kPart]{};
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t column = 0; column < width.size; column += kPart) {
        store_row<T>(kZeros, std::min(kPart, width.size - column), out_[3],
                     plane.out + y * out_[2] + column * out_[3]);
      }
    }
    for_each_window(plane, row, {0, width.places}, [&](int64_t element, double gradient) {
      std::byte* const to = plane.out + element / width.size * out_[2] + element % width.size * out_[3];
      const double sum = 0.0 + gradient;  // as it is where windows overlap, without the sign of 0
      store_row<T>(&sum, 1, out_[3], to);
    });
  }

  void gather(const Plane& plane, int64_t down, int64_t across, double* sums) const {
    const Sliding& height = nest_.outer[2].window;
    const Sliding& width = nest_.row.window;
    const Range rows{down * rows_, std::min((down + 1) * rows_, height.size)};
    const Range columns{across * columns_, std::min((across + 1) * columns_, width.size)};
    std::fill_n(sums, rows.size() * columns.size(), 0.0);
    const Range of_rows = reaching(height, rows);
    const Range of_columns = reaching(width, columns);
    for (int64_t row = of_rows.begin; row < of_rows.end; ++row) {
      for_each_window(plane, row, of_columns, [&](int64_t element, double gradient) {
        const int64_t y = element / width.size;
        const int64_t column = element - y * width.size;
        if (!rows.holds(y) || !columns.holds(column)) return;
        sums[(y - rows.begin) * columns.size() + column - columns.begin] += gradient;
      });
    }
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      store_row<T>(sums + (y - rows.begin) * columns.size(), columns.size(), out_[3],
                   plane.out + y * out_[2] + columns.begin * out_[3]);
    }
  }

  Nest nest_;  // batch, channels and height around the width
  std::vector<int64_t> gradient_;
  std::vector<int64_t> out_;
  int64_t batch_;
  int64_t channels_;
  bool are_apart_ = false;
  int64_t at_once_ = 1;  // windows of a row
  int64_t columns_ = 1;  // of a tile
  int64_t rows_ = 1;
  int64_t across_ = 1;  // tiles of a row
  int64_t down_ = 1;    // rows of tiles, or of windows that are apart
  int64_t bytes_ = 0;
};

// Of windows that hold whole planes, whose elements lie side by side.
template <class T>
class WholeGradPlan final : public Plan {
 public:
  WholeGradPlan(const Layout& x, const Layout& gradient, const Layout& out, std::string description)
      : Plan(std::move(description)),
        x_(x.strides),
        gradient_(gradient.strides),
        out_(out.strides),
        batch_(out.sizes[0]),
        channels_(out.sizes[1]),
        size_(out.sizes[2] * out.sizes[3]) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const auto* const gradient = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t bytes = size_ * kItem;
    const bool is_packed = batch_ == 1 || out_[0] == channels_ * out_[1];
    const bool are_streamed =
        is_packed && x != out && PlaneOutputs::are_streamed(batch_ * channels_, bytes, out_[1]);
    for_shares(batch_ * channels_, 2 * batch_ * channels_ * bytes, [&](int64_t first, int64_t end) {
      int64_t n = first / channels_;
      int64_t c = first % channels_;
      PlaneOutputs outputs(out + n * out_[0] + c * out_[1], bytes, are_streamed);
      for (; first < end; ++first) {
        Line line{};
        line.in[0] = {x + n * x_[0] + c * x_[1], kLanes * kItem, false};
        line.count = divided_up(size_, kLanes);
        line.whole = size_ / kLanes;
        line.lanes = size_ % kLanes;
        line.elements = size_;
        const int64_t place = std::max<int64_t>(0, HardmaxLine::first_of<T>(line).place);
        // As it is where windows overlap, without the sign of 0.
        const T sum(widen<T, float>(gradient + n * gradient_[0] + c * gradient_[1]) + 0.0F);
        std::byte* const to = outputs.at(out + n * out_[0] + c * out_[1]);
        fill_plane(to, size_, T(0.0F));
        store(to + place * kItem, sum);
        if (++c == channels_) {
          c = 0;
          ++n;
        }
      }
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

  std::vector<int64_t> x_;
  std::vector<int64_t> gradient_;
  std::vector<int64_t> out_;
  int64_t batch_;
  int64_t channels_;
  int64_t size_;  // of a plane
};

}  // namespace

std::unique_ptr<Plan> make_max_pooling_grad(const Request& request, std::string& reason) {
  const Layout& x = tensor(request.inputs, 0);
  const Layout& gradient = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  if (out.type != DataType::kFloat32 && out.type != DataType::kFloat16) {
    reason = "no gradients of " + std::string(name_of(out.type));
    return nullptr;
  }
  if (out.sizes.size() != 4) {
    reason = "two spatial dimensions alone";
    return nullptr;
  }
  require(x.type == out.type && gradient.type == out.type && x.sizes == out.sizes, "tensors of gradients");
  std::vector<Dimension> dimensions = dimensions_of(request.attributes, x, gradient, false);
  // Indices count within a plane.
  dimensions[0].index_step = dimensions[1].index_step = 0;
  const std::string description = "gradients of maxima of " + std::string(name_of(out.type));
  for (size_t d = 0; d < dimensions.size(); ++d) dimensions[d].other = out.strides[d];
  const bool is_single = out.type == DataType::kFloat32;
  if (auto plan = is_single ? ChannelsGradPlan<float, true>::of(dimensions, description)
                            : ChannelsGradPlan<Half, true>::of(dimensions, description)) {
    return plan;
  }
  const auto has_planes = [&](const Layout& layout) {
    const int64_t item = size_of(layout.type);
    return layout.strides[3] == item && layout.strides[2] == layout.sizes[3] * item;
  };
  if (dimensions[2].is_whole() && dimensions[3].is_whole() && has_planes(x) && has_planes(out)) {
    const std::string whole = description + ", whole";
    if (is_single) return std::make_unique<WholeGradPlan<float>>(x, gradient, out, whole);
    return std::make_unique<WholeGradPlan<Half>>(x, gradient, out, whole);
  }
  if (auto plan = is_single ? PlanesGradPlan<float, true>::of(dimensions, description)
                            : PlanesGradPlan<Half, true>::of(dimensions, description)) {
    return plan;
  }
  Nest nest(std::move(dimensions));
  if (is_single) {
    return std::make_unique<MaximumGradPlan<float>>(std::move(nest), gradient, out, description);
  }
  return std::make_unique<MaximumGradPlan<Half>>(std::move(nest), gradient, out, description);
}

ANYDML_ISA_END
