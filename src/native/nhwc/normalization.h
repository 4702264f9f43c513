// An affine map for each channel, as in batch normalisation: elements are normalised by numbers that each
// channel has once.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "nhwc/fused_activation.h"
#include "nhwc/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// What is gone over element by element, and how often.
struct ChannelRows {
  Loop channels;
  std::vector<Loop> rest;
  int64_t item;  // bytes of an element

  bool of_places() const { return rest.empty() || follow(rest.back()); }
  bool suits() const { return of_places() || follow(channels); }
  int64_t elements() const {
    int64_t count = channels.size;
    for (const Loop& loop : rest) count *= loop.size;
    return count;
  }

 private:
  bool follow(const Loop& loop) const { return loop.in == item && loop.out == item; }
};

// As many numbers as a register holds.
template <class Number>
using Register = std::conditional_t<std::is_same_v<Number, double>, Doubles, Singles>;
template <class Number>
inline constexpr int64_t kInRegister = sizeof(Register<Number>) / sizeof(Number);

// What each channel's elements are normalised by. Behind the last channel there is room for a vector.
template <class Number>
struct ChannelCoefficients {
  std::vector<Number> mean, factor, bias;
  // What singles do not hold of factor and bias, for halves.
  std::vector<Number> factor_rest, bias_rest;

  explicit ChannelCoefficients(int64_t channels) {
    for (auto* each : all()) each->resize(static_cast<size_t>(channels + kInRegister<Number>));
  }

  std::array<std::vector<Number>*, 5> all() { return {&mean, &factor, &bias, &factor_rest, &bias_rest}; }
};

// y = f((x - mean) * factor + bias) of elements of type T, in numbers of type Number; of halves in singles
// f(((x - mean) * factor + bias) + ((x - mean) * factor_rest + bias_rest)), each product and sum rounded
// once, so that what cancels leaves as many digits as in double precision.
template <class Number, class T>
class ChannelAffine {
 public:
  using Numbers = ChannelCoefficients<Number>;

  ChannelAffine(const ChannelRows& rows, Fused fused)
      : channels_(rows.channels.size), fused_(fused), of_places_(rows.of_places()), loops_(rows.rest) {
    if (of_places_) {
      length_ = take_innermost(loops_).size;
      loops_.push_back(rows.channels);
    } else {
      length_ = channels_;
    }
    for (const Loop& loop : loops_) count_ *= loop.size;
    const int64_t row = length_ * kItem;
    if (!of_places_ && loops_.size() == 1 && loops_[0].in == row && loops_[0].out == row) {
      together_ = std::clamp<int64_t>(kPackedResults / length_, 1, count_);
    }
  }

  int64_t channels() const { return channels_; }
  // Of an image.
  int64_t elements() const { return count_ * length_; }

  // What is written past the caches.
  static bool is_streamed(int64_t elements, const std::byte* from, const std::byte* to) {
    return elements * kItem >= kStreamFrom && from != to;
  }

  // The numbers of packed rows of few channels, of which some are one row.
  Numbers repeated(Numbers numbers) const {
    if (together_ == 1) return numbers;
    const int64_t length = length_ * together_;
    Numbers all(length);
    const auto of = numbers.all();
    const auto to = all.all();
    for (size_t k = 0; k < of.size(); ++k) {
      for (int64_t row = 0; row < together_; ++row)
        std::copy_n(of[k]->begin(), length_, to[k]->begin() + row * length_);
    }
    return all;
  }

  // Images of numbers of their own, the rows of all of which threads share.
  void run(std::span<const Numbers> numbers, const Loop& images, const std::byte* from, std::byte* to,
           int threads, bool is_streamed) const {
    const int64_t rows = divided_up(count_, together_);
    const int64_t all = images.size * rows;
    const int64_t blocks = is_streamed ? all * together_ * length_ / kElementsAtOnce : 0;
    const int64_t tasks = std::clamp<int64_t>(threads * kNormalizationTasks, std::min(blocks, all), all);
    // The last ones first, as their statistics were taken last, and a cache may have them yet.
    parallel_for(tasks, threads, [&](int64_t behind) {
      const int64_t task = tasks - 1 - behind;
      const int64_t end = share_begin(task + 1, tasks, all);
      Output output(is_streamed);
      for (int64_t i = share_begin(task, tasks, all); i < end;) {
        const int64_t image = i / rows;
        const int64_t first = i % rows;
        const int64_t last = std::min(rows, first + end - i);
        compute(numbers[static_cast<size_t>(image)], from + image * images.in, to + image * images.out, first,
                last, output);
        i += last - first;
      }
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);
  static constexpr int64_t kLanes = kInRegister<Number>;
  using V = Register<Number>;

  // Where results go: where they belong, or by way of a buffer past the caches.
  class Output {
   public:
    static constexpr int64_t kMost = 1 << 10;  // elements at once

    explicit Output(bool is_streamed) : is_streamed_(is_streamed) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    ~Output() {
      if (is_streamed_) stream_fence();
    }

    int64_t most(int64_t length) const { return is_streamed_ ? std::min(length, kMost) : length; }
    std::byte* at(std::byte* to) { return is_streamed_ ? buffer_ : to; }
    // Fetches as many bytes from `ahead` on.
    void put(std::byte* to, int64_t size, const std::byte* ahead) {
      if (!is_streamed_) return;
      if (to != next_) writer_.emplace(to);
      writer_->append(buffer_, size, ahead);
      next_ = to + size;
    }

   private:
    bool is_streamed_;
    std::byte* next_ = nullptr;
    alignas(64) std::byte buffer_[kMost * kItem];
    std::optional<LineWriter> writer_;
  };

  // Rows of an image from `begin` to before `end`.
  void compute(const Numbers& numbers, const std::byte* from, std::byte* to, int64_t begin, int64_t end,
               Output& output) const {
    if (together_ > 1) {
      const int64_t length = length_ * together_;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * length;
        pieces(from + first * kItem, to + first * kItem, std::min(length, elements() - first), EachOf{},
               numbers, 0, output);
      }
      return;
    }
    LoopCursor at(loops_, begin);
    for (int64_t i = begin; i < end; ++i, at.advance()) {
      if (of_places_) {
        pieces(from + at.in(), to + at.out(), length_, OnlyOf{}, numbers, at.index(loops_.size() - 1),
               output);
      } else {
        pieces(from + at.in(), to + at.out(), length_, EachOf{}, numbers, 0, output);
      }
    }
  }

  // Numbers of each channel, or one for all; no functions, which would be called for each vector.
  struct EachOf {
    ANYDML_INLINE V operator()(const Number* of, int64_t k) const {
      return load_numbers<Number, Number, V>(bytes(of + k));
    }
  };
  struct OnlyOf {
    ANYDML_INLINE V operator()(const Number* of, int64_t) const { return V{} + *of; }
  };

  // Of the numbers from a channel on.
  template <class Of>
  void pieces(const std::byte* from, std::byte* to, int64_t length, const Of& of, const Numbers& numbers,
              int64_t channel, Output& output) const {
    const int64_t most = output.most(length);
    for (int64_t k = 0; k < length; k += most) {
      const int64_t count = std::min(most, length - k);
      std::byte* const at = to + k * kItem;
      normalize(from + k * kItem, output.at(at), count, of, numbers,
                std::is_same_v<Of, EachOf> ? channel + k : channel);
      output.put(at, count * kItem, from + k * kItem + kPrefetchDistance);
    }
  }

  static const std::byte* bytes(const Number* at) { return reinterpret_cast<const std::byte*>(at); }

  template <class Of>
  ANYDML_INLINE void normalize(const std::byte* from, std::byte* to, int64_t length, const Of& of,
                               const Numbers& numbers, int64_t channel) const {
    const Number* const mean = numbers.mean.data() + channel;
    const Number* const factor = numbers.factor.data() + channel;
    const Number* const bias = numbers.bias.data() + channel;
    const Number* const factor_rest = numbers.factor_rest.data() + channel;
    const Number* const bias_rest = numbers.bias_rest.data() + channel;
    const auto one = [&](const std::byte* x, std::byte* y, int64_t k) {
      const V centred = load_numbers<T, Number, V>(x) - of(mean, k);
      V result;
      if constexpr (std::is_same_v<T, Half>) {
        result = multiply_add(centred, of(factor, k), of(bias, k)) +
                 multiply_add(centred, of(factor_rest, k), of(bias_rest, k));
      } else {
        result = centred * of(factor, k) + of(bias, k);
      }
      store_numbers<T, Number, V>(y, fused_.applied<Number>(result));
    };
    int64_t k = 0;
    for (; k + kLanes <= length; k += kLanes) one(from + k * kItem, to + k * kItem, k);
    if (k == length) return;
    // Of its own, as what lies behind a row is not there to be read or written.
    std::byte last[kLanes * kItem]{};
    const auto size = static_cast<size_t>((length - k) * kItem);
    std::memcpy(last, from + k * kItem, size);
    one(last, last, k);
    std::memcpy(to + k * kItem, last, size);
  }

  int64_t channels_;
  Fused fused_;
  bool of_places_;
  // Around a row, the innermost last.
  std::vector<Loop> loops_;
  int64_t length_ = 1;
  int64_t count_ = 1;
  int64_t together_ = 1;  // rows
};

inline const char* description_of(const ChannelRows& rows) {
  return rows.of_places() ? "normalization, a channel at a time"
                          : "normalization, a row of channels at a time";
}

// BATCH_NORMALIZATION: Mean and Variance are given, and factor = Scale / sqrt(Variance + Epsilon).
template <class Number>
class ChannelNormalization final : public Plan {
 public:
  // Of mean, variance, scale and bias the bytes from one channel to the next.
  using Parameters = std::array<int64_t, 4>;

  ChannelNormalization(const ChannelRows& rows, const Parameters& parameters, double epsilon, Fused fused)
      : Plan(description_of(rows)), affine_(rows, fused), parameters_(parameters), epsilon_(epsilon) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    Numbers numbers(affine_.channels());
    for (int64_t c = 0; c < affine_.channels(); ++c) {
      const auto at = [&](size_t i) {
        return load<float>(static_cast<const std::byte*>(inputs[i + 1]) + c * parameters_[i]);
      };
      const auto index = static_cast<size_t>(c);
      numbers.mean[index] = at(0);
      numbers.factor[index] = static_cast<Number>(at(2) / std::sqrt(at(1) + epsilon_));
      numbers.bias[index] = at(3);
    }
    const Numbers all = affine_.repeated(std::move(numbers));
    const auto* const from = static_cast<const std::byte*>(inputs[0]);
    auto* const to = static_cast<std::byte*>(outputs[0]);
    const int64_t elements = affine_.elements();
    affine_.run({&all, 1}, {1, 0, 0}, from, to,
                threads_for(2 * elements * static_cast<int64_t>(sizeof(float))),
                affine_.is_streamed(elements, from, to));
  }

 private:
  using Numbers = ChannelCoefficients<Number>;

  ChannelAffine<Number, float> affine_;
  Parameters parameters_;
  double epsilon_;
};

ANYDML_ISA_END
