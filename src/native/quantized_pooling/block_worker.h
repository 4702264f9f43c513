// One thread of pooling block by block.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "platform/isa.h"
#include "quantized_pooling/block_plan.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/requantize.h"
#include "quantized_pooling/strips.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// One thread with its scratch memory.
class BlockWorker {
 public:
  BlockWorker(const BlockPlan& plan, const void* const* inputs, void* const* outputs,
              const BlockRequantizer* shared)
      : plan_(plan),
        g_(plan.geometry),
        b_(plan.block),
        inputs_(inputs),
        outputs_(outputs),
        own_(shared ? std::nullopt : std::optional<BlockRequantizer>(plan)),
        z_(shared ? shared : &*own_),
        memory_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(b_.scratch() + kLine))),
        slot_slices_(static_cast<size_t>(b_.ring), kNone),
        in_rows_(static_cast<size_t>(b_.input_rows)),
        taps_(static_cast<size_t>(std::max(g_.windows[0].size, g_.windows[1].size))) {
    auto* memory = memory_.get() + to_next_line(memory_.get());
    const auto take = [&](int64_t bytes) { return std::exchange(memory, memory + bytes); };
    row_sums_ = reinterpret_cast<uint16_t*>(take(2 * b_.sums()));
    slice_sums_ = reinterpret_cast<uint16_t*>(take(2 * b_.ring * b_.slice_sums()));
    outside_ = reinterpret_cast<uint16_t*>(take(2 * b_.rows * kStrip));
    copied_output_ = take(b_.copied_output());
    copied_input_ = take(b_.copied_input());
  }

  void run(int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t rest = unit;
      const auto digit = [&](int64_t size) {
        const int64_t value = size == 1 ? 0 : rest % size;
        if (size != 1) rest /= size;
        return value;
      };
      const int64_t row_block = digit(plan_.row_blocks());
      const int64_t tile = digit(b_.tiles);
      const int64_t slice_block = digit(plan_.slice_blocks());
      // Units follow the order of memory, unless another channel means another quantisation.
      int64_t channel = own_ ? 0 : digit(g_.channels.size);
      const int64_t batch = digit(g_.batch.size);
      if (own_) channel = rest;
      set_channel(channel);
      set_tile(tile);
      in_ = static_cast<const std::byte*>(inputs_[0]) + batch * g_.batch.in + channel * g_.channels.in;
      out_ = static_cast<std::byte*>(outputs_[0]) + batch * g_.batch.out + channel * g_.channels.out;
      row_ = row_block * b_.rows;
      rows_ = std::min(b_.rows, g_.windows[1].output - row_);
      const int64_t slice = slice_block * b_.slices;
      pool(slice, std::min(slice + b_.slices, g_.windows[0].output));
    }
    if (plan_.non_temporal) stream_fence();
  }

 private:
  using Block = BlockPlan::Block;
  using Strip = BlockPlan::Strip;
  static constexpr int64_t kNone = INT64_MIN;

  void set_channel(int64_t channel) {
    if (own_ && channel != channel_) own_->set(plan_, g_.quantization(inputs_, channel));
    channel_ = channel;
    const int64_t zero_point = z_->quantization->input_zero_point;
    if (zero_point == zero_point_) return;
    zero_point_ = zero_point;
    tile_ = kNone;
    if (b_.ring > 0) {
      const int64_t taps = g_.windows[1].size * g_.windows[2].size;
      std::fill_n(outside_, b_.rows * kStrip, static_cast<uint16_t>(taps * zero_point));
    }
  }

  // Copied rows of input lie between the padding of each.
  void set_tile(int64_t tile) {
    if (tile == tile_) return;
    tile_ = tile;
    begin_ = plan_.tile_begin(tile);
    end_ = plan_.tile_begin(tile + 1);
    std::memset(copied_input_, static_cast<int>(zero_point_ ^ g_.in.flip()),
                static_cast<size_t>(b_.copied_input()));
  }

  void pool(int64_t slice, int64_t end) {
    const Window& depth = g_.windows[0];
    std::fill(slot_slices_.begin(), slot_slices_.end(), kNone);
    size_t segment = 0;
    for (int64_t o = slice; o < end; ++o) {
      while (plan_.segments[0][segment].end <= o) ++segment;
      std::byte* out = plan_.writes_output ? out_at(o, row_) + begin_ : copied_output_;
      out_pitch_ = plan_.writes_output ? g_.windows[1].out_stride : end_ - begin_;
      const int64_t first = o * depth.stride - depth.start_padding;
      if (b_.ring > 0) {
        pool_slices(first, segment, out);
      } else {
        const std::byte* rows = rows_of(first);
        for_each_strip(
            [&](const Strip& strip, int64_t) { finish(sums_of(rows, strip), strip, segment, out); });
      }
      if (!plan_.writes_output) write_out(o);
    }
  }

  void pool_slices(int64_t first, size_t segment, std::byte* out) {
    const Window& depth = g_.windows[0];
    for (int64_t k = 0; k < depth.size; ++k) {
      const int64_t slice = first + k * depth.dilation;
      if (slice < 0 || slice >= depth.input) continue;
      const auto slot = static_cast<size_t>(slice % b_.ring);
      if (std::exchange(slot_slices_[slot], slice) == slice) continue;
      const std::byte* rows = rows_of(slice);
      for_each_strip([&](const Strip& strip, int64_t i) {
        add_up<0>(sums_of(rows, strip), rows_, StoredSums{slot_sums(slot, i)});
      });
    }
    for_each_strip([&](const Strip& strip, int64_t i) {
      for (int64_t k = 0; k < depth.size; ++k) {
        const int64_t slice = first + k * depth.dilation;
        const bool inside = slice >= 0 && slice < depth.input;
        taps_[static_cast<size_t>(k)] =
            inside ? slot_sums(static_cast<size_t>(slice % b_.ring), i) : outside_;
      }
      finish({{taps_.data(), depth.size, kStrip, 0, 0, 0}, std::nullopt}, strip, segment, out);
    });
  }

  uint16_t* slot_sums(size_t slot, int64_t strip) const {
    return slice_sums_ + static_cast<int64_t>(slot) * b_.slice_sums() + strip * b_.rows * kStrip;
  }

  template <class Body>
  void for_each_strip(const Body& body) const {
    Strip inside{};
    for (int64_t i = 0; i < plan_.strips_of(tile_); ++i) {
      inside.begin = plan_.strip_begin(tile_, i);
      const bool all = plan_.is_inside(inside.begin, plan_.strip_end(tile_, inside.begin));
      body(all ? inside : plan_.border_strip(inside.begin), i);
    }
  }

  int64_t first_row() const { return row_ * g_.windows[1].stride - g_.windows[1].start_padding; }
  int64_t input_rows() const { return (rows_ - 1) * g_.windows[1].stride + g_.windows[1].extent(); }

  // The block's rows inside the input, of that slice.
  const std::byte* rows_of(int64_t slice) {
    const auto& [depth, height, width] = g_.windows;
    // Rows and slices outside are not read; their sums are known.
    begin_row_ = std::clamp<int64_t>(0 - first_row(), 0, input_rows());
    end_row_ = std::clamp(height.input - first_row(), begin_row_, input_rows());
    if (slice < 0 || slice >= depth.input) end_row_ = begin_row_;
    if (begin_row_ == end_row_) return nullptr;
    const std::byte* rows = in_ + slice * depth.in_stride + (first_row() + begin_row_) * height.in_stride;
    // After a block comes the next one, of the same plane or of another; with a quantisation of each channel,
    // of the same channel.
    const int64_t step = height.input == 1 ? 0 : height.stride * height.in_stride;
    const bool ends_plane = depth.input == 1 && row_ + rows_ == height.output;
    next_block_ = own_ && ends_plane && g_.batch.size > 1 ? g_.batch.in - row_ * step : rows_ * step;
    if (!plan_.keeps_rows_in_registers) return rows;
    const std::byte** const table = in_rows_.data();
    const int64_t count = end_row_ - begin_row_, pitch = height.in_stride;
    std::fill(table, table + begin_row_, padding_row());
    std::fill(table + end_row_, table + input_rows(), padding_row());
    for (int64_t r = 0; r < count; ++r) table[begin_row_ + r] = rows + r * pitch;
    return rows;
  }

  // One line of each row of a strip is prefetched, at an address as if strips did not overlap: these are a
  // line apart, so that none is left out.
  int64_t prefetch_address(const Strip& strip) const {
    const int64_t strips = (strip.begin - begin_ + kStrip - 1) / kStrip;
    return next_block_ + (begin_ + strips * kStrip - strip.begin) * g_.windows[2].stride;
  }

  // A row of padding, after those to which rows are copied; as others it is addressed by the input's first
  // column.
  const std::byte* padding_row() const {
    return copied_input_ + b_.input_rows * b_.pitch - plan_.first_column(begin_);
  }

  // The sources of the sums of a strip's windows.
  struct Sums {
    SumTaps taps;                       // rows of sums,
    std::optional<WindowRows> windows;  // or the input
  };

  Sums sums_of(const std::byte* rows, const Strip& strip) {
    const auto& [depth, height, width] = g_.windows;
    const int64_t count = end_row_ - begin_row_;
    const SumTaps taps = row_taps();
    // The formula is evaluated from rows of sums.
    if (!plan_.keeps_rows_in_registers || !z_->has_maps || taps.grid == 0 || count == 0 ||
        !may_read(rows, height.in_stride, count, strip)) {
      sum_columns(rows, strip);
      return {taps, std::nullopt};
    }
    const WindowRows windows{in_rows_.data(),
                             plan_.first_column(strip.begin),
                             height.stride,
                             height.dilation,
                             taps.grid,
                             prefetch_address(strip),
                             strip.border.keep.empty() ? nullptr : &strip.border,
                             zero_point_};
    return {taps, windows};
  }

  // Passes the sums of that many rows of outputs to `results`.
  // kStride: that along the width, or 0 where any may be.
  template <int kStride, class Results>
  void add_up(const Sums& sums, int64_t rows, const Results& results) const {
    const auto& [depth, height, width] = g_.windows;
    if (!sums.windows) {
      return with_taps(sums.taps, [&](auto count) { add_rows<count()>(sums.taps, rows, results); });
    }
    with_register_window(height, width, [&, dilation = width.dilation](auto kind) {
      if constexpr (kStride == 0 || kStride == kind.stride) {
        if (sums.windows->border != nullptr) {
          kind.template sum<true>(*sums.windows, dilation, g_.in.flip(), rows, results);
        } else {
          kind.template sum<false>(*sums.windows, dilation, g_.in.flip(), rows, results);
        }
      }
    });
  }

  // Copies the strip's columns of some rows to where these begin with padding.
  void copy_columns(const std::byte* rows, int64_t count, const Strip& strip) {
    const Window& width = g_.windows[2];
    const int64_t last = std::min(strip.begin + kStrip, end_) - 1;
    const int64_t from = std::max<int64_t>(plan_.first_column(strip.begin), 0);
    const int64_t size = std::min(plan_.last_column(last) + 1, width.input) - from;
    if (size <= 0) return;
    // Local copies, since a store of bytes might change any member.
    const int64_t step = width.in_stride, pitch = g_.windows[1].in_stride, copied_pitch = b_.pitch,
                  next_block = next_block_;
    std::byte* to = copied_input_ + from - plan_.first_column(begin_);
    const std::byte* row = rows + from * step;
    for (int64_t r = 0; r < count; ++r, row += pitch, to += copied_pitch) {
      prefetch_line(row + next_block);
      if (step == 1) {
        copy_bytes(to, row, size);
      } else {
        for (int64_t x = 0; x < size; ++x) to[x] = row[x * step];
      }
    }
  }

  void sum_columns(const std::byte* rows, const Strip& strip) {
    const Window& width = g_.windows[2];
    const auto outside = static_cast<uint16_t>(width.size * zero_point_);
    std::fill(row_sums_, row_sums_ + begin_row_ * kStrip, outside);
    std::fill(row_sums_ + end_row_ * kStrip, row_sums_ + input_rows() * kStrip, outside);
    if (begin_row_ == end_row_) return;
    const int64_t pitch = g_.windows[1].in_stride;
    const int64_t count = end_row_ - begin_row_;
    const bool padded = !strip.border.keep.empty();
    if (may_read(rows, pitch, count, strip)) {
      const StripRows in_place{rows + plan_.first_column(strip.begin),
                               pitch,
                               count,
                               prefetch_address(strip),
                               &strip.border,
                               zero_point_};
      sum(padded ? plan_.sum_border_rows : plan_.sum_rows, in_place);
    } else {
      copy_columns(rows, count, strip);
      sum(plan_.sum_rows, {copied_input_ + (strip.begin - begin_) * width.stride, b_.pitch, count, 0});
    }
  }

  void sum(SumRows sum_rows, const StripRows& rows) {
    const Window& width = g_.windows[2];
    sum_rows(rows, width.size, width.dilation, g_.in.flip(), row_sums_ + begin_row_ * kStrip);
  }

  // Whether the tensor's memory has all that a strip's vectors take of these rows, padding too.
  bool may_read(const std::byte* rows, int64_t pitch, int64_t count, const Strip& strip) const {
    const std::byte* const last = rows + (count - 1) * pitch;
    const auto [begin, end] = plan_.spanned;
    const auto* in = static_cast<const std::byte*>(inputs_[0]);
    return plan_.reads_input && std::min(rows, last) - in + plan_.first_column(strip.begin) >= begin &&
           std::max(rows, last) - in + plan_.last_column(strip.begin + kStrip - 1) < end;
  }

  SumTaps row_taps() {
    const Window& height = g_.windows[1];
    for (int64_t k = 0; k < height.size; ++k) {
      taps_[static_cast<size_t>(k)] = row_sums_ + k * height.dilation * kStrip;
    }
    const int64_t common = std::gcd(height.stride, height.dilation);
    // Narrower rows are written in order, each over what the one before it has written too much.
    const int64_t grid = height.dilation / common;
    const bool ordered = end_ - begin_ < kStrip;
    return {taps_.data(),
            height.size,
            height.stride * kStrip,
            height.dilation * kStrip,
            ordered && grid > 1 ? 0 : grid,
            height.stride / common};
  }

  // Requantises all rows of a strip of the block.
  void finish(const Sums& sums, const Strip& strip, size_t slice_segment, std::byte* out) {
    out += strip.begin - begin_;
    const auto& segments = plan_.segments[1];
    for (size_t i = 0; i < segments.size(); ++i) {
      const int64_t from = std::max(segments[i].begin - row_, int64_t{0});
      const int64_t rows = std::min(segments[i].end - row_, rows_) - from;
      if (rows <= 0) continue;
      const size_t table =
          plan_.row_classes[slice_segment * segments.size() + i] * plan_.column_classes.size();
      Sums part = sums;
      std::array<const uint16_t*, most_taps(16)> moved;
      if (part.windows) {
        part.windows->rows += from * part.windows->step;
      } else if (from > 0) {
        for (int64_t k = 0; k < sums.taps.count; ++k) {
          moved[static_cast<size_t>(k)] = sums.taps.taps[k] + from * sums.taps.step;
        }
        part.taps.taps = moved.data();
      }
      finish_rows(part, rows, table + strip.column_class, out + from * out_pitch_);
    }
  }

  void finish_rows(const Sums& sums, int64_t rows, size_t table, std::byte* out) {
    if (!z_->has_maps) return evaluate(sums.taps, rows, table, out);
    if (g_.windows[2].stride == 2) {
      z_->is_scale ? finish_with<2, true>(sums, rows, table, out)
                   : finish_with<2, false>(sums, rows, table, out);
    } else {
      z_->is_scale ? finish_with<1, true>(sums, rows, table, out)
                   : finish_with<1, false>(sums, rows, table, out);
    }
  }

  int64_t offset() const { return g_.window_taps() * zero_point_; }

  template <int kStride, bool kIsScale>
  void finish_with(const Sums& sums, int64_t rows, size_t table, std::byte* out) {
    add_up<kStride>(sums, rows,
                    StripOutputs<kStride, kIsScale>(*z_->quantization, offset(), g_.out.is_signed,
                                                    z_->tables[table], out, out_pitch_));
  }

  // Requantises by the formula.
  void evaluate(const SumTaps& taps, int64_t rows, size_t table, std::byte* out) {
    const size_t* counts = plan_.count_of.data() + table * kStrip;
    const int64_t outputs = std::min(kStrip, end_ - begin_);
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < outputs; ++x) {
        const int64_t place = g_.windows[2].stride == 2 ? x : x / 2 + x % 2 * 16;
        uint16_t sum = 0;
        for (int64_t k = 0; k < taps.count; ++k) {
          sum = static_cast<uint16_t>(sum + taps.taps[k][y * taps.step + place]);
        }
        store(out + y * out_pitch_ + x,
              static_cast<uint8_t>(requantize(sum - offset(), plan_.counts[counts[x]], *z_->quantization)));
      }
    }
  }

  std::byte* out_at(int64_t slice, int64_t row) const {
    return out_ + slice * g_.windows[0].out_stride + row * g_.windows[1].out_stride;
  }

  void write_out(int64_t slice) const {
    const Window& width = g_.windows[2];
    const int64_t outputs = end_ - begin_;
    std::byte* to = out_at(slice, row_) + begin_ * width.out_stride;
    if (plan_.non_temporal) return stream_copy(to, copied_output_, rows_ * outputs);
    if (width.out_stride == 1 && g_.windows[1].out_stride == outputs) {
      std::memcpy(to, copied_output_, static_cast<size_t>(rows_ * outputs));
      return;
    }
    for (int64_t y = 0; y < rows_; ++y, to += g_.windows[1].out_stride) {
      const std::byte* from = copied_output_ + y * outputs;
      if (width.out_stride == 1) {
        std::memcpy(to, from, static_cast<size_t>(outputs));
      } else {
        for (int64_t x = 0; x < outputs; ++x) to[x * width.out_stride] = from[x];
      }
    }
  }

  const BlockPlan& plan_;
  const Geometry& g_;
  const Block& b_;
  const void* const* inputs_;
  void* const* outputs_;
  std::optional<BlockRequantizer> own_;
  const BlockRequantizer* z_;
  std::unique_ptr<std::byte[]> memory_;
  uint16_t* row_sums_;    // of the block's rows of input, of one strip
  uint16_t* slice_sums_;  // of windows in a slice, for each slot of the ring, strip and row of outputs
  uint16_t* outside_;     // those of a slice outside the input
  std::byte* copied_input_;
  std::byte* copied_output_;
  std::vector<int64_t> slot_slices_;       // which slice is in each slot
  std::vector<const std::byte*> in_rows_;  // of the block, padding too
  std::vector<const uint16_t*> taps_;

  int64_t channel_ = kNone;
  int64_t zero_point_ = kNone;
  int64_t tile_ = kNone;
  int64_t begin_ = 0, end_ = 0;  // outputs of the tile
  int64_t row_ = 0, rows_ = 0;   // rows of outputs of the block
  int64_t begin_row_ = 0, end_row_ = 0;
  int64_t out_pitch_ = 0;
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  int64_t next_block_ = 0;
};

}  // namespace
ANYDML_ISA_END
