// Blocks of columns: groups side by side whose elements are a step apart, as lines of single precision in a
// buffer. Memory is read and written by pieces of rows that are as long as the buffer allows, as elements
// that are lanes of one line lie far from the next ones; and halves are converted once for all passes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
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
#include "normalization/lines.h"
#include "normalization/sixteen.h"
#include "normalization/softmax_lines.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/half.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kLineBytes = kLanes * static_cast<int64_t>(sizeof(float));

// Sixteen singles or halves as singles, and back.
ANYDML_INLINE void widen_sixteen(const std::byte* from, bool is_half, std::byte* to) {
  store_sixteen<float>(to, is_half ? load_sixteen<Half>(from) : load_sixteen<float>(from));
}
ANYDML_INLINE void narrow_sixteen(const std::byte* from, bool is_half, std::byte* to) {
  const Sixteen x = load_sixteen<float>(from);
  is_half ? store_sixteen<Half>(to, x) : store_sixteen<float>(to, x);
}

// A buffer of some rows of some columns: a line of vectors for each sixteen columns, one line after the
// other.
class ColumnBlock {
 public:
  // Of so many numbers at most. There is a line of the cache between lines, so that not all begin in one set.
  ColumnBlock(int64_t most_rows, int64_t most_lines, bool is_half)
      : is_half_(is_half),
        item_(is_half ? sizeof(Half) : sizeof(float)),
        pitch_((most_rows + 1) * kLineBytes),
        numbers_(new float[static_cast<size_t>(most_lines * (most_rows + 1) * kLanes)]) {}

  std::byte* line(int64_t number) const {
    return reinterpret_cast<std::byte*>(numbers_.get()) + number * pitch_;
  }

  // Of rows `step` bytes apart; of columns that are one where they are `is_one`. Lanes behind the last column
  // are copies of it.
  void load(const std::byte* from, int64_t step, int64_t rows, int64_t columns, bool is_one) const {
    const int64_t piece = kLanes * item_;
    const int64_t whole = is_one ? 0 : columns / kLanes;
    const int64_t lines = divided_up(columns, kLanes);
    const int64_t pitch = pitch_;
    const bool is_half = is_half_;
    for (int64_t r = 0; r < rows; ++r, from += step) {
      std::byte* to = line(0) + r * kLineBytes;
      for (int64_t i = 0; i < whole; ++i, to += pitch) widen_sixteen(from + i * piece, is_half, to);
      for (int64_t i = whole; i < lines; ++i, to += pitch) {
        std::byte some[kLineBytes];
        for (int64_t k = 0; k < kLanes; ++k) {
          const int64_t column = is_one ? 0 : std::min(i * kLanes + k, columns - 1);
          std::memcpy(some + k * item_, from + column * item_, static_cast<size_t>(item_));
        }
        widen_sixteen(some, is_half, to);
      }
    }
  }

  // Past the caches, or not.
  void put(int64_t rows, int64_t columns, std::byte* to, int64_t step, bool is_streamed) const {
    alignas(64) std::byte row[kMostLines * kLineBytes];
    const int64_t piece = kLanes * item_;
    const int64_t whole = columns / kLanes;
    const int64_t pitch = pitch_;
    const int64_t rest = (columns - whole * kLanes) * item_;
    const bool is_half = is_half_;
    for (int64_t r = 0; r < rows; ++r, to += step) {
      const std::byte* from = line(0) + r * kLineBytes;
      std::byte* const in_order = is_streamed ? row : to;
      for (int64_t i = 0; i < whole; ++i, from += pitch) narrow_sixteen(from, is_half, in_order + i * piece);
      if (rest > 0) {
        std::byte some[kLineBytes];
        narrow_sixteen(from, is_half, some);
        std::memcpy(in_order + whole * piece, some, static_cast<size_t>(rest));
      }
      if (is_streamed) stream_copy(to, row, columns * item_);
    }
  }

  // The line of so many rows as one that is computed in place.
  Line as_line(int64_t number, int64_t rows, float* room) const {
    std::byte* const at = line(number);
    return {{Vectors{at, kLineBytes, false}}, at, kLineBytes, rows, rows, kLanes, 0, rows, room, is_half_};
  }

  static constexpr int64_t kMostLines = 16;
  // That stay in the first cache.
  static constexpr int64_t kNumbers = 1 << 13;

 private:
  bool is_half_;
  int64_t item_;
  int64_t pitch_;
  std::unique_ptr<float[]> numbers_;
};

// The rows of the next block come while there is something to compute, some of them beside each line of this
// one.
inline void prefetch_share(int64_t line, int64_t lines, const std::byte* from, int64_t step, int64_t rows,
                           int64_t bytes) {
  const int64_t end = share_begin(line + 1, lines, rows);
  for (int64_t r = share_begin(line, lines, rows); r < end; ++r) prefetch_lines(from + r * step, bytes);
}

// Of columns that a buffer holds whole.
class ColumnsPlan final : public Plan {
 public:
  using Compute = std::function<void(const Line&)>;

  ColumnsPlan(Compute compute, bool needs_room, Geometry geometry, const std::vector<Layout>& inputs,
              bool is_half, std::string description)
      : Plan(std::move(description)),
        compute_(std::move(compute)),
        needs_room_(needs_room),
        geometry_(std::move(geometry)),
        inputs_(inputs.size()),
        is_half_(is_half),
        item_(is_half ? sizeof(Half) : sizeof(float)),
        rows_(geometry_.summed[0].size) {
    int64_t present = 0;
    for (size_t k = 0; k < inputs_; ++k) present += (is_there_[k] = inputs[k].present) ? 1 : 0;
    const int64_t lines = divided_up(geometry_.run.size, kLanes);
    const int64_t most = std::clamp<int64_t>(ColumnBlock::kNumbers / (rows_ * kLanes * present),
                                             kFewestAtOnce, ColumnBlock::kMostLines);
    at_once_ = std::min(lines, most);
    blocks_ = divided_up(lines, at_once_);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t work = geometry_.elements() * (needs_room_ ? kSoftmaxWork : kLineWork);
    const int threads = threads_for(work);
    const int64_t all = count_of(geometry_.kept) * blocks_;
    const int64_t calls = std::min(calls_for(work, threads), all);
    const bool is_large = geometry_.elements() * item_ >= kStreamFrom;
    const bool streams = is_large && inputs[0] != outputs[0];
    // Singles in the caches are computed where they lie.
    const bool is_direct = !is_half_ && !is_large;
    parallel_for(calls, threads, [&](int64_t call) {
      std::vector<ColumnBlock> buffers;
      for (size_t k = 0; k < inputs_; ++k) buffers.emplace_back(is_there_[k] ? rows_ : 0, at_once_, is_half_);
      const std::unique_ptr<float[]> room(needs_room_ ? new float[static_cast<size_t>((rows_ + 1) * kLanes)]
                                                      : nullptr);
      const int64_t end = share_begin(call + 1, calls, all);
      for (int64_t i = share_begin(call, calls, all); i < end; ++i) {
        const Block block = block_at(i);
        const auto from = [&](size_t k) {
          return static_cast<const std::byte*>(inputs[k]) + block.offsets[k];
        };
        std::byte* const to = static_cast<std::byte*>(outputs[0]) + block.offsets[inputs_];
        const int64_t direct = is_direct ? block.columns / kLanes : 0;
        for (int64_t n = 0; n < direct; ++n) {
          Line line{{}, to + n * kLineBytes, step(inputs_), rows_, rows_, kLanes, 0, rows_, room.get()};
          for (size_t k = 0; k < inputs_; ++k) {
            const int64_t item = geometry_.run.steps[k];
            if (is_there_[k]) line.in[k] = {from(k) + n * kLanes * item, step(k), item == 0};
          }
          compute_(line);
        }
        const int64_t before = direct * kLanes;
        const int64_t columns = block.columns - before;
        if (columns == 0) continue;
        for (size_t k = 0; k < inputs_; ++k) {
          const int64_t item = geometry_.run.steps[k];
          if (is_there_[k]) buffers[k].load(from(k) + before * item, step(k), rows_, columns, item == 0);
        }
        const Block next = block_at(std::min(i + 1, end - 1));
        const auto* const ahead = static_cast<const std::byte*>(inputs[0]) + next.offsets[0];
        const int64_t lines = divided_up(columns, kLanes);
        for (int64_t n = 0; n < lines; ++n) {
          if (is_large) prefetch_share(n, lines, ahead, step(0), rows_, next.columns * item_);
          Line line = buffers[0].as_line(n, rows_, room.get());
          for (size_t k = 1; k < inputs_; ++k) line.in[k] = {buffers[k].line(n), kLineBytes, false};
          compute_(line);
        }
        buffers[0].put(rows_, columns, to + before * item_, step(inputs_), streams);
      }
      if (streams) stream_fence();
    });
  }

 private:
  static constexpr int64_t kFewestAtOnce = 2;

  struct Block {
    Steps offsets{};
    int64_t columns;
  };
  Block block_at(int64_t number) const {
    const Walk walk(geometry_.kept, number / blocks_);
    const int64_t first = number % blocks_ * at_once_ * kLanes;
    Block block{{}, std::min(at_once_ * kLanes, geometry_.run.size - first)};
    for (size_t k = 0; k <= inputs_; ++k) {
      block.offsets[k] = walk.offset(k) + first * geometry_.run.steps[k];
    }
    return block;
  }
  int64_t step(size_t tensor) const { return geometry_.summed[0].steps[tensor]; }

  Compute compute_;
  bool needs_room_;
  Geometry geometry_;
  size_t inputs_;
  bool is_half_;
  int64_t item_;
  int64_t rows_;
  std::array<bool, 4> is_there_{};
  int64_t at_once_ = 1;
  int64_t blocks_ = 1;
};

// SOFTMAX and LOG_SOFTMAX of columns in parts, whose powers are computed twice.
struct SoftmaxColumns {
  static constexpr bool kReadsTwice = true;

  bool is_logarithm;

  // Of sixteen columns: the largest elements, the sums of e^(x - most) of the others, and how many equal
  // them.
  struct State {
    std::array<float, kLanes> most;
    std::array<double, kLanes> others{};
    std::array<double, kLanes> equal{};

    State() { most.fill(-std::numeric_limits<float>::infinity()); }
  };

  // What is below the largest so far, which is mostly that of the rows before: no power is computed twice for
  // a new one. A largest element that is infinite leaves NaN at the end, and is taken as 0 here.
  void add(State& all, const Line& line, int64_t) const {
    State part;
    part.most = numbers_of(largest_of<float, true>(line));
    for (size_t k = 0; k < kLanes; ++k) part.most[k] = std::max(part.most[k], all.most[k]);
    const Sixteen most = finite(part.most);
    is_any_far(most) ? add_below<true>(line, most, part) : add_below<false>(line, most, part);
    merge(all, part);
  }

  static void merge(State& all, const State& part) {
    if (all.most != part.most) {
      State scaled = part;
      rescale(all, scaled);
      rescale(scaled, all);
      all.most = scaled.most;
      for (size_t k = 0; k < kLanes; ++k) all.others[k] += scaled.others[k];
      for (size_t k = 0; k < kLanes; ++k) all.equal[k] += scaled.equal[k];
      return;
    }
    for (size_t k = 0; k < kLanes; ++k) all.others[k] += part.others[k];
    for (size_t k = 0; k < kLanes; ++k) all.equal[k] += part.equal[k];
  }

  // Leaves what results are made with: shares, or logarithms.
  void finish(State& state) const {
    std::array<double, kLanes>& of = state.others;
    for (size_t k = 0; k < kLanes; ++k) {
      const bool is_finite = std::fabs(state.most[k]) < std::numeric_limits<float>::infinity();
      of[k] = is_finite ? of[k] + (state.equal[k] - 1) : kNan;
    }
    if (is_logarithm) {
      for (double& each : of) each = logarithm_of(each);
      return;
    }
    const Sixteen most = finite(state.most);
    const BelowAll below(most);
    const Wide of_most = is_any_far(most) ? below.exact<true>(most) : below.exact<false>(most);
    put_wide(of.data(), each_of([](Doubles power, Doubles rest)
                                    ANYDML_INLINE_LAMBDA { return 1.0 / (power * (1.0 + rest)); },
                                of_most, wide_at(of.data())));
  }

  void map(const State& state, const Line& line) const {
    const Sixteen most = finite(state.most);
    const Wide with = wide_at(state.others.data());
    if (is_logarithm) {
      const bool is_near =
          std::ranges::all_of(state.others, [](double x) { return x >= Logarithms::kLeast; }) &&
          std::ranges::all_of(state.most, [](float x) { return std::fabs(x) <= Logarithms::kMost; });
      return Logarithms(as_wide(most), with, is_near).take<float, true>(line);
    }
    is_any_far(most) ? take_shares<true>(line, most, with) : take_shares<false>(line, most, with);
  }

 private:
  static Sixteen finite(std::array<float, kLanes> most) {
    for (float& each : most) {
      if (!(std::fabs(each) < std::numeric_limits<float>::infinity())) each = 0;
    }
    return bits_as<Sixteen>(most);
  }
  static bool is_any_far(const Sixteen& most) { return std::ranges::any_of(numbers_of(most), is_far_from_0); }

  template <bool kIsFar>
  static void add_below(const Line& line, const Sixteen& most, State& part) {
    const BelowAll below(most);
    const auto [lower, equal] = add_lower_powers<float, true, kIsFar>(line, below, most);
    put_wide(part.others.data(), each_of([](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return a / b; },
                                         lower, below.exact<kIsFar>(most)));
    put_wide(part.equal.data(), equal);
  }

  // What has a lower largest element, relative to the other's.
  static void rescale(State& state, const State& other) {
    std::array<double, kLanes> powers;
    bool has_lower = false;
    for (size_t k = 0; k < kLanes; ++k) {
      const bool is_lower = state.most[k] < other.most[k];
      has_lower = has_lower || is_lower;
      powers[k] = is_lower ? static_cast<double>(state.most[k]) - static_cast<double>(other.most[k]) : 0.0;
    }
    if (!has_lower) return;
    put_wide(powers.data(),
             each_of([](Doubles x) ANYDML_INLINE_LAMBDA { return exp_of(x); }, wide_at(powers.data())));
    for (size_t k = 0; k < kLanes; ++k) {
      if (!(state.most[k] < other.most[k])) continue;
      state.others[k] = (state.others[k] + state.equal[k]) * powers[k];
      state.equal[k] = 0;
      state.most[k] = other.most[k];
    }
  }

  template <bool kIsFar>
  static void take_shares(const Line& line, const Sixteen& most, const Wide& with) {
    const BelowAll below(most);
    const Shares shares(with);
    std::byte* at = line.out;
    for (int64_t i = 0; i < line.count; ++i, at += kLineBytes) {
      store_sixteen<float>(at, shares.of(below.template of<kIsFar>(load_sixteen<float>(at))));
    }
  }
};

// HARDMAX of columns in parts.
struct HardmaxColumns {
  static constexpr bool kReadsTwice = false;

  struct State {
    std::array<float, kLanes> most{};
    std::array<int64_t, kLanes> places;  // -1 where there is no number yet

    State() { places.fill(-1); }
  };

  void add(State& all, const Line& line, int64_t first) const {
    State part;
    HardmaxLine::first_of_columns(line, part.most, part.places);
    for (int64_t& place : part.places) place += place < 0 ? 0 : first;
    merge(all, part);
  }

  static void merge(State& all, const State& part) {
    for (size_t k = 0; k < kLanes; ++k) {
      if (part.places[k] < 0 || (all.places[k] >= 0 && !(part.most[k] > all.most[k]))) continue;
      all.most[k] = part.most[k];
      all.places[k] = part.places[k];
    }
  }

  void finish(State& state) const {
    for (int64_t& place : state.places) place = std::max<int64_t>(0, place);
  }

  // Of a line of zeros, or such a line again.
  static void mark(const State& state, int64_t first, const Line& line, float with) {
    for (size_t k = 0; k < kLanes; ++k) {
      const int64_t row = state.places[k] - first;
      if (0 <= row && row < line.count) store(line.out + row * kLineBytes + k * sizeof(float), with);
    }
  }
};

// Of columns that are longer, in parts whose states are put together when all are there.
template <class Op>
class LongColumnsPlan final : public Plan {
 public:
  LongColumnsPlan(Op op, Geometry geometry, bool is_half, std::string description)
      : Plan(std::move(description)),
        op_(op),
        geometry_(std::move(geometry)),
        is_half_(is_half),
        item_(is_half ? sizeof(Half) : sizeof(float)),
        rows_(geometry_.summed[0].size) {
    const int64_t lines = divided_up(geometry_.run.size, kLanes);
    at_once_ = std::min(lines, ColumnBlock::kMostLines);
    blocks_ = divided_up(lines, at_once_);
    tiles_ = count_of(geometry_.kept) * blocks_;
    chunk_ = ColumnBlock::kNumbers / (at_once_ * kLanes);
    parts_ = std::clamp<int64_t>(rows_ * at_once_ * kLanes / kPartElements, 1,
                                 std::max<int64_t>(1, kFewTiles / tiles_));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(geometry_.elements() * kSoftmaxWork);
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const bool streams = geometry_.elements() * item_ >= kStreamFrom && in != out;
    std::vector<State> states(static_cast<size_t>(tiles_ * parts_ * at_once_));
    parallel_for(tiles_ * parts_, threads, [&](int64_t i) {
      const ColumnBlock block(chunk_, at_once_, is_half_);
      State* const own = states.data() + i * at_once_;
      for_chunks(i, [&](int64_t first, int64_t rows, int64_t columns, int64_t from, int64_t) {
        block.load(in + from, step(0), rows, columns, false);
        const int64_t lines = divided_up(columns, kLanes);
        for (int64_t n = 0; n < lines; ++n) {
          prefetch_share(n, lines, in + from + rows * step(0), step(0), rows, columns * item_);
          op_.add(own[n], block.as_line(n, rows, nullptr), first);
        }
      });
    });
    parallel_for(tiles_ * at_once_, threads, [&](int64_t i) {
      State& all = states[static_cast<size_t>(i / at_once_ * parts_ * at_once_ + i % at_once_)];
      for (int64_t part = 1; part < parts_; ++part) Op::merge(all, (&all)[part * at_once_]);
      op_.finish(all);
    });
    parallel_for(tiles_ * parts_, threads, [&](int64_t i) {
      const ColumnBlock block(chunk_, at_once_, is_half_);
      const State* const own = states.data() + i / parts_ * parts_ * at_once_;
      if (!Op::kReadsTwice) {
        std::memset(block.line(0), 0, static_cast<size_t>(block.line(at_once_) - block.line(0)));
      }
      for_chunks(i, [&](int64_t first, int64_t rows, int64_t columns, int64_t from, int64_t to) {
        const auto for_lines = [&](const auto& body) {
          const int64_t lines = divided_up(columns, kLanes);
          for (int64_t n = 0; n < lines; ++n) {
            if (Op::kReadsTwice) {
              prefetch_share(n, lines, in + from + rows * step(0), step(0), rows, columns * item_);
            }
            body(own[n], block.as_line(n, rows, nullptr));
          }
        };
        if constexpr (Op::kReadsTwice) {
          block.load(in + from, step(0), rows, columns, false);
          for_lines([&](const State& state, const Line& line) { op_.map(state, line); });
        } else {
          for_lines([&](const State& state, const Line& line) { Op::mark(state, first, line, 1); });
        }
        block.put(rows, columns, out + to, step(1), streams);
        if constexpr (!Op::kReadsTwice) {
          for_lines([&](const State& state, const Line& line) { Op::mark(state, first, line, 0); });
        }
      });
      if (streams) stream_fence();
    });
  }

 private:
  using State = typename Op::State;

  // Calls body(first row, rows, columns, offset in the input, in the output) for the chunks of a part.
  template <class Body>
  void for_chunks(int64_t i, const Body& body) const {
    const int64_t tile = i / parts_;
    const Walk walk(geometry_.kept, tile / blocks_);
    const int64_t column = tile % blocks_ * at_once_ * kLanes;
    const int64_t columns = std::min(at_once_ * kLanes, geometry_.run.size - column);
    const int64_t end = share_begin(i % parts_ + 1, parts_, rows_);
    for (int64_t first = share_begin(i % parts_, parts_, rows_); first < end; first += chunk_) {
      const auto offset = [&](size_t k) {
        return walk.offset(k) + column * geometry_.run.steps[k] + first * step(k);
      };
      body(first, std::min(chunk_, end - first), columns, offset(0), offset(1));
    }
  }
  int64_t step(size_t tensor) const { return geometry_.summed[0].steps[tensor]; }

  Op op_;
  Geometry geometry_;
  bool is_half_;
  int64_t item_;
  int64_t rows_;
  int64_t at_once_ = 1;
  int64_t blocks_ = 1;
  int64_t tiles_ = 1;
  int64_t chunk_ = 1;
  int64_t parts_ = 1;
};

// Null where groups are no columns that a buffer holds.
template <class Op>
std::unique_ptr<Plan> columns_of(const Op& op, const Request& request, const Geometry& geometry,
                                 const std::string& description) {
  if (!geometry.by_columns() || request.attributes.has("Program") ||
      !has_lines(geometry, request.inputs, request.outputs)) {
    return nullptr;
  }
  const auto compute = [op](const Line& line) { op.template compute<float, true>(line); };
  return std::make_unique<ColumnsPlan>(compute, Op::kNeedsRoom, geometry, request.inputs,
                                       request.outputs[0].type == DataType::kFloat16,
                                       std::string(description).append(", at once"));
}

// Null where groups are no columns, or not long.
template <class Op>
std::unique_ptr<Plan> long_columns_of(const Op& op, const Request& request, const Geometry& geometry,
                                      const std::string& description) {
  const DataType type = request.outputs[0].type;
  const int64_t item = size_of(type);
  const Axis& run = geometry.run;
  const bool is_packed = run.steps[0] == item && run.steps[1] == item && request.inputs[0].type == type;
  if (request.attributes.has("Program") || request.inputs.size() != 1 || !geometry.by_columns() ||
      geometry.summed.size() != 1 || !is_packed || geometry.summed[0].size <= kColumnElements) {
    return nullptr;
  }
  return std::make_unique<LongColumnsPlan<Op>>(op, geometry, type == DataType::kFloat16,
                                               std::string(description).append(", in parts"));
}

ANYDML_ISA_END
