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
#include "pointwise/byte_table.h"
#include "pointwise/instructions.h"
#include "pointwise/tiles.h"
#include "pointwise/tuning.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"
#include "stores/prefetch.h"

ANYDML_ISA_BEGIN

// An instruction with the registers of its operands and of its result. Registers are strips in memory: the
// inputs come first, then the outputs, then intermediate results.
struct Instruction {
  Pass pass;
  std::array<int, 3> operands;
  int out;
  std::array<int64_t, 3> constants;
};

class ElementPlan final : public Plan {
 public:
  // `sources` are the places of the inputs that are present, of which `once` has those that are one element
  // and of which no more is read, as is of the results of `before`; `cost` is the time to compute an element,
  // in bytes that could be moved meanwhile. With `look_up` the program is a function of the one byte that is
  // read of each element, and a table is filled by it.
  ElementPlan(Tiles tiles, std::vector<size_t> sources, const std::vector<bool>& once,
              std::vector<Instruction> before, std::vector<Instruction> program, int64_t cost, LookUp look_up,
              std::string description)
      : Plan(std::move(description)),
        tiles_(std::move(tiles)),
        sources_(std::move(sources)),
        inputs_(sources_.size()),
        strip_(tiles_.tile_elements()),
        before_(std::move(before)),
        program_(std::move(program)),
        look_up_(look_up),
        aligns_(cost == 0),
        work_(tiles_.elements() * cost) {
    int64_t widest_output = 0;
    std::ranges::copy(once, is_once_.begin());
    for (size_t k = 0; k < tiles_.tensors(); ++k) {
      if (is_once_[k]) continue;
      if (k < inputs_) element_ = k;
      is_packed_[k] = tiles_.is_packed(k);
      work_ += tiles_.elements() * tiles_.item(k);
      if (k >= inputs_) widest_output = std::max(widest_output, is_packed_[k] ? tiles_.item(k) : 0);
      if (k >= inputs_ && !is_packed_[k]) are_outputs_packed_ = false;
    }
    for (size_t k = 0; k < tiles_.tensors(); ++k)
      if (!is_once_[k]) strip_ = std::min(strip_, std::max(kStripBytes / tiles_.item(k), kWholeElements));
    // A lone instruction has no intermediate results to keep in the first cache.
    bool all_in_place = program_.size() == 1 || look_up_ != nullptr;
    for (size_t k = 0; k < tiles_.tensors(); ++k)
      all_in_place = all_in_place && (is_once_[k] || is_packed_[k]);
    int64_t item_bytes = 0;
    for (size_t k = 0; k < tiles_.tensors(); ++k) item_bytes += is_packed_[k] ? tiles_.item(k) : 0;
    prefetches_ = tiles_.elements() * item_bytes >= kStreamFrom;
    tile_strip_ = prefetches_    ? strip_
                  : all_in_place ? tiles_.tile_elements() * kContiguousTiles
                                 : tiles_.tile_elements();
    is_large_ = are_outputs_packed_ && tiles_.elements() * widest_output >= kStreamFrom;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    std::array<std::byte*, kMostTensors> memory{};
    for (size_t k = 0; k < inputs_; ++k)
      memory[k] = const_cast<std::byte*>(static_cast<const std::byte*>(inputs[sources_[k]]));
    // An output in the place of an input is in the caches already.
    bool in_place = false;
    for (size_t k = inputs_; k < tiles_.tensors(); ++k) {
      memory[k] = static_cast<std::byte*>(outputs[k - inputs_]);
      for (size_t i = 0; i < inputs_; ++i) in_place = in_place || memory[i] == memory[k];
    }
    const bool non_temporal = is_large_ && !in_place;
    const int threads = threads_for(work_);
    const int64_t tasks = std::min<int64_t>(threads, tiles_.count());
    // Work stealing where nothing is in a thread's caches anyway, as some share their core with others.
    const int64_t parts =
        non_temporal && tasks > 1 ? std::min(tasks * kPartsPerThread, tiles_.count()) : tasks;
    std::atomic<int64_t> next{tasks};
    parallel_for(tasks, threads, [&](int64_t task) {
      Worker worker(*this, memory, non_temporal, in_place);
      for (int64_t part = task; part < parts; part = next++) {
        const int64_t end = share_begin(part + 1, parts, tiles_.count());
        for (int64_t i = share_begin(part, parts, tiles_.count()); i < end; ++i) {
          tiles_.for_each_part(i, [&](const Tiles::Tile& tile) { worker.run(tile); });
          if (i % kTilesPerQuestion == kTilesPerQuestion - 1 && is_cancelled()) return;
        }
      }
    });
  }

 private:
  // One thread with its registers.
  class Worker {
   public:
    Worker(const ElementPlan& plan, const std::array<std::byte*, kMostTensors>& tensors, bool non_temporal,
           bool in_place)
        : plan_(plan),
          tensors_(tensors),
          non_temporal_(non_temporal),
          in_place_(in_place),
          strip_(non_temporal ? plan.strip_ : plan.tile_strip_) {
      prepare();
    }
    ~Worker() {
      for (auto& each : streams_) each.reset();
      if (non_temporal_) stream_fence();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(const Tiles::Tile& tile) {
      for (size_t k = 0; k < plan_.inputs_; ++k) {
        if (!plan_.is_packed_[k] && !plan_.is_once_[k]) gather(k, tile);
      }
      if (non_temporal_) return stream(tile);
      const int64_t count = tile.rows * tile.columns;
      const int64_t first = in_place_ ? 0 : to_aligned(tile, count);
      const int64_t whole = first + (count - first) / kWholeElements * kWholeElements;
      const auto compute_in_place = [&](int64_t start, int64_t size) {
        for (size_t k = plan_.inputs_; k < tensors(); ++k)
          registers_[k] = plan_.is_packed_[k] ? element(k, tile, start) : stored(k, start);
        if (plan_.prefetches_) prefetch(tile, start, size);
        compute(tile, start, size);
      };
      if (first > 0) compute_in_place(0, kWholeElements);
      for (int64_t start = first; start < whole; start += strip_)
        compute_in_place(start, std::min(strip_, whole - start));
      if (whole < count && whole > 0 && !in_place_) {
        // Elements before the rest are computed once more.
        compute_in_place(count - kWholeElements, kWholeElements);
      } else if (whole < count) {
        compute_rest(tile, whole, count - whole);
        for (size_t k = plan_.inputs_; k < tensors(); ++k) {
          if (!plan_.is_packed_[k]) continue;
          std::memcpy(element(k, tile, whole), stored(k, whole), bytes(k, count - whole));
        }
      }
      for (size_t k = plan_.inputs_; k < tensors(); ++k) {
        if (!plan_.is_packed_[k])
          plan_.tiles_.scatter(k, tile, register_at(k), tensors_[k] + tile.offsets[k]);
      }
    }

   private:
    size_t tensors() const { return plan_.tiles_.tensors(); }
    size_t bytes(size_t k, int64_t count) const { return static_cast<size_t>(count * plan_.tiles_.item(k)); }
    std::byte* register_at(size_t place) { return memory_ + static_cast<int64_t>(place) * kRegisterPitch; }
    std::byte* element(size_t k, const Tiles::Tile& tile, int64_t i) const {
      return tensors_[k] + tile.offsets[k] + i * plan_.tiles_.item(k);
    }
    // The register of a tensor, from an element on; that of a packed output holds a strip, not a tile.
    std::byte* stored(size_t k, int64_t i) {
      const bool is_strip =
          plan_.is_packed_[k] || plan_.is_once_[k] || (k < plan_.inputs_ && plan_.tiles_.is_broadcast(k));
      return register_at(k) + (is_strip ? 0 : i * plan_.tiles_.item(k));
    }

    // The elements of a long tile that are computed by themselves so that what is written next is aligned, as
    // it lies in whole lines of a cache then.
    int64_t to_aligned(const Tiles::Tile& tile, int64_t count) const {
      const size_t output = plan_.inputs_;
      if (!plan_.aligns_ || count < kAlignedFrom || !plan_.is_packed_[output]) return 0;
      const int64_t before = to_next_line(element(output, tile, 0)) % kLine;
      const int64_t item = plan_.tiles_.item(output);
      return before % item == 0 ? before / item : 0;
    }

    // Stores a tile past the caches strip by strip, each but the last up to the end of a line of the first
    // output.
    void stream(const Tiles::Tile& tile) {
      const size_t first_output = plan_.inputs_;
      const int64_t count = tile.rows * tile.columns;
      const int64_t before = (kLine - to_next_line(element(first_output, tile, 0))) % kLine;
      int64_t size = strip_ - before / plan_.tiles_.item(first_output);
      for (int64_t start = 0; start < count; start += size, size = strip_) {
        size = std::min(size, count - start);
        prefetch(tile, start, size);
        const int64_t whole = (size + kWholeElements - 1) / kWholeElements * kWholeElements;
        // Nothing beyond the tile is read: instead, elements before the strip are computed once more.
        const int64_t first = std::min(start, count - whole);
        if (first >= 0) {
          for (size_t k = first_output; k < tensors(); ++k) registers_[k] = register_at(k);
          compute(tile, first, whole);
        } else {
          compute_rest(tile, start, size);
        }
        const int64_t skipped = first >= 0 ? start - first : 0;
        for (size_t k = first_output; k < tensors(); ++k)
          append(k, element(k, tile, start), register_at(k) + skipped * plan_.tiles_.item(k), bytes(k, size));
      }
    }

    // Prefetches what a later strip reads, as no other is read while a program computes one. Inlined, or
    // compilers take calls of it for calls without effect, and leave them out.
    ANYDML_INLINE void prefetch(const Tiles::Tile& tile, int64_t start, int64_t size) const {
      for (size_t k = 0; k < plan_.inputs_; ++k) {
        if (!plan_.is_packed_[k]) continue;
        const std::byte* const from = element(k, tile, start) + kPrefetchBytes;
        const auto count = static_cast<int64_t>(bytes(k, size));
        for (int64_t i = 0; i < count; i += kLine) prefetch_near(from + i);
      }
    }

    void gather(size_t k, const Tiles::Tile& tile) {
      const std::byte* const from = element(k, tile, 0);
      if (!plan_.tiles_.is_broadcast(k)) return plan_.tiles_.gather(k, tile, from, register_at(k));
      const int64_t columns = std::min(tile.columns, strip_);
      if (gathered_[k] == from && columns_[k] >= columns) return;
      gathered_[k] = from;
      columns_[k] = columns;
      plan_.tiles_.fill(k, columns, from, register_at(k));
    }

    void compute(const Tiles::Tile& tile, int64_t start, int64_t count) {
      for (size_t k = 0; k < plan_.inputs_; ++k)
        registers_[k] = plan_.is_packed_[k] ? element(k, tile, start) : stored(k, start);
      execute(count);
    }

    // Computes the elements that fill no vector, without reading or writing beyond them.
    void compute_rest(const Tiles::Tile& tile, int64_t start, int64_t count) {
      for (size_t k = 0; k < tensors(); ++k) {
        registers_[k] = stored(k, start);
        if (k < plan_.inputs_ && plan_.is_packed_[k])
          std::memcpy(registers_[k], element(k, tile, start), bytes(k, count));
      }
      execute(count);
    }

    // Computes what is one for all elements.
    void prepare() {
      for (size_t k = 0; k < plan_.inputs_; ++k) {
        registers_[k] = register_at(k);
        if (!plan_.is_once_[k]) continue;
        for (int64_t i = 0; i < kWholeElements; ++i)
          std::memcpy(register_at(k) + i * plan_.tiles_.item(k), tensors_[k], bytes(k, 1));
      }
      execute(plan_.before_, kWholeElements);
      if (plan_.look_up_ != nullptr) fill_table();
    }

    // What the program gives for each value of a byte.
    void fill_table() {
      const size_t output = plan_.inputs_;
      registers_[output] = register_at(output);
      for (int64_t i = 0; i < kByteValues; ++i) registers_[plan_.element_][i] = static_cast<std::byte>(i);
      execute(plan_.program_, kByteValues);
      std::memcpy(table_, registers_[output], kByteValues);
    }

    void execute(int64_t count) {
      if (plan_.look_up_ == nullptr) return execute(plan_.program_, count);
      const int64_t whole = (count + kWholeElements - 1) / kWholeElements * kWholeElements;
      plan_.look_up_(table_, registers_[plan_.element_], registers_[plan_.inputs_], whole);
    }
    void execute(const std::vector<Instruction>& program, int64_t count) {
      for (const Instruction& each : program) {
        each.pass(each.constants.data(), operand(each.operands[0]), operand(each.operands[1]),
                  operand(each.operands[2]), operand(each.out), count);
      }
    }
    std::byte* operand(int i) {
      const auto index = static_cast<size_t>(i);
      return index < tensors() ? registers_[index] : register_at(index);
    }

    void append(size_t k, std::byte* to, const std::byte* from, size_t size) {
      if (!streams_[k] || next_[k] != to) streams_[k].emplace(to);
      streams_[k]->append(from, static_cast<int64_t>(size));
      next_[k] = to + size;
    }

    const ElementPlan& plan_;
    const std::array<std::byte*, kMostTensors>& tensors_;
    const bool non_temporal_;
    const bool in_place_;
    const int64_t strip_;
    std::array<std::byte*, kMostTensors> registers_{};
    std::array<const std::byte*, kMostTensors> gathered_{};
    std::array<int64_t, kMostTensors> columns_{};
    std::array<std::optional<LineWriter>, kMostTensors> streams_;
    std::array<std::byte*, kMostTensors> next_{};
    alignas(64) std::byte memory_[kMostRegisters * kRegisterPitch];
    std::byte table_[kByteValues];
  };

  Tiles tiles_;
  std::vector<size_t> sources_;
  size_t inputs_;
  int64_t strip_;       // where outputs are stored past the caches
  int64_t tile_strip_;  // elsewhere
  std::vector<Instruction> before_;
  std::vector<Instruction> program_;
  LookUp look_up_;
  size_t element_ = 0;  // the input of which it is a function
  // Whether blocks may begin where an address says. Those of functions may not: a NaN among numbers beyond a
  // quick way's range has another sign than among others.
  bool aligns_;
  std::array<bool, kMostTensors> is_once_{};
  std::array<bool, kMostTensors> is_packed_{};
  bool are_outputs_packed_ = true;
  bool is_large_ = false;
  bool prefetches_ = false;  // as the tensors do not stay in the caches
  int64_t work_;             // in bytes
};

ANYDML_ISA_END
