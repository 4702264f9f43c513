// Gradients of averages as a gather: every element adds up its shares of the windows that hold it, in the
// order of these, so that threads share the output and bits depend on nothing else.
#include <algorithm>
#include <array>
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
#include "pooling/channels_grad.h"
#include "pooling/geometry.h"
#include "pooling/planes_grad.h"
#include "pooling/rows.h"
#include "pooling/whole.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
class PartShares {
 public:
  PartShares(const Nest& nest, const Part& part, double* sums)
      : nest_(nest), row_(nest.row.window), part_(part), sums_(sums) {
    std::fill_n(sums_, part.size, 0.0);
    goes_along_taps_ = row_.taps >= kManyTaps;
  }

  // Of the windows that hold the part in the dimensions from the d-th one on; `count` is what is divided by
  // in those before.
  void add(size_t d, const std::byte* from, double count) {
    if (d == nest_.outer.size()) return add_row(from, count);
    const Dimension& dimension = nest_.outer[d];
    const Range holding = reaching(dimension.window, {part_.place[d], part_.place[d] + 1});
    for (int64_t place = holding.begin; place < holding.end; ++place) {
      add(d + 1, from + place * dimension.window.out_stride,
          count * dimension.counted[static_cast<size_t>(place)]);
    }
  }

 private:
  static constexpr int64_t kManyTaps = 16;

  void add_row(const std::byte* from, double count) {
    const Range holding = reaching(row_, {part_.first, part_.first + part_.size});
    for (int64_t place = holding.begin; place < holding.end; place += kPart) {
      const int64_t size = std::min(kPart, holding.end - place);
      double shares[kPart];
      load_row<T>(from + place * row_.out_stride, row_.out_stride, size, shares);
      const double* const counted = nest_.row.counted.data() + place;
      for (int64_t i = 0; i < size; ++i) shares[i] /= count * counted[i];
      if (goes_along_taps_) {
        add_by_places(shares, place, size);
      } else {
        add_by_taps(shares, place, size);
      }
    }
  }

  // One tap of all windows after the other, the last one first, so that windows come in their order.
  void add_by_taps(const double* shares, int64_t place, int64_t size) {
    const int64_t origin = row_.origin(place) - part_.first;
    for (int64_t k = row_.taps; k-- > 0;) {
      const int64_t shift = origin + k;
      const int64_t begin = std::max<int64_t>(0, raised(-shift, row_.stride));
      const int64_t end = std::min(size, floored(part_.size - 1 - shift, row_.stride) + 1);
      double* const to = sums_ + shift + begin * row_.stride;
      const double* const those = shares + begin;
      if (row_.stride == 1) {
        for (int64_t i = 0; i < end - begin; ++i) to[i] += those[i];
      } else {
        for (int64_t i = 0; i < end - begin; ++i) to[i * row_.stride] += those[i];
      }
    }
  }

  // All taps of one window after the other.
  void add_by_places(const double* shares, int64_t place, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t origin = row_.origin(place + i) - part_.first;
      const int64_t end = std::min(part_.size, origin + row_.taps);
      const double share = shares[i];
      for (int64_t e = std::max<int64_t>(0, origin); e < end; ++e) sums_[e] += share;
    }
  }

  const Nest& nest_;
  const Sliding& row_;
  const Part& part_;
  double* sums_;
  bool goes_along_taps_;
};

// Of windows that hold whole planes, whose elements lie side by side: each is filled with its share.
template <class T>
class WholeSharesPlan final : public Plan {
 public:
  WholeSharesPlan(const Nest& nest, std::string description)
      : Plan(std::move(description)),
        planes_(nest.outer[0].window),
        size_(nest.row.window.size),
        count_(nest.outer[0].counted[0] * nest.row.counted[0]) {}

  // More elements than so many are shared by threads.
  static bool fits(const Nest& nest) {
    return is_of_whole_planes(nest, kItem) && nest.row.window.size <= 1 << 14;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const bool are_streamed = PlaneOutputs::are_streamed(planes_.size, size_ * kItem, planes_.in_stride);
    for_shares(planes_.size, planes_.size * size_ * kItem, [&](int64_t first, int64_t end) {
      PlaneOutputs outputs(out + first * planes_.in_stride, size_ * kItem, are_streamed);
      for (; first < end; first += kPart) {
        const int64_t count = std::min(kPart, end - first);
        double shares[kPart];
        T rounded[kPart];
        load_row<T>(in + first * planes_.out_stride, planes_.out_stride, count, shares);
        // A sum of one, without the sign of 0.
        for (int64_t i = 0; i < count; ++i) shares[i] = 0.0 + shares[i] / count_;
        store_row<T>(shares, count, kItem, reinterpret_cast<std::byte*>(rounded));
        for (int64_t i = 0; i < count; ++i) {
          fill_plane(outputs.at(out + (first + i) * planes_.in_stride), size_, rounded[i]);
        }
      }
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

  Sliding planes_;
  int64_t size_;  // of a plane
  double count_;
};

template <class T>
class AverageGradPlan final : public Plan {
 public:
  AverageGradPlan(Nest nest, std::string description) : Plan(std::move(description)), nest_(std::move(nest)) {
    require(nest_.outer.size() <= kMostOuter, "dimensions of pooling");
    int64_t places = nest_.row.window.places;
    for (const Dimension& dimension : nest_.outer) {
      rows_.push_back({dimension.window.size, 0, dimension.window.in_stride});
      places *= dimension.window.places;
    }
    per_row_ = divided_up(nest_.row.window.size, kPart);
    bytes_ = (steps_of(rows_) * nest_.row.window.size + places) * static_cast<int64_t>(sizeof(T));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const Sliding& row = nest_.row.window;
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(rows_) * per_row_;
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      LoopCursor cursor(rows_, number / per_row_);
      for (int64_t of_row = number % per_row_; number < end; ++number) {
        const int64_t first = of_row * kPart;
        Part part{{}, first, std::min(kPart, row.size - first)};
        for (size_t d = 0; d < rows_.size(); ++d) part.place[d] = cursor.index(d);
        double sums[kPart];
        PartShares<T>(nest_, part, sums).add(0, in, 1);
        store_row<T>(sums, part.size, row.in_stride, out + cursor.out() + first * row.in_stride);
        if (++of_row == per_row_) {
          of_row = 0;
          cursor.advance();
        }
      }
    });
  }

 private:
  Nest nest_;
  std::vector<Loop> rows_;  // of elements, around the rows
  int64_t per_row_ = 1;     // parts
  int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Plan> make_average_pooling_grad(const Request& request, std::string& reason) {
  const Layout& gradient = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  require(gradient.type == out.type, "types of gradients");
  const bool counts_padding = request.attributes.flag("IncludePadding");
  std::vector<Dimension> dimensions = dimensions_of(request.attributes, out, gradient, counts_padding);
  const std::string description = "gradients of averages of " + std::string(name_of(out.type));
  const bool is_single = out.type == DataType::kFloat32;
  if (is_single || out.type == DataType::kFloat16) {
    std::vector<Dimension> stepped = dimensions;
    for (size_t d = 0; d < stepped.size(); ++d) stepped[d].other = out.strides[d];
    if (auto plan = is_single ? ChannelsGradPlan<float, false>::of(stepped, description)
                              : ChannelsGradPlan<Half, false>::of(stepped, description)) {
      return plan;
    }
    if (auto plan = is_single ? PlanesGradPlan<float, false>::of(stepped, description)
                              : PlanesGradPlan<Half, false>::of(stepped, description)) {
      return plan;
    }
  }
  Nest nest(merged(std::move(dimensions)), size_of(out.type));
  if (is_single && WholeSharesPlan<float>::fits(nest)) {
    return std::make_unique<WholeSharesPlan<float>>(nest, description + ", whole");
  }
  if (out.type == DataType::kFloat16 && WholeSharesPlan<Half>::fits(nest)) {
    return std::make_unique<WholeSharesPlan<Half>>(nest, description + ", whole");
  }
  if (is_single) {
    return std::make_unique<AverageGradPlan<float>>(std::move(nest), description);
  }
  if (out.type == DataType::kFloat16) {
    return std::make_unique<AverageGradPlan<Half>>(std::move(nest), description);
  }
  reason = "no gradients of " + std::string(name_of(out.type));
  return nullptr;
}

ANYDML_ISA_END
