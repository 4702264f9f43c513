// BATCH_NORMALIZATION of FLOAT16 whose elements lie side by side: in single precision, by factors that are
// computed in double precision, once for all runs that have the same parameters.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "normalization/geometry.h"
#include "normalization/runs.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN

// y = (x - mean) * (scale / sqrt(variance + epsilon)) + bias
class FixedHalvesPlan final : public Plan {
 public:
  // Of a run along which parameters repeat, `repeated` is what they repeat along.
  FixedHalvesPlan(double epsilon, Geometry geometry, const Axis& repeated, std::string description)
      : Plan(std::move(description)),
        epsilon_(epsilon),
        geometry_(std::move(geometry)),
        repeated_(repeated),
        piece_(kPiece / repeated.size * repeated.size) {
    const Axis& run = geometry_.run;
    is_constant_ = repeated_.size == 1 && std::all_of(run.steps.begin() + 1, run.steps.begin() + kOutput,
                                                      [](int64_t step) { return step == 0; });
  }

  // Null where elements do not lie so.
  static std::unique_ptr<Plan> of(const Request& request, const Geometry& geometry) {
    for (size_t k = 0; k < kOutput; ++k) {
      if (!request.inputs[k].present || request.inputs[k].type != DataType::kFloat16) return nullptr;
    }
    if (request.attributes.has("Program")) return nullptr;
    Geometry runs = geometry;
    const Axis repeated = few_taken(runs);
    if (!is_packed(runs.run, 1)) return nullptr;
    return std::make_unique<FixedHalvesPlan>(request.attributes.real("Epsilon"), std::move(runs), repeated,
                                             "normalization, element by element, of halves in runs");
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const Axis& run = geometry_.run;
    const int64_t places = count_of(geometry_.kept);
    const int64_t pieces = (run.size + piece_ - 1) / piece_;
    const bool is_same = is_constant_ || repeated_.size > 1;  // what all pieces of a run need
    const int64_t bytes = 2 * geometry_.elements() * kItem;
    const int threads = threads_for(bytes);
    const int64_t calls = std::min(calls_for(bytes, threads), places * pieces);
    parallel_for(calls, threads, [&](int64_t call) {
      Parameters parameters;
      int64_t i = share_begin(call, calls, places * pieces);
      const int64_t end = share_begin(call + 1, calls, places * pieces);
      // Where parameters go along a run, a piece of all runs comes before the next one.
      const int64_t within = is_same ? pieces : places;
      Walk walk(geometry_.kept, is_same ? i / within : i % within);
      for (; i < end; ++i) {
        const int64_t first = (is_same ? i % within : i / within) * piece_;
        const int64_t count = std::min(piece_, run.size - first);
        const auto at = [&](size_t k) {
          return static_cast<const std::byte*>(inputs[k]) + walk.offset(k) + first * run.steps[k];
        };
        load({at(1), at(2), at(3), at(4)}, count, parameters);
        normalize(at(0), count, parameters,
                  static_cast<std::byte*>(outputs[0]) + walk.offset(kOutput) + first * kItem);
        if (is_same && (i + 1) % within != 0) continue;
        if (!is_same && (i + 1) % within == 0) {
          walk = Walk(geometry_.kept, 0);
        } else {
          walk.advance();
        }
      }
    });
  }

 private:
  static constexpr size_t kOutput = 5;
  static constexpr int64_t kItem = sizeof(Half);
  static constexpr int64_t kPiece = 512;
  // Of more channels a piece of one place is long enough by itself.
  static constexpr int64_t kMostRepeated = kPiece / 4;
  static constexpr int64_t kLanes = sizeof(Singles) / sizeof(float);

  // Whether elements of input and output lie side by side, or so many bytes times that apart.
  static bool is_packed(const Axis& axis, int64_t items) {
    return axis.steps[0] == items * kItem && axis.steps[kOutput] == items * kItem;
  }

  // Few elements, such as the channels of a place, that lie side by side, and then those of the next place:
  // one run of all of them, along which parameters repeat. An axis of one element where there are none.
  static Axis few_taken(Geometry& geometry) {
    const auto parts = [](const Axis& few, const Axis& places) {
      return few.size <= kMostRepeated && is_packed(few, 1) && is_packed(places, few.size) &&
             std::all_of(places.steps.begin() + 1, places.steps.begin() + kOutput,
                         [](int64_t step) { return step == 0; });
    };
    Axis& run = geometry.run;
    const auto other = std::ranges::find_if(
        geometry.kept, [&](const Axis& axis) { return parts(axis, run) || parts(run, axis); });
    if (other == geometry.kept.end()) return {};
    const Axis found = parts(run, *other) ? run : *other;
    run.size *= other->size;
    run.steps[0] = run.steps[kOutput] = kItem;
    std::fill(run.steps.begin() + 1, run.steps.begin() + kOutput, 0);
    geometry.kept.erase(other);
    return found;
  }

  struct Parameters {
    std::array<const std::byte*, 4> from{};
    int64_t count = 0;
    alignas(64) std::array<float, kPiece> mean;
    alignas(64) std::array<float, kPiece> factor;
    alignas(64) std::array<float, kPiece> bias;
  };

  void load(const std::array<const std::byte*, 4>& from, int64_t count, Parameters& parameters) const {
    // The first element tells a run's parameters from others'.
    if (parameters.from == from && parameters.count >= count) return;
    parameters.from = from;
    parameters.count = count;
    const bool repeats = repeated_.size > 1;
    const auto& steps = repeats ? repeated_.steps : geometry_.run.steps;
    const auto number = [&](size_t k, int64_t i) { return widen<Half, double>(from[k - 1] + i * steps[k]); };
    std::array<std::array<float, kPiece>*, 3> all{&parameters.mean, &parameters.factor, &parameters.bias};
    const int64_t own = repeats ? std::min(count, repeated_.size) : count;
    for (int64_t i = 0; i < (is_constant_ ? 1 : own); ++i) {
      const auto place = static_cast<size_t>(i);
      parameters.mean[place] = static_cast<float>(number(1, i));
      parameters.factor[place] = static_cast<float>(number(3, i) / std::sqrt(number(2, i) + epsilon_));
      parameters.bias[place] = static_cast<float>(number(4, i));
    }
    if (repeats) {
      for (std::array<float, kPiece>* each : all) {
        for (int64_t i = own; i < count; ++i) {
          (*each)[static_cast<size_t>(i)] = (*each)[static_cast<size_t>(i - own)];
        }
      }
    }
    if (!is_constant_) return;
    for (std::array<float, kPiece>* each : all) {
      std::fill_n(each->begin() + 1, kLanes - 1, (*each)[0]);
    }
  }

  void normalize(const std::byte* from, int64_t count, const Parameters& parameters, std::byte* to) const {
    const auto result = [&](const std::byte* at, int64_t i) {
      const auto x = load_numbers<Half, float, Singles>(at);
      const auto of = [&](const std::array<float, kPiece>& numbers) {
        const float* const those = numbers.data() + (is_constant_ ? 0 : i);
        return load_numbers<float, float, Singles>(reinterpret_cast<const std::byte*>(those));
      };
      return multiply_add(x - of(parameters.mean), of(parameters.factor), of(parameters.bias));
    };
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      store_numbers<Half, float>(to + i * kItem, result(from + i * kItem, i));
    }
    if (i == count) return;
    std::byte some[kLanes * kItem]{};
    const auto size = static_cast<size_t>((count - i) * kItem);
    std::memcpy(some, from + i * kItem, size);
    store_numbers<Half, float>(some, result(some, i));
    std::memcpy(to + i * kItem, some, size);
  }

  double epsilon_;
  Geometry geometry_;
  Axis repeated_;
  int64_t piece_;
  bool is_constant_;
};

ANYDML_ISA_END
