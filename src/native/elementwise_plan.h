// Programs of element-wise operations, run tile by tile: each instruction goes over a tile before the next
// one does.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elementwise_lanes.h"
#include "elementwise_operations.h"
#include "elementwise_tiles.h"
#include "isa.h"
#include "parallel.h"
#include "plan.h"
#include "stream.h"

ANYDML_ISA_BEGIN

// An instruction on `count` elements, or as many more as fill a vector.
using Pass = void (*)(const int64_t* constants, const std::byte* x, const std::byte* y, std::byte* out,
                      int64_t count);

// Of elements of type In, as numbers of T, one of type Out.
template <class Operation, class In, class T, class Out>
void pass(const int64_t* constants, const std::byte* x, const std::byte* y, std::byte* out, int64_t count) {
  const Constants<T> k(constants);
  for (int64_t i = 0; i < count; i += kLanesOf<T>) {
    const auto a = load_lanes<In, T>(x + i * sizeof(In));
    const auto b = load_lanes<In, T>(y + i * sizeof(In));
    store_lanes<Out, T>(out + i * sizeof(Out), Operation::template of<T>(k, a, b));
  }
}

// Where an instruction finds its operands and leaves its result: the inputs come first, then the output, then
// what lies between.
struct Instruction {
  Pass pass;
  int x;
  int y;
  int out;
  std::array<int64_t, 3> constants;
};

inline constexpr int kMostPlaces = 16;

class ElementPlan final : public Plan {
 public:
  ElementPlan(Tiles tiles, size_t inputs, std::vector<Instruction> program, std::string description)
      : Plan(std::move(description)),
        tiles_(std::move(tiles)),
        inputs_(inputs),
        program_(std::move(program)) {
    for (size_t k = 0; k <= inputs_; ++k) is_packed_[k] = tiles_.is_packed(k);
    for (size_t k = 0; k <= inputs_; ++k) bytes_ += tiles_.elements() * tiles_.item(k);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    std::array<const std::byte*, kMostTensors> from{};
    auto* const to = static_cast<std::byte*>(outputs[0]);
    // What is written where it was read is in the caches.
    bool streams = is_packed_[inputs_] && tiles_.elements() * tiles_.item(inputs_) >= kStreamFrom;
    for (size_t k = 0; k < inputs_; ++k) {
      from[k] = static_cast<const std::byte*>(inputs[k]);
      streams = streams && from[k] != to;
    }
    const int threads = threads_for(bytes_);
    const int64_t tasks = std::min<int64_t>(threads, tiles_.count());
    parallel_for(tasks, threads, [&](int64_t task) {
      Worker worker(*this, from, to, streams);
      const int64_t end = share_begin(task + 1, tasks, tiles_.count());
      for (int64_t i = share_begin(task, tasks, tiles_.count()); i < end; ++i) worker.run(tiles_.at(i));
    });
  }

 private:
  // More than any vector has.
  static constexpr int64_t kWhole = 64;
  // One after the other, and so that equal elements of neighbours lie in different sets of a cache.
  static constexpr int64_t kRoom = kTileBytes + 192;

  // One thread's.
  class Worker {
   public:
    Worker(const ElementPlan& plan, const std::array<const std::byte*, kMostTensors>& from, std::byte* to,
           bool streams)
        : plan_(plan), from_(from), to_(to), streams_(streams) {}
    ~Worker() {
      stream_.reset();
      if (streams_) stream_fence();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(const Tiles::Tile& tile) {
      const size_t out = plan_.inputs_;
      for (size_t k = 0; k < out; ++k) {
        if (!plan_.is_packed_[k]) gather(k, tile);
      }
      const bool direct = plan_.is_packed_[out] && !streams_;
      std::byte* const to = to_ + tile.offsets[out];
      const int64_t count = tile.rows * tile.columns;
      const int64_t whole = count / kWhole * kWhole;
      if (whole > 0) compute(tile, 0, whole, direct ? to : room(out));
      if (whole < count) compute_rest(tile, whole, count - whole, direct ? to : nullptr);
      if (streams_) {
        append(to, count * plan_.tiles_.item(out));
      } else if (!direct) {
        plan_.tiles_.scatter(out, tile, room(out), to);
      }
    }

   private:
    std::byte* room(size_t place) { return memory_ + static_cast<int64_t>(place) * kRoom; }

    void gather(size_t k, const Tiles::Tile& tile) {
      const std::byte* const from = from_[k] + tile.offsets[k];
      const bool is_there = plan_.tiles_.is_same(k) && gathered_[k] == from && columns_[k] >= tile.columns;
      if (is_there) return;
      plan_.tiles_.gather(k, tile, from, room(k));
      gathered_[k] = from;
      columns_[k] = tile.columns;
    }

    void compute(const Tiles::Tile& tile, int64_t start, int64_t count, std::byte* out) {
      for (size_t k = 0; k < plan_.inputs_; ++k) {
        const std::byte* const first = plan_.is_packed_[k] ? from_[k] + tile.offsets[k] : room(k);
        places_[k] = const_cast<std::byte*>(first) + start * plan_.tiles_.item(k);
      }
      execute(count, out);
    }

    // What fills no vector, of which nothing beyond is read or written.
    void compute_rest(const Tiles::Tile& tile, int64_t start, int64_t count, std::byte* direct) {
      for (size_t k = 0; k < plan_.inputs_; ++k) {
        const int64_t item = plan_.tiles_.item(k);
        places_[k] = room(k) + (plan_.is_packed_[k] ? 0 : start * item);
        if (!plan_.is_packed_[k]) continue;
        std::memcpy(room(k), from_[k] + tile.offsets[k] + start * item, static_cast<size_t>(count * item));
      }
      const size_t out = plan_.inputs_;
      const int64_t item = plan_.tiles_.item(out);
      execute(count, room(out) + start * item);
      if (direct != nullptr)
        std::memcpy(direct + start * item, room(out) + start * item, static_cast<size_t>(count * item));
    }

    void execute(int64_t count, std::byte* out) {
      places_[plan_.inputs_] = out;
      for (const Instruction& each : plan_.program_)
        each.pass(each.constants.data(), place(each.x), place(each.y), place(each.out), count);
    }
    std::byte* place(int i) {
      const auto index = static_cast<size_t>(i);
      return index <= plan_.inputs_ ? places_[index] : room(index);
    }

    void append(std::byte* to, int64_t size) {
      if (!stream_ || next_ != to) stream_.emplace(to);
      stream_->append(room(plan_.inputs_), size);
      next_ = to + size;
    }

    const ElementPlan& plan_;
    const std::array<const std::byte*, kMostTensors>& from_;
    std::byte* const to_;
    const bool streams_;
    std::array<std::byte*, kMostTensors> places_{};
    std::array<const std::byte*, kMostTensors> gathered_{};
    std::array<int64_t, kMostTensors> columns_{};
    std::optional<LineStream> stream_;
    std::byte* next_ = nullptr;
    alignas(64) std::byte memory_[kMostPlaces * kRoom];
  };

  Tiles tiles_;
  size_t inputs_;
  std::vector<Instruction> program_;
  std::array<bool, kMostTensors> is_packed_{};
  int64_t bytes_ = 0;
};

ANYDML_ISA_END
