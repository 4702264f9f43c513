// Layout conversion around a kernel: tensors are copied to channels last before it, or from there after it,
// so that one kernel serves every layout with the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "dense/squares.h"
#include "dense/tile.h"
#include "nhwc/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// From place to place of some channels, in elements: an odd number of lines, so that neither vectors cross
// two nor neighbouring places take each other's place in the first cache.
inline int64_t spread_step(int64_t channels, int64_t item) {
  const int64_t of_line = 64 / item;
  const int64_t lines = (channels + of_line - 1) / of_line;
  return (lines + 1 - lines % 2) * of_line;
}

// The same tensor with its channels last, packed or, where there are vectors of them, spread.
inline Layout channels_last(Layout layout, bool is_spread) {
  const auto& sizes = layout.sizes;
  const int64_t item = size_of(layout.type);
  layout.strides[1] = item;
  int64_t step = item * (is_spread ? spread_step(sizes[1], item) : sizes[1]);
  for (size_t d = sizes.size() - 1; d > 1; --d) {
    layout.strides[d] = step;
    step *= sizes[d];
  }
  layout.strides[0] = step;
  return layout;
}

// Copies a tensor of singles or halves with two spatial dimensions from a layout to another.
class LayoutCopy {
 public:
  LayoutCopy(const Layout& from, const Layout& to)
      : item_(size_of(from.type)),
        batch_{from.sizes[0], from.strides[0], to.strides[0]},
        channels_{from.sizes[1], from.strides[1], to.strides[1]},
        rows_{from.sizes[2], from.strides[2], to.strides[2]},
        places_{from.sizes[3], from.strides[3], to.strides[3]} {
    if (rows_.in == places_.size * places_.in && rows_.out == places_.size * places_.out) {
      places_.size *= rows_.size;
      rows_.size = 1;
    }
  }

  void run(const std::byte* from, std::byte* to) const {
    const int64_t parts = (places_.size + kCopiedPlaces - 1) / kCopiedPlaces;
    const int64_t count = batch_.size * rows_.size * parts;
    const int threads = threads_for(2 * count * kCopiedPlaces * channels_.size * item_);
    const int64_t tasks = std::min<int64_t>(count, threads * kTasks);
    parallel_for(tasks, threads, [&](int64_t task) {
      for (int64_t i = share_begin(task, tasks, count); i < share_begin(task + 1, tasks, count); ++i) {
        const int64_t begin = share_begin(i % parts, parts, places_.size);
        const int64_t end = share_begin(i % parts + 1, parts, places_.size);
        const int64_t row = i / parts % rows_.size;
        const int64_t image = i / parts / rows_.size;
        const Loop some{end - begin, places_.in, places_.out};
        copy(from + image * batch_.in + row * rows_.in + begin * places_.in,
             to + image * batch_.out + row * rows_.out + begin * places_.out, some);
      }
    });
  }

 private:
  // For each thread.
  static constexpr int64_t kTasks = 4;

  void copy(const std::byte* from, std::byte* to, const Loop& places) const {
    if (item_ == 2) return copy<uint16_t>(from, to, places);
    copy<uint32_t>(from, to, places);
  }

  template <class Bits>
  void copy(const std::byte* from, std::byte* to, const Loop& places) const {
    constexpr auto kItem = static_cast<int64_t>(sizeof(Bits));
    const bool to_last = places.in == kItem && channels_.out == kItem;
    const bool from_last = channels_.in == kItem && places.out == kItem;
    if (to_last || from_last) {
      transpose<Bits>(from, to, from_last ? places : channels_, from_last ? channels_ : places);
    } else {
      elements<Bits>(from, to, channels_, places);
    }
  }

  template <class Bits>
  static void elements(const std::byte* from, std::byte* to, const Loop& outer, const Loop& inner) {
    for (int64_t i = 0; i < outer.size; ++i) {
      for (int64_t k = 0; k < inner.size; ++k) {
        std::memcpy(to + i * outer.out + k * inner.out, from + i * outer.in + k * inner.in, sizeof(Bits));
      }
    }
  }

  // Where what is inner lies side by side before, and what is outer after.
  template <class Bits>
  static void transpose(const std::byte* from, std::byte* to, const Loop outer, const Loop inner) {
    constexpr auto kItem = static_cast<int64_t>(sizeof(Bits));
    int64_t i = 0;
#if defined(ANYDML_VECTORS) && defined(__GNUC__)
    if constexpr (kItem == 4) {
      if (outer.size >= kColumnLanes && inner.size >= Squares<float>::kDeep) {
        return transpose_singles(from, to, outer, inner);
      }
    }
#endif
#if defined(__GNUC__)
    using Row = SquareRow<Bits>;
    constexpr int64_t kSide = kSquareBytes / kItem;
    for (; i + kSide <= outer.size; i += kSide) {
      const std::byte* const at = from + i * outer.in;
      std::byte* const place = to + i * kItem;
      int64_t k = 0;
      for (; k + kSide <= inner.size; k += kSide) {
        Row rows[kSide];
        for (int64_t r = 0; r < kSide; ++r) std::memcpy(&rows[r], at + r * outer.in + k * kItem, sizeof(Row));
        anydml::ANYDML_ISA::transpose<Bits>(rows);
        for (int64_t r = 0; r < kSide; ++r) std::memcpy(place + (k + r) * inner.out, &rows[r], sizeof(Row));
      }
      elements<Bits>(at + k * inner.in, place + k * inner.out, {kSide, outer.in, outer.out},
                     {inner.size - k, inner.in, inner.out});
    }
#endif
    elements<Bits>(from + i * outer.in, to + i * outer.out, {outer.size - i, outer.in, outer.out}, inner);
  }

#if defined(ANYDML_VECTORS) && defined(__GNUC__)
  // Vectors of what is outer; the last ones with some that are done.
  ANYDML_NOINLINE static void transpose_singles(const std::byte* from, std::byte* to, const Loop outer,
                                                const Loop inner) {
    constexpr int64_t kDeep = Squares<float>::kDeep;
    for (int64_t i = 0; i < outer.size; i += kColumnLanes) {
      i = std::min(i, outer.size - kColumnLanes);
      for (int64_t k = 0; k < inner.size; k += kDeep) {
        k = std::min(k, inner.size - kDeep);
        std::byte* const at = to + i * 4 + k * inner.out;
        for_each_of_columns<float, 0>(from + i * outer.in + k * 4, outer.in,
                                      [&](int64_t r, Columns w) { store(at + r * inner.out, w); });
      }
    }
  }
#endif

  int64_t item_;
  Loop batch_;
  Loop channels_;
  Loop rows_;
  Loop places_;
};

// A plan whose first input, output, or both are copied: the plan is of some images, as many as make whole
// batches, which are computed one after the other, so that copies stay near and take little memory.
class RelayoutPlan final : public Plan {
 public:
  // Of the tensors as they are, and of some images as the inner plan has them.
  struct Tensors {
    Layout given;
    Layout inner;
    bool is_same() const { return given.strides == inner.strides; }
  };

  RelayoutPlan(std::shared_ptr<const Plan> inner, size_t inputs, const Tensors& input, const Tensors& output)
      : Plan(inner->description() + ", copied there and back where channels do not lie last"),
        inner_(std::move(inner)),
        inputs_(inputs),
        input_(input),
        output_(output) {
    if (!input.is_same()) before_.emplace(some(input), input.inner);
    if (!output.is_same()) after_.emplace(output.inner, some(output));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    std::vector<const void*> read(inputs, inputs + inputs_);
    const Scratch input(before_ ? bytes_of(input_.inner) : 0);
    const Scratch output(after_ ? bytes_of(output_.inner) : 0);
    const int64_t images = input_.inner.sizes[0];
    for (int64_t i = 0; i < input_.given.sizes[0]; i += images) {
      const auto* const from = static_cast<const std::byte*>(inputs[0]) + i * input_.given.strides[0];
      std::byte* const to = static_cast<std::byte*>(outputs[0]) + i * output_.given.strides[0];
      if (before_) before_->run(from, input.bytes());
      read[0] = before_ ? input.bytes() : from;
      void* written = after_ ? output.bytes() : to;
      inner_->run(read.data(), &written);
      if (after_) after_->run(output.bytes(), to);
    }
  }

  bool has_prepack() const override { return inner_->has_prepack(); }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    std::shared_ptr<const Plan> known = inner_->prepack(inputs);
    return known ? std::make_unique<RelayoutPlan>(std::move(known), inputs_, input_, output_) : nullptr;
  }
  int64_t prepack_bytes() const override { return inner_->prepack_bytes(); }

 private:
  // Of as many images as the inner plan has.
  static Layout some(const Tensors& tensors) {
    Layout found = tensors.given;
    found.sizes[0] = tensors.inner.sizes[0];
    return found;
  }
  static int64_t bytes_of(const Layout& layout) { return layout.sizes[0] * layout.strides[0]; }

  std::shared_ptr<const Plan> inner_;
  size_t inputs_;
  Tensors input_;
  Tensors output_;
  std::optional<LayoutCopy> before_;
  std::optional<LayoutCopy> after_;
};

ANYDML_ISA_END
