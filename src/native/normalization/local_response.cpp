// LOCAL_RESPONSE_NORMALIZATION and its gradients, by sums around each element.
//
// Sums of windows of any size take log2(size) additions each: sums of 1, 2, 4... elements are put together.
// They are no differences of running sums, so that what is small survives beside what is large, and NaN stays
// where it is. A block of elements, which has all along the axes of the windows, is computed in double
// precision in memory of its own: a row of columns for each channel, or a plane of one channel.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "normalization/geometry.h"
#include "normalization/runs.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"

ANYDML_ISA_BEGIN
namespace {

using Numbers = std::vector<double>;

// x^e of positive numbers: by roots and products, which are exact to the last bits, where 4 * e is an integer
// of few bits.
void raise(double* run, int64_t count, double e) {
  const double quarters = std::fabs(4 * e);
  if (!(quarters < 64 && std::floor(quarters) == quarters)) {
    // The exponential reaches no infinity, and no 0, of double precision.
    const double of_zero = e < 0 ? std::numeric_limits<double>::infinity() : 0.0;
    const double of_infinity = e < 0 ? 0.0 : std::numeric_limits<double>::infinity();
    return apply_to_run(run, count, [&](Doubles x) {
      const Doubles power = constant_pow_of(x, e);
      const Doubles finite = x == std::numeric_limits<double>::infinity() ? Doubles{} + of_infinity : power;
      return x == 0.0 ? Doubles{} + of_zero : finite;
    });
  }
  const auto rest = static_cast<uint32_t>(quarters);
  apply_to_run(run, count, [&](Doubles x) {
    Doubles power = Doubles{} + 1.0;
    const Doubles root = square_root<double>(x);
    if ((rest & 1) != 0) power = square_root<double>(root);
    if ((rest & 2) != 0) power = power * root;
    for (uint32_t n = rest >> 2; n != 0; n >>= 1) {
      if ((n & 1) != 0) power = power * x;
      x = x * x;
    }
    return e < 0 ? 1.0 / power : power;
  });
}

// `size` rows of `columns` numbers each become the sums of rows from `before` each to `after`; 0 outside.
void sum_around(double* rows, int64_t size, int64_t columns, int64_t before, int64_t after, Numbers& room) {
  before = std::min(before, size - 1);
  after = std::min(after, size - 1);
  const int64_t window = before + 1 + after;
  const int64_t padded = before + size + after;
  room.assign(static_cast<size_t>(padded * columns), 0);
  double* const sums = room.data();
  std::copy_n(rows, size * columns, sums + before * columns);
  std::fill_n(rows, size * columns, 0.0);
  int64_t done = 0;
  for (int64_t length = 1; done < window; length *= 2) {
    if ((window & length) != 0) {
      const double* const from = sums + done * columns;
      for (int64_t i = 0; i < size * columns; ++i) rows[i] += from[i];
      done += length;
    }
    if (done == window) break;
    // In place, as what is added lies behind; there are fewer sums of twice as many.
    const int64_t count = (padded - 2 * length + 1) * columns;
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[i + length * columns];
  }
}

struct LocalResponse {
  bool is_across;
  int64_t before;
  int64_t after;
  double factor;  // Alpha / LocalSize
  double beta;
  double bias;
};

class LocalResponsePlan final : public Plan {
 public:
  LocalResponsePlan(const Request& request, LocalResponse shape, bool is_gradient)
      : Plan(std::string(is_gradient ? "gradients of local responses" : "local responses") +
             (shape.is_across ? ", columns of channels" : ", planes")),
        shape_(shape),
        is_gradient_(is_gradient),
        inputs_(request.inputs.size()),
        load_(load_of(tensor(request.inputs, 0).type)),
        store_(store_of(tensor(request.outputs, 0).type)) {
    const std::vector<bool> none(4, false);
    std::vector<Axis> axes = axes_of(request.inputs, request.outputs, none);
    for (const Axis& axis : axes) bytes_ *= axis.size;
    bytes_ *= size_of(request.outputs[0].type) * static_cast<int64_t>(inputs_ + 1);
    const auto taken = [&](size_t index) {
      const Axis axis = axes[index];
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(index));
      return axis;
    };
    if (shape.is_across) {
      rows_ = taken(1);
      Geometry geometry = geometry_of(axes, inputs_);
      columns_ = geometry.run;
      around_ = std::move(geometry.kept);
      width_ = std::min(columns_.size, std::clamp(kBlock / rows_.size, int64_t{16}, kRun));
    } else {
      columns_ = taken(3);
      rows_ = taken(2);
      around_ = std::move(axes);
      width_ = columns_.size;
    }
    blocks_ = count_of(around_) * per_around();
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), blocks_);
    parallel_for(calls, threads, [&](int64_t call) {
      Block block(static_cast<size_t>(rows_.size * width_) + kRun);
      const int64_t end = share_begin(call + 1, calls, blocks_);
      for (int64_t i = share_begin(call, calls, blocks_); i < end; ++i) {
        const Walk walk(around_, i / per_around());
        block.first = i % per_around() * width_;
        block.width = std::min(width_, columns_.size - block.first);
        for (size_t k = 0; k < inputs_; ++k) {
          load_block(static_cast<const std::byte*>(inputs[k]) + walk.offset(k), k, block, block.in[k]);
        }
        compute(block);
        store_block(block, static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_));
      }
    });
  }

 private:
  // Numbers of a block of columns by rows, of which a column of a plane follows the other.
  static constexpr int64_t kBlock = 1 << 12;

  struct Block {
    explicit Block(size_t count) : in{Numbers(count), Numbers(count)}, s(count), around(count) {}

    std::array<Numbers, 2> in;
    Numbers s;
    Numbers around;
    Numbers turned;
    Numbers room;
    int64_t first = 0;
    int64_t width = 0;
  };

  int64_t per_around() const { return (columns_.size + width_ - 1) / width_; }

  template <class Body>
  void for_runs(const Block& block, size_t tensor, const Body& body) const {
    for (int64_t row = 0; row < rows_.size; ++row) {
      for (int64_t c = 0; c < block.width; c += kRun) {
        const int64_t offset = row * rows_.steps[tensor] + (block.first + c) * columns_.steps[tensor];
        body(offset, row * block.width + c, std::min(kRun, block.width - c));
      }
    }
  }

  void load_block(const std::byte* from, size_t tensor, const Block& block, Numbers& to) const {
    for_runs(block, tensor, [&](int64_t offset, int64_t i, int64_t count) {
      load_(from + offset, columns_.steps[tensor], count, to.data() + i);
    });
  }

  void store_block(const Block& block, std::byte* to) const {
    for_runs(block, inputs_, [&](int64_t offset, int64_t i, int64_t count) {
      store_(block.around.data() + i, count, to + offset, columns_.steps[inputs_]);
    });
  }

  // Sums in place, along rows, and in a plane along columns before.
  void sum(Numbers& numbers, int64_t before, int64_t after, Block& block) const {
    if (!shape_.is_across) {
      for (int64_t row = 0; row < rows_.size; ++row) {
        // The order in which sums are put together is the same along both.
        sum_around(numbers.data() + row * block.width, block.width, 1, before, after, block.room);
      }
    }
    sum_around(numbers.data(), rows_.size, block.width, before, after, block.room);
  }

  // y = x / s^Beta, s = Bias + factor * sum of squares;
  // dx = dy / s^Beta - 2 * factor * Beta * x * sum of dy * x / s^(Beta + 1)
  void compute(Block& block) const {
    const int64_t count = rows_.size * block.width;
    const double* const x = block.in[0].data();
    double* const s = block.s.data();
    double* const y = block.around.data();
    for (int64_t i = 0; i < count; ++i) s[i] = x[i] * x[i];
    sum(block.s, shape_.before, shape_.after, block);
    for (int64_t i = 0; i < count; ++i) s[i] = shape_.bias + shape_.factor * s[i];
    if (!is_gradient_) {
      raise(s, count, -shape_.beta);
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] * s[i];
      return;
    }
    const double* const dy = block.in[1].data();
    std::copy_n(s, count, y);
    raise(y, count, -(shape_.beta + 1));
    for (int64_t i = 0; i < count; ++i) y[i] = dy[i] * x[i] * y[i];
    sum(block.around, shape_.after, shape_.before, block);
    raise(s, count, -shape_.beta);
    const double twice = 2 * shape_.factor * shape_.beta;
    for (int64_t i = 0; i < count; ++i) y[i] = dy[i] * s[i] - twice * x[i] * y[i];
  }

  LocalResponse shape_;
  bool is_gradient_;
  size_t inputs_;
  Load load_;
  Store store_;
  int64_t bytes_ = 1;
  Axis rows_;
  Axis columns_;
  std::vector<Axis> around_;
  int64_t width_ = 1;
  int64_t blocks_ = 1;
};

std::unique_ptr<Plan> local_response(const Request& request, bool is_gradient, std::string& reason) {
  const DataType type = tensor(request.outputs, 0).type;
  if (store_of(type) == nullptr) {
    reason = "no normalization of " + std::string(name_of(type));
    return nullptr;
  }
  const Attributes& attributes = request.attributes;
  const int64_t size = attributes.integer("LocalSize");
  const LocalResponse shape{attributes.flag("CrossChannel"),
                            (size - 1) / 2,
                            size / 2,
                            attributes.real("Alpha") / static_cast<double>(size),
                            attributes.real("Beta"),
                            attributes.real("Bias")};
  return std::make_unique<LocalResponsePlan>(request, shape, is_gradient);
}

}  // namespace

std::unique_ptr<Plan> make_local_response_normalization(const Request& request, std::string& reason) {
  return local_response(request, false, reason);
}

std::unique_ptr<Plan> make_local_response_normalization_grad(const Request& request, std::string& reason) {
  return local_response(request, true, reason);
}

ANYDML_ISA_END
