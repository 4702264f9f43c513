// Instance, layer and batch normalisation (MEAN_VARIANCE_NORMALIZATION, BATCH_NORMALIZATION_TRAINING):
// elements normalised by the mean and variance of their channel, of an image or of all, or of all channels of
// an image.
//
// Statistics are taken in double precision, in two steps: chunks give a sum and, by their own mean, squares
// of differences; these are then put together by the mean of all. A chunk's are of its elements less the
// first of them: n elements' sum of squared differences from their mean is more than a single one's, so that
// what cancels is no more than n units in the last place of double precision. So elements are read once for
// both. Chunks do not depend on the number of threads, and neither do the bits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "nhwc/fused_activation.h"
#include "nhwc/normalization.h"
#include "nhwc/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Of some elements: their number, their sum, and the sum of squared differences from their mean.
struct Moments {
  int64_t count = 0;
  double sum = 0;
  double squares = 0;
};

// The moments of all elements of several parts, `step` apart: of `count` side by side.
inline void combine(const Moments* from, int64_t parts, int64_t step, Moments* all, int64_t count) {
  for (int64_t i = 0; i < parts; ++i) {
    const Moments* const part = from + i * step;
    for (int64_t c = 0; c < count; ++c) {
      all[c].count += part[c].count;
      all[c].sum += part[c].sum;
    }
  }
  for (int64_t i = 0; i < parts; ++i) {
    const Moments* const part = from + i * step;
    for (int64_t c = 0; c < count; ++c) {
      const auto elements = static_cast<double>(part[c].count);
      const double apart = part[c].sum / elements - all[c].sum / static_cast<double>(all[c].count);
      all[c].squares += part[c].squares + elements * apart * apart;
    }
  }
}

// The moments of each channel of an image, of elements of type T.
template <class T>
class ChannelMoments {
 public:
  explicit ChannelMoments(const ChannelRows& rows)
      : channels_(rows.channels), loops_(rows.rest), of_places_(rows.of_places()) {
    length_ = of_places_ ? take_innermost(loops_).size : channels_.size;
    for (const Loop& loop : loops_) rows_ *= loop.size;
    if (of_places_) {
      step_ = std::min(length_, kStatisticsChunk);
      chunks_ = (length_ + step_ - 1) / step_;
    } else {
      if (loops_.size() == 1 && loops_[0].in == length_ * kItem) {
        const int64_t together = std::clamp<int64_t>(kPackedChannels / length_, 1, rows_);
        rest_ = rows_ % together * length_;
        rows_ /= together;
        length_ *= together;
        loops_[0].in *= together;
      }
      step_ = std::clamp<int64_t>(kStatisticsChunk / length_, 1, rows_);
      chunks_ = (rows_ + step_ - 1) / step_;
    }
  }

  // The moments of each channel of some images, all of which threads share: one image's after the other's.
  std::vector<Moments> of(const std::byte* from, const Loop& images, int threads) const {
    const int64_t channels = channels_.size;
    const int64_t parts = of_places_ ? rows_ * chunks_ : (chunks_ * length_ + rest_) / channels;
    const int64_t tasks = of_places_ ? channels * rows_ : chunks_;
    std::vector<Moments> found(static_cast<size_t>(images.size * parts * channels));
    parallel_for(images.size * tasks, threads, [&](int64_t i) {
      const int64_t image = i / tasks;
      const std::byte* const at = from + image * images.in;
      Moments* const to = found.data() + image * parts * channels;
      of_places_ ? row_of_places(at, i % tasks, to) : chunk_of_channels(at, i % tasks, to);
    });
    std::vector<Moments> all(static_cast<size_t>(images.size * channels));
    // Parts of some channels after each other, as they lie side by side.
    constexpr int64_t kTogether = 16;
    const int64_t blocks = divided_up(channels, kTogether);
    const int64_t work = images.size * parts * channels * static_cast<int64_t>(sizeof(Moments));
    parallel_for(images.size * blocks, std::min(threads, threads_for(work)), [&](int64_t i) {
      const int64_t image = i / blocks;
      const int64_t first = i % blocks * kTogether;
      combine(found.data() + image * parts * channels + first, parts, channels,
              all.data() + image * channels + first, std::min(kTogether, channels - first));
    });
    return all;
  }

 private:
  static constexpr int64_t kItem = sizeof(T);
  static constexpr int64_t kLanes = kInRegister<double>;
  // So many sums hide what an addition takes; their number is the same on every instruction set, as it is
  // part of the order of the additions.
  static constexpr int64_t kVectors = 16 / kLanes;
  using V = Register<double>;
  using Sums = std::array<V, kVectors>;
  // Whether elements are added less the first one. The squares of halves are exact, and halves that differ do
  // so by 2^-11 of them at least: what cancels of a chunk's is less than 2^-17 of the variance.
  static constexpr bool kIsShifted = !std::is_same_v<T, Half>;
  // Of channels, whose sums go over rows alone.
  static constexpr int64_t kWide = 4;

  // All chunks of a row of places: one channel's after the other's, as memory mostly has them.
  void row_of_places(const std::byte* from, int64_t i, Moments* found) const {
    const int64_t channels = channels_.size;
    const int64_t channel = i % channels;
    const int64_t place = i / channels;
    const std::byte* const row = from + channel * channels_.in + LoopCursor(loops_, place).in();
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const int64_t begin = chunk * step_;
      found[(place * chunks_ + chunk) * channels + channel] =
          of_places(row + begin * kItem, std::min(step_, length_ - begin));
    }
  }

  // Rows of channels, and with the last ones the elements behind.
  void chunk_of_channels(const std::byte* from, int64_t chunk, Moments* found) const {
    of_channels(from, chunk * step_, std::min((chunk + 1) * step_, rows_), found + chunk * length_);
    if (chunk + 1 < chunks_) return;
    for (int64_t i = 0; i < rest_; ++i) {
      const auto x = widen<T, double>(from + (rows_ * length_ + i) * kItem);
      found[chunks_ * length_ + i] = {1, x, 0};
    }
  }

  // Of elements that follow each other.
  static Moments of_places(const std::byte* from, int64_t count) {
    const double first = kIsShifted ? widen<T, double>(from) : 0;
    Sums sums{};
    Sums squares{};
    int64_t i = 0;
    for (; i + kVectors * kLanes <= count; i += kVectors * kLanes) {
      prefetch_line(from + i * kItem + kPrefetchDistance);
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        V x = load_numbers<T, double, V>(from + (i + static_cast<int64_t>(v) * kLanes) * kItem);
        if constexpr (kIsShifted) x = x - first;
        sums[v] = sums[v] + x;
        squares[v] = squares[v] + x * x;
      }
    }
    const auto summed = [&](const Sums& of, const auto& term) {
      std::array<double, kVectors * kLanes> lanes;
      std::memcpy(lanes.data(), of.data(), sizeof(lanes));
      for (int64_t k = i; k < count; ++k) {
        lanes[static_cast<size_t>(k - i)] += term(widen<T, double>(from + k * kItem) - first);
      }
      double sum = 0;
      for (const double lane : lanes) sum += lane;
      return sum;
    };
    const double sum = summed(sums, [](double x) { return x; });
    const double square = summed(squares, [](double x) { return x * x; });
    return moments_of(count, first, sum, square);
  }

  // Of the sums of elements, less one of them, and of their squares.
  static Moments moments_of(int64_t count, double first, double sum, double squares) {
    const auto elements = static_cast<double>(count);
    const double rest = squares - sum * sum / elements;
    return {count, sum + first * elements, rest < 0 ? 0 : rest};
  }

  // Of rows of channels, some channels after the others, of which the last ones may be gone over twice.
  void of_channels(const std::byte* from, int64_t begin, int64_t end, Moments* found) const {
    int64_t c = 0;
    for (; c + kWide * kLanes <= length_; c += kWide * kLanes) {
      some_channels<std::array<V, kWide>>(from + c * kItem, begin, end, found + c);
    }
    for (; c + kLanes <= length_; c += kLanes) {
      some_channels<std::array<V, 1>>(from + c * kItem, begin, end, found + c);
    }
    if (c == length_) return;
    if (length_ >= kLanes) {
      c = length_ - kLanes;
      some_channels<std::array<V, 1>>(from + c * kItem, begin, end, found + c);
    } else {
      for (; c < length_; ++c) some_channels<std::array<double, 1>>(from + c * kItem, begin, end, found + c);
    }
  }

  template <class Some>
  void some_channels(const std::byte* from, int64_t begin, int64_t end, Moments* found) const {
    using Number = typename Some::value_type;
    constexpr int64_t kEach = sizeof(Number) / sizeof(double);
    const auto number_at = [&](const std::byte* at, size_t v) -> Number {
      if constexpr (kEach == 1) {
        return widen<T, double>(at + static_cast<int64_t>(v) * kItem);
      } else {
        return load_numbers<T, double, Number>(at + static_cast<int64_t>(v) * kEach * kItem);
      }
    };
    LoopCursor cursor(loops_, begin);
    Some first{};
    for (size_t v = 0; kIsShifted && v < first.size(); ++v) first[v] = number_at(from + cursor.in(), v);
    Some sums{};
    Some squares{};
    for (int64_t row = begin; row < end; ++row, cursor.advance()) {
      const std::byte* const at = from + cursor.in();
#pragma GCC unroll 4
      for (size_t v = 0; v < sums.size(); ++v) {
        Number x = number_at(at, v);
        if constexpr (kIsShifted) x = x - first[v];
        sums[v] = sums[v] + x;
        squares[v] = squares[v] + x * x;
      }
    }
    std::array<double, sizeof(Some) / sizeof(double)> one, sum, square;
    std::memcpy(one.data(), &first, sizeof(one));
    std::memcpy(sum.data(), &sums, sizeof(sum));
    std::memcpy(square.data(), &squares, sizeof(square));
    for (size_t i = 0; i < sum.size(); ++i) found[i] = moments_of(end - begin, one[i], sum[i], square[i]);
  }

  Loop channels_;
  // Around a row, the innermost last; where rows are a channel's, without the channels.
  std::vector<Loop> loops_;
  bool of_places_;
  // Of few channels some packed rows are one: its columns, and elements behind the last, are put together
  // with what chunks give.
  int64_t length_ = 1;
  int64_t rows_ = 1;
  int64_t rest_ = 0;
  // Elements of a row, or rows, that are a chunk.
  int64_t step_ = 1;
  int64_t chunks_ = 1;
};

struct MeanVariance {
  // Over images that are normalised by themselves.
  Loop batch;
  // The bytes from one channel to the next of a scale and a bias.
  bool has_scale;
  bool has_bias;
  int64_t scale_step;
  int64_t bias_step;
  bool across_channels;
  bool normalizes_variance;
  double epsilon;
  // Whether mean and variance are outputs, and the bytes from one channel to the next.
  bool gives_statistics = false;
  std::array<int64_t, 2> statistics_steps{};
};

template <class T>
class MeanVarianceNormalization final : public Plan {
 public:
  MeanVarianceNormalization(const MeanVariance& shape, const ChannelRows& rows, Fused fused)
      : Plan(std::string("mean and variance of each ") + (shape.across_channels ? "image" : "channel") +
             ", " + description_of(rows)),
        shape_(shape),
        moments_(rows),
        affine_(rows, fused) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const Loop& batch = shape_.batch;
    const int64_t elements = batch.size * affine_.elements();
    const int threads = threads_for(elements * kNormalizationWork);
    // Of many images each is one thread's, whose caches have it when it is read again. Of few, threads share
    // the rows of some that fit the caches together.
    if (batch.size >= threads * kNormalizationTasks) {
      return parallel_for(batch.size, threads, [&](int64_t i) { images(i, i + 1, 1, inputs, outputs); });
    }
    const int64_t at_once =
        std::clamp<int64_t>(threads * kElementsAtOnce / affine_.elements(), 1, batch.size);
    for (int64_t i = 0; i < batch.size; i += at_once)
      images(i, std::min(i + at_once, batch.size), threads, inputs, outputs);
  }

 private:
  // Of halves in singles.
  using Number = std::conditional_t<std::is_same_v<T, Half>, float, double>;
  using Numbers = ChannelCoefficients<Number>;

  void images(int64_t begin, int64_t end, int threads, const void* const* inputs,
              void* const* outputs) const {
    const auto* const from = static_cast<const std::byte*>(inputs[0]);
    auto* const to = static_cast<std::byte*>(outputs[0]);
    const bool is_streamed = affine_.is_streamed(shape_.batch.size * affine_.elements(), from, to);
    const Loop some{end - begin, shape_.batch.in, shape_.batch.out};
    const std::byte* const first = from + begin * some.in;
    const std::vector<Moments> moments = moments_.of(first, some, threads);
    std::vector<Numbers> numbers;
    for (int64_t i = 0; i < some.size; ++i)
      numbers.push_back(coefficients(moments.data() + i * affine_.channels(), inputs, outputs));
    affine_.run(numbers, some, first, to + begin * some.out, threads, is_streamed);
  }

  static void set(Numbers& numbers, size_t c, double mean, double variance, double factor, double bias) {
    if constexpr (std::is_same_v<T, Half>) {
      // Of a half near the mean elements' differences are exact, and so are they of 0 where the mean is next
      // to it. What is between that half and the mean joins the bias.
      const bool is_apart = 64 * mean * mean >= variance && std::isfinite(mean);
      const float near = is_apart ? static_cast<float>(Half(single_for_half(mean))) : 0.0F;
      const double moved = bias - (mean - near) * factor;
      const auto rest = [](double x) {
        const double lost = x - static_cast<double>(static_cast<float>(x));
        return std::isfinite(lost) ? static_cast<float>(lost) : 0.0F;
      };
      numbers.mean[c] = near;
      numbers.factor[c] = static_cast<float>(factor);
      numbers.factor_rest[c] = rest(factor);
      numbers.bias[c] = static_cast<float>(moved);
      numbers.bias_rest[c] = rest(moved);
    } else {
      numbers.mean[c] = mean;
      numbers.factor[c] = factor;
      numbers.bias[c] = bias;
    }
  }
  static double number(const std::byte* at) { return widen<T, double>(at); }
  static void write(std::byte* to, double x) {
    if constexpr (std::is_same_v<T, Half>) {
      store(to, Half(single_for_half(x)));
    } else {
      store(to, static_cast<T>(x));
    }
  }

  Numbers coefficients(const Moments* moments, const void* const* inputs, void* const* outputs) const {
    Moments across;
    if (shape_.across_channels) combine(moments, affine_.channels(), 1, &across, 1);
    const auto* const scale = static_cast<const std::byte*>(inputs[1]);
    const auto* const bias = static_cast<const std::byte*>(inputs[2]);
    Numbers numbers(affine_.channels());
    for (int64_t c = 0; c < affine_.channels(); ++c) {
      const auto index = static_cast<size_t>(c);
      const Moments& own = shape_.across_channels ? across : moments[index];
      const auto count = static_cast<double>(own.count);
      const double factor = shape_.has_scale ? number(scale + c * shape_.scale_step) : 1.0;
      const double variance = own.squares / count;
      const double deviation = shape_.normalizes_variance ? std::sqrt(variance + shape_.epsilon) : 1.0;
      const double mean = own.sum / count;
      // Whatever is added to it, -0 leaves as it is.
      set(numbers, index, mean, variance, factor / deviation,
          shape_.has_bias ? number(bias + c * shape_.bias_step) : -0.0);
      if (!shape_.gives_statistics) continue;
      write(static_cast<std::byte*>(outputs[1]) + c * shape_.statistics_steps[0], mean);
      write(static_cast<std::byte*>(outputs[2]) + c * shape_.statistics_steps[1], variance);
    }
    return affine_.repeated(std::move(numbers));
  }

  MeanVariance shape_;
  ChannelMoments<T> moments_;
  ChannelAffine<Number, T> affine_;
};

ANYDML_ISA_END
