// An interpreter of pointwise programs, vectorised by strip mining: each instruction goes over a strip of a
// tile before the next one does.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "pointwise/operations.h"
#include "pointwise/tiles.h"
#include "pointwise/tuning.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// An instruction on `count` elements, or as many more as fill two vectors.
using Pass = void (*)(const int64_t* constants, const std::byte* x, const std::byte* y, std::byte* out,
                      int64_t count);

// Computes elements of type Out from those of type In, as numbers of T. The loop is unrolled by two vectors,
// whose chains of operations overlap.
template <class Operation, class In, class T, class Out>
void pass(const int64_t* constants, const std::byte* x, const std::byte* y, std::byte* out, int64_t count) {
  const Constants<T> k(constants);
  using V = NumbersOf<Operation, T>;
  constexpr int kLanes = sizeof(V) / sizeof(T);
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    const auto a = load_numbers<In, T, V>(x + i * sizeof(In));
    const auto b = load_numbers<In, T, V>(y + i * sizeof(In));
    const auto c = load_numbers<In, T, V>(x + (i + kLanes) * sizeof(In));
    const auto d = load_numbers<In, T, V>(y + (i + kLanes) * sizeof(In));
    const auto first = Operation::template of<T>(k, a, b);
    const auto second = Operation::template of<T>(k, c, d);
    store_numbers<Out, T>(out + i * sizeof(Out), first);
    store_numbers<Out, T>(out + (i + kLanes) * sizeof(Out), second);
  }
}

// An instruction with the registers of its operands and of its result. Registers are strips in memory: the
// inputs come first, then the output, then intermediate results.
struct Instruction {
  Pass pass;
  int x;
  int y;
  int out;
  std::array<int64_t, 3> constants;
};

inline constexpr int kMostRegisters = 16;

class ElementPlan final : public Plan {
 public:
  // `cost` is the time to compute an element, in bytes that could be moved meanwhile.
  ElementPlan(Tiles tiles, size_t inputs, std::vector<Instruction> program, int64_t cost,
              std::string description)
      : Plan(std::move(description)),
        tiles_(std::move(tiles)),
        inputs_(inputs),
        program_(std::move(program)),
        work_(tiles_.elements() * cost) {
    for (size_t k = 0; k <= inputs_; ++k) is_packed_[k] = tiles_.is_packed(k);
    for (size_t k = 0; k <= inputs_; ++k) work_ += tiles_.elements() * tiles_.item(k);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    std::array<const std::byte*, kMostTensors> from{};
    auto* const to = static_cast<std::byte*>(outputs[0]);
    // An output in the place of an input is in the caches already.
    bool non_temporal = is_packed_[inputs_] && tiles_.elements() * tiles_.item(inputs_) >= kStreamFrom;
    for (size_t k = 0; k < inputs_; ++k) {
      from[k] = static_cast<const std::byte*>(inputs[k]);
      non_temporal = non_temporal && from[k] != to;
    }
    const int threads = threads_for(work_);
    const int64_t tasks = std::min<int64_t>(threads, tiles_.count());
    // Work stealing where nothing is in a thread's caches anyway, as some share their core with others.
    const int64_t parts =
        non_temporal && tasks > 1 ? std::min(tasks * kPartsPerThread, tiles_.count()) : tasks;
    std::atomic<int64_t> next{tasks};
    parallel_for(tasks, threads, [&](int64_t task) {
      Worker worker(*this, from, to, non_temporal);
      for (int64_t part = task; part < parts; part = next++) {
        const int64_t end = share_begin(part + 1, parts, tiles_.count());
        for (int64_t i = share_begin(part, parts, tiles_.count()); i < end; ++i) {
          worker.run(tiles_.at(i));
          if (is_cancelled()) return;
        }
      }
    });
  }

 private:
  // Elements of two vectors, at most.
  static constexpr int64_t kWhole = 64;

  // One thread with its registers.
  class Worker {
   public:
    Worker(const ElementPlan& plan, const std::array<const std::byte*, kMostTensors>& from, std::byte* to,
           bool non_temporal)
        : plan_(plan),
          from_(from),
          to_(to),
          non_temporal_(non_temporal),
          strip_(plan.tiles_.tile_elements() / (non_temporal ? kStripsPerTile : 1)) {}
    ~Worker() {
      stream_.reset();
      if (non_temporal_) stream_fence();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(const Tiles::Tile& tile) {
      const size_t out = plan_.inputs_;
      for (size_t k = 0; k < out; ++k) {
        if (!plan_.is_packed_[k]) gather(k, tile);
      }
      std::byte* const to = to_ + tile.offsets[out];
      if (non_temporal_) return stream(tile, to);
      const bool direct = plan_.is_packed_[out];
      const int64_t count = tile.rows * tile.columns;
      const int64_t whole = count / kWhole * kWhole;
      for (int64_t start = 0; start < whole; start += strip_) {
        std::byte* const first = (direct ? to : register_at(out)) + start * plan_.tiles_.item(out);
        compute(tile, start, std::min(strip_, whole - start), first);
      }
      if (whole < count) compute_rest(tile, whole, count - whole, direct ? to : nullptr);
      if (!direct) plan_.tiles_.scatter(out, tile, register_at(out), to);
    }

   private:
    std::byte* register_at(size_t place) { return memory_ + static_cast<int64_t>(place) * kRegisterPitch; }

    // Stores a tile past the caches strip by strip, each but the last up to a line's end.
    void stream(const Tiles::Tile& tile, std::byte* to) {
      const size_t out = plan_.inputs_;
      const int64_t item = plan_.tiles_.item(out);
      const int64_t count = tile.rows * tile.columns;
      int64_t size = strip_ - (kLine - to_next_line(to)) % kLine / item;
      for (int64_t start = 0; start < count; start += size, size = strip_) {
        size = std::min(size, count - start);
        const int64_t whole = (size + kWhole - 1) / kWhole * kWhole;
        // Nothing beyond the tile is read: instead, elements before the strip are computed once more.
        const int64_t first = std::min(start, count - whole);
        if (first >= 0) {
          compute(tile, first, whole, register_at(out));
          append(to + start * item, register_at(out) + (start - first) * item, size * item);
        } else {
          compute_rest(tile, start, size, nullptr);
          append(to + start * item, register_at(out) + start * item, size * item);
        }
      }
    }

    void gather(size_t k, Tiles::Tile tile) {
      const std::byte* const from = from_[k] + tile.offsets[k];
      if (plan_.tiles_.is_broadcast(k)) {
        tile.columns = std::min(tile.columns, strip_);
        if (gathered_[k] == from && columns_[k] >= tile.columns) return;
        gathered_[k] = from;
        columns_[k] = tile.columns;
      }
      plan_.tiles_.gather(k, tile, from, register_at(k));
    }

    // The register of an input that was gathered, from an element on.
    std::byte* gathered(size_t k, int64_t start) {
      return register_at(k) + (plan_.tiles_.is_broadcast(k) ? 0 : start * plan_.tiles_.item(k));
    }

    void compute(const Tiles::Tile& tile, int64_t start, int64_t count, std::byte* out) {
      for (size_t k = 0; k < plan_.inputs_; ++k) {
        const std::byte* const packed = from_[k] + tile.offsets[k] + start * plan_.tiles_.item(k);
        registers_[k] = plan_.is_packed_[k] ? const_cast<std::byte*>(packed) : gathered(k, start);
      }
      execute(count, out);
    }

    // Computes the elements that fill no vector, without reading or writing beyond them.
    void compute_rest(const Tiles::Tile& tile, int64_t start, int64_t count, std::byte* direct) {
      for (size_t k = 0; k < plan_.inputs_; ++k) {
        const int64_t item = plan_.tiles_.item(k);
        registers_[k] = plan_.is_packed_[k] ? register_at(k) : gathered(k, start);
        if (!plan_.is_packed_[k]) continue;
        std::memcpy(register_at(k), from_[k] + tile.offsets[k] + start * item,
                    static_cast<size_t>(count * item));
      }
      const size_t out = plan_.inputs_;
      const int64_t item = plan_.tiles_.item(out);
      std::byte* const first = register_at(out) + (direct == nullptr ? start * item : 0);
      execute(count, first);
      if (direct != nullptr) std::memcpy(direct + start * item, first, static_cast<size_t>(count * item));
    }

    void execute(int64_t count, std::byte* out) {
      registers_[plan_.inputs_] = out;
      for (const Instruction& each : plan_.program_)
        each.pass(each.constants.data(), operand(each.x), operand(each.y), operand(each.out), count);
    }
    std::byte* operand(int i) {
      const auto index = static_cast<size_t>(i);
      return index <= plan_.inputs_ ? registers_[index] : register_at(index);
    }

    void append(std::byte* to, const std::byte* from, int64_t size) {
      if (!stream_ || next_ != to) stream_.emplace(to);
      stream_->append(from, size);
      next_ = to + size;
    }

    const ElementPlan& plan_;
    const std::array<const std::byte*, kMostTensors>& from_;
    std::byte* const to_;
    const bool non_temporal_;
    const int64_t strip_;
    std::array<std::byte*, kMostTensors> registers_{};
    std::array<const std::byte*, kMostTensors> gathered_{};
    std::array<int64_t, kMostTensors> columns_{};
    std::optional<LineWriter> stream_;
    std::byte* next_ = nullptr;
    alignas(64) std::byte memory_[kMostRegisters * kRegisterPitch];
  };

  Tiles tiles_;
  size_t inputs_;
  std::vector<Instruction> program_;
  std::array<bool, kMostTensors> is_packed_{};
  int64_t work_;  // in bytes
};

ANYDML_ISA_END
