// SOFTMAX, LOG_SOFTMAX and HARDMAX of lines that are longer than the second cache, or few: lines are cut into
// parts, whose states are put together when all are there. Powers are computed twice, as none are kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "normalization/geometry.h"
#include "normalization/hardmax_lines.h"
#include "normalization/line.h"
#include "normalization/softmax_lines.h"
#include "normalization/statistics.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/half.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Some of the elements of a line, as a line of its own, and the number of its first one.
template <class T>
Line part_of_line(const std::byte* in, std::byte* out, int64_t first, int64_t size) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  Line line{};
  line.in[0] = {in + first * kItem, kLanes * kItem, false};
  line.out = out + first * kItem;
  line.out_step = kLanes * kItem;
  line.count = divided_up(size, kLanes);
  line.whole = size / kLanes;
  line.lanes = size % kLanes;
  line.elements = size;
  return line;
}

struct SoftmaxParts {
  bool is_logarithm;

  // The largest element, the sum of e^(x - most) of the others, and how many equal it.
  struct State {
    double most;
    double others;
    double equal;
  };

  template <class T>
  static State state_of(const Line& line) {
    const Sixteen all = largest_of<T, false>(line);
    const float most = numbers_of(all)[0];
    if (!(std::fabs(most) < std::numeric_limits<float>::infinity())) {
      return {most, most > 0 || has_nan<T>(line) ? kNan : 0.0, 1};
    }
    return is_far_of<T>(most) ? sums<T, true>(line, all) : sums<T, false>(line, all);
  }

  static void merge(State& all, const State& part) {
    const double most = std::max(all.most, part.most);
    const auto powers = [&](const State& each) {
      if (each.most == -std::numeric_limits<double>::infinity()) return each.others;
      return (each.others + each.equal) * exponential_of_one(each.most - most);
    };
    if (all.most == part.most) {
      all = {most, all.others + part.others, all.equal + part.equal};
    } else if (all.most < part.most) {
      all = {most, part.others + powers(all), part.equal};
    } else {
      all.others += powers(part);
    }
  }

  template <class T>
  void map(const Line& line, int64_t, const State& state) const {
    const bool is_finite = std::fabs(state.most) < std::numeric_limits<double>::infinity();
    const double rest = is_finite ? state.others + (state.equal - 1) : kNan;
    const auto most = static_cast<float>(state.most);
    if (is_logarithm) {
      return Logarithms(most, logarithm_of(rest)).take<T, false>(line);
    }
    is_far_of<T>(most) ? take_shares<T, true>(line, sixteen(most), rest)
                       : take_shares<T, false>(line, sixteen(most), rest);
  }

 private:
  template <class T>
  static bool has_nan(const Line& line) {
    bool found = false;
    for_vectors<T>(line, [&](int64_t, const Wide& x, const auto&) {
      const double sum = joined(x, [](Doubles a, Doubles b) { return a + b; });
      found = found || sum != sum;
    });
    return found;
  }

  template <class T>
  static bool is_far_of(float most) {
    return !std::is_same_v<T, Half> && is_far_from_0(most);
  }

  template <class T, bool kIsFar>
  static State sums(const Line& line, const Sixteen& most) {
    const BelowAll below(most);
    const auto [lower, equal] = add_lower_powers<T, false, kIsFar>(line, below, most);
    return {first_of(most.parts[0]), joined(lower, added) / first_of(below.exact<kIsFar>(most).parts[0]),
            joined(equal, added)};
  }

  template <class T, bool kIsFar>
  static void take_shares(const Line& line, const Sixteen& most, double rest) {
    const BelowAll below(most);
    const double of_most = first_of(below.exact<kIsFar>(most).parts[0]);
    const Shares shares(broadcast_wide(1 / (of_most * (1 + rest))));
    // Of a part before anything is written, as the output may lie over the input.
    const bool has_last = line.whole < line.count;
    const auto result = [&](const Sixteen& x)
                            ANYDML_INLINE_LAMBDA { return shares.of(below.template of<T, kIsFar>(x)); };
    const Sixteen last = has_last ? result(part_of_sixteen<T>(line, line.whole)) : Sixteen{};
    for (int64_t i = 0; i < line.whole; ++i) {
      store_sixteen<T>(line.out + i * line.out_step,
                       result(load_sixteen<T>(line.in[0].at + i * line.in[0].step)));
    }
    if (has_last) put_own_part<T>(line, line.whole, last);
  }
};

struct HardmaxParts {
  using State = HardmaxLine::Found;

  template <class T>
  static State state_of(const Line& line) {
    return HardmaxLine::first_of<T>(line);
  }

  static void merge(State& all, const State& part) {
    if (part.place >= 0 && (all.place < 0 || part.most > all.most)) all = part;
  }

  template <class T>
  void map(const Line& line, int64_t first, const State& state) const {
    std::memset(line.out, 0, static_cast<size_t>(line.elements) * sizeof(T));
    const int64_t place = std::max<int64_t>(0, state.place) - first;
    if (place < 0 || place >= line.elements) return;
    store(line.out + place * static_cast<int64_t>(sizeof(T)), T(1.0F));
  }
};

template <class Op, class T>
class LongLinesPlan final : public Plan {
 public:
  LongLinesPlan(Op op, Geometry geometry, std::string description)
      : Plan(std::move(description)), op_(op), geometry_(std::move(geometry)), size_(geometry_.run.size) {
    lines_ = count_of(geometry_.kept);
    const int64_t most = std::max<int64_t>(1, kFewTiles * 4 / lines_);
    parts_ = std::clamp<int64_t>(size_ / kPartElements, 1, most);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(lines_ * size_ * kSoftmaxWork);
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    std::vector<State> states(static_cast<size_t>(lines_ * parts_));
    // Calls body(chunk, the number of its first element) for the chunks of a part.
    const auto for_chunks = [&](int64_t i, const auto& body) {
      const Walk walk(geometry_.kept, i / parts_);
      const int64_t end = share_begin(i % parts_ + 1, parts_, size_);
      for (int64_t first = share_begin(i % parts_, parts_, size_); first < end; first += kChunkElements) {
        const int64_t size = std::min(kChunkElements, end - first);
        body(part_of_line<T>(in + walk.offset(0), out + walk.offset(1), first, size), first);
      }
    };
    parallel_for(lines_ * parts_, threads, [&](int64_t i) {
      State& state = states[static_cast<size_t>(i)];
      bool is_first = true;
      for_chunks(i, [&](const Line& chunk, int64_t first) {
        const State own = numbered(op_.template state_of<T>(chunk), first);
        is_first ? void(state = own) : Op::merge(state, own);
        is_first = false;
      });
    });
    for (int64_t i = 0; i < lines_ * parts_; ++i) {
      if (i % parts_ > 0)
        Op::merge(states[static_cast<size_t>(i - i % parts_)], states[static_cast<size_t>(i)]);
    }
    const bool streams = lines_ * size_ * kItem >= kStreamFrom && in != out;
    parallel_for(lines_ * parts_, threads, [&](int64_t i) {
      const State& state = states[static_cast<size_t>(i - i % parts_)];
      if (streams) return stream_part(i, in, out, state);
      for_chunks(i, [&](const Line& chunk, int64_t first) { op_.template map<T>(chunk, first, state); });
    });
  }

 private:
  using State = typename Op::State;

  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));

  // The results of a part past the caches, by whole lines of these.
  void stream_part(int64_t i, const std::byte* in, std::byte* out, const State& state) const {
    constexpr int64_t kAtOnce = kPrefetchDistance / kItem;
    alignas(64) std::byte results[kAtOnce * kItem];
    const Walk walk(geometry_.kept, i / parts_);
    in += walk.offset(0);
    out += walk.offset(1);
    const int64_t end = share_begin(i % parts_ + 1, parts_, size_);
    int64_t size = 0;
    for (int64_t first = share_begin(i % parts_, parts_, size_); first < end; first += size) {
      const int64_t to_line = to_next_line(out + first * kItem) / kItem;
      size = std::min(to_line > 0 ? to_line : kAtOnce, end - first);
      prefetch_lines(prefetch_address(in + first * kItem, false), size * kItem);
      Line chunk = part_of_line<T>(in, out, first, size);
      chunk.out = results;
      op_.template map<T>(chunk, first, state);
      stream_copy(out + first * kItem, results, size * kItem);
    }
    stream_fence();
  }

  // With a place in the whole line.
  static State numbered(State state, int64_t first) {
    if constexpr (requires { state.place; }) {
      if (state.place >= 0) state.place += first;
    }
    return state;
  }

  Op op_;
  Geometry geometry_;
  int64_t size_;
  int64_t lines_ = 1;
  int64_t parts_ = 1;
};

// Null where groups are no such lines, or not long.
template <class Op>
std::unique_ptr<Plan> long_lines_of(const Op& op, const Request& request, const Geometry& geometry,
                                    const std::string& description) {
  const DataType type = request.outputs[0].type;
  const int64_t item = size_of(type);
  const Axis& run = geometry.run;
  const bool is_packed = run.steps[0] == item && run.steps[1] == item && request.inputs[0].type == type;
  if (request.attributes.has("Program") || request.inputs.size() != 1 || geometry.by_columns() ||
      !geometry.summed.empty() || !is_packed || run.size < kPartElements) {
    return nullptr;
  }
  const std::string in_parts = std::string(description).append(", in parts");
  if (type == DataType::kFloat32) return std::make_unique<LongLinesPlan<Op, float>>(op, geometry, in_parts);
  return std::make_unique<LongLinesPlan<Op, Half>>(op, geometry, in_parts);
}

ANYDML_ISA_END
