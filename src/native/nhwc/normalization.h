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

  explicit ChannelCoefficients(int64_t channels) {
    for (auto* each : {&mean, &factor, &bias})
      each->resize(static_cast<size_t>(channels + kInRegister<Number>));
  }
};

// y = f((x - mean) * factor + bias) of elements of type T, in numbers of type Number.
template <class Number, class T>
class ChannelAffine {
 public:
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

  void run(const ChannelCoefficients<Number>& numbers, const std::byte* from, std::byte* to) const {
    const int threads = threads_for(2 * count_ * length_ * kItem);
    const bool is_streamed = count_ * length_ * kItem >= kStreamFrom && from != to;
    if (together_ > 1) return run_packed(numbers, from, to, threads, is_streamed);
    const int64_t tasks = std::min<int64_t>(threads * kNormalizationTasks, count_);
    parallel_for(tasks, threads, [&](int64_t task) {
      const int64_t end = share_begin(task + 1, tasks, count_);
      int64_t i = share_begin(task, tasks, count_);
      Output output(is_streamed);
      for (LoopCursor at(loops_, i); i < end; ++i, at.advance()) {
        row(numbers, of_places_ ? at.index(loops_.size() - 1) : 0, from + at.in(), to + at.out(), output);
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
    void put(std::byte* to, int64_t size) {
      if (!is_streamed_) return;
      if (to != next_) writer_.emplace(to);
      writer_->append(buffer_, size);
      next_ = to + size;
    }

   private:
    bool is_streamed_;
    std::byte* next_ = nullptr;
    alignas(64) std::byte buffer_[kMost * kItem];
    std::optional<LineWriter> writer_;
  };

  // Rows of few channels, some at once.
  void run_packed(const ChannelCoefficients<Number>& numbers, const std::byte* from, std::byte* to,
                  int threads, bool is_streamed) const {
    const int64_t length = length_ * together_;
    ChannelCoefficients<Number> all(length);
    for (int64_t i = 0; i < length; ++i) {
      const auto index = static_cast<size_t>(i);
      const auto channel = static_cast<size_t>(i % length_);
      all.mean[index] = numbers.mean[channel];
      all.factor[index] = numbers.factor[channel];
      all.bias[index] = numbers.bias[channel];
    }
    const int64_t elements = count_ * length_;
    const int64_t rows = (elements + length - 1) / length;
    const int64_t tasks = std::min<int64_t>(threads * kNormalizationTasks, rows);
    parallel_for(tasks, threads, [&](int64_t task) {
      const int64_t end = share_begin(task + 1, tasks, rows);
      Output output(is_streamed);
      for (int64_t i = share_begin(task, tasks, rows); i < end; ++i) {
        const int64_t first = i * length;
        pieces(from + first * kItem, to + first * kItem, std::min(length, elements - first), EachOf{},
               all.mean.data(), all.factor.data(), all.bias.data(), output);
      }
    });
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

  // From a channel on.
  void row(const ChannelCoefficients<Number>& numbers, int64_t channel, const std::byte* from, std::byte* to,
           Output& output) const {
    const Number* const mean = numbers.mean.data() + channel;
    const Number* const factor = numbers.factor.data() + channel;
    const Number* const bias = numbers.bias.data() + channel;
    if (of_places_) {
      pieces(from, to, length_, OnlyOf{}, mean, factor, bias, output);
    } else {
      pieces(from, to, length_, EachOf{}, mean, factor, bias, output);
    }
  }

  template <class Of>
  void pieces(const std::byte* from, std::byte* to, int64_t length, const Of& of, const Number* mean,
              const Number* factor, const Number* bias, Output& output) const {
    const int64_t most = output.most(length);
    for (int64_t k = 0; k < length; k += most) {
      const int64_t count = std::min(most, length - k);
      const int64_t moved = std::is_same_v<Of, EachOf> ? k : 0;
      std::byte* const at = to + k * kItem;
      normalize(from + k * kItem, output.at(at), count, of, mean + moved, factor + moved, bias + moved);
      output.put(at, count * kItem);
    }
  }

  static const std::byte* bytes(const Number* at) { return reinterpret_cast<const std::byte*>(at); }

  template <class Of>
  ANYDML_INLINE void normalize(const std::byte* from, std::byte* to, int64_t length, const Of& of,
                               const Number* mean, const Number* factor, const Number* bias) const {
    const auto one = [&](const std::byte* x, std::byte* y, int64_t k) {
      const V centred = load_numbers<T, Number, V>(x) - of(mean, k);
      store_numbers<T, Number, V>(y, fused_.applied<Number>(centred * of(factor, k) + of(bias, k)));
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
    ChannelCoefficients<Number> numbers(affine_.channels());
    for (int64_t c = 0; c < affine_.channels(); ++c) {
      const auto at = [&](size_t i) {
        return load<float>(static_cast<const std::byte*>(inputs[i + 1]) + c * parameters_[i]);
      };
      const auto index = static_cast<size_t>(c);
      numbers.mean[index] = at(0);
      numbers.factor[index] = static_cast<Number>(at(2) / std::sqrt(at(1) + epsilon_));
      numbers.bias[index] = at(3);
    }
    affine_.run(numbers, static_cast<const std::byte*>(inputs[0]), static_cast<std::byte*>(outputs[0]));
  }

 private:
  ChannelAffine<Number, float> affine_;
  Parameters parameters_;
  double epsilon_;
};

ANYDML_ISA_END
