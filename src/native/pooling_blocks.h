// Pooling with small windows: block by block of outputs, and strip by strip in a block.
//
// Padding is read as the input's zero point, which adds nothing to a sum, so that outputs differ in what they
// divide by alone. Everything that does not depend on the data is made once, with the plan.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "isa.h"
#include "plan.h"
#include "pooling_geometry.h"
#include "pooling_requantize.h"
#include "pooling_strips.h"
#include "stream.h"

ANYDML_ISA_BEGIN
namespace {

class BlockPooling final : public Plan {
 public:
  // Where it pays, and scratch is bounded; see the limits.
  static bool suits(const Geometry& g) {
    if (g.window_taps() > kMostTaps) return false;
    const auto& [depth, height, width] = g.windows;
    if (depth.extent() > kMostExtent || height.extent() > kMostExtent || width.extent() > kMostColumns) {
      return false;
    }
    const bool one = width.output == 1 || (width.size >= 32 && width.stride >= width.size);
    if (one || width.stride > 2 || height.stride > 4 * height.size) return false;
    int64_t kinds = 1;
    for (const Window& window : g.windows) {
      if (window.edges() > kMostEdges) return false;
      kinds *= window.edges() + 1;
    }
    return kinds <= kMostKinds && fitted(g).has_value();
  }

  BlockPooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)), geometry_(geometry), block_(*fitted(geometry)) {
    const auto& [depth, height, width] = geometry_.windows;
    for (size_t i = 0; i < 3; ++i) segments_[i] = segments_of(geometry_.windows[i]);
    const bool dilated = width.size > 1 && width.dilation > 1;
    const bool single = width.stride == 1;
    sum_rows_ =
        single ? sum_rows_for<1, false>(width.size, dilated) : sum_rows_for<2, false>(width.size, dilated);
    sum_edges_ =
        single ? sum_rows_for<1, true>(width.size, dilated) : sum_rows_for<2, true>(width.size, dilated);
    make_tiles();
    make_counts();
    span_ = span();
    const double written = static_cast<double>(geometry_.channels.size * geometry_.batch.size) *
                           static_cast<double>(depth.output * height.output * width.output);
    streams_ = width.out_stride == 1 && height.out_stride == width.output && tiles_ == 1 &&
               written >= static_cast<double>(kStreamFrom);
    writes_output_ = width.out_stride == 1 && tile_begin(1) >= kStrip && !streams_;
    outputs_per_channel_ = geometry_.batch.size * depth.output * height.output * width.output;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(geometry_.bytes());
    const int64_t units = geometry_.channels.size * units_per_channel();
    const int64_t parts = std::min<int64_t>(threads, units);
    // Of all channels, where these do not differ.
    std::optional<Requantizer> shared;
    if (geometry_.same_quantization()) shared.emplace(*this, geometry_.quantization(inputs, 0));
    parallel_for(parts, threads, [&](int64_t i) {
      Worker worker(*this, inputs, outputs, shared ? &*shared : nullptr);
      worker.run(share_begin(i, parts, units), share_begin(i + 1, parts, units));
    });
  }

 private:
  static constexpr int64_t kMostTaps = 257;  // so that 16 bits hold a sum
  static constexpr int64_t kMostExtent = 512;
  static constexpr int64_t kMostColumns = 4096;
  static constexpr int64_t kMostEdges = 256;
  static constexpr int64_t kMostKinds = 512;  // of lines for a strip
  static constexpr int64_t kMostScratch = 700 << 10;
  static constexpr int64_t kBlockBytes = 32 << 10;  // of input, so that a block stays in the nearest cache
  static constexpr int64_t kBlockRows = 128;
  static constexpr int64_t kSlack = 128;  // what whole vectors read and write beyond the last column

  // How much is made at once.
  struct Block {
    int64_t tiles;       // along the width
    int64_t strips;      // of a tile, at most
    int64_t rows;        // of outputs
    int64_t slices;      // of outputs
    int64_t input_rows;  // that these rows need
    int64_t pitch;       // of copied rows of input
    int64_t ring;        // slices whose sums are kept, 0 where windows have no depth

    int64_t sums() const { return input_rows * kStrip; }
    int64_t slice_sums() const { return strips * rows * kStrip; }
    int64_t copied_input() const { return input_rows * pitch + kSlack; }
    int64_t copied_output() const { return rows * strips * kStrip + kSlack; }
    int64_t scratch() const {
      return 2 * (sums() + ring * slice_sums() + rows * kStrip) + copied_input() + copied_output();
    }
  };

  static std::optional<Block> fitted(const Geometry& g) {
    const auto& [depth, height, width] = g.windows;
    for (int64_t most = 2048; most >= kStrip; most /= 2) {
      Block b{};
      b.tiles = (width.output - 1) / most + 1;
      const int64_t outputs = (width.output - 1) / b.tiles + 1;
      b.strips = (outputs - 1) / kStrip + 1;
      b.pitch = (outputs - 1) * width.stride + width.extent();
      const bool deep = depth.size > 1;
      b.ring = deep ? depth.extent() : 0;
      const int64_t rows = std::clamp(kBlockBytes / (b.pitch * height.stride), int64_t{1}, kBlockRows);
      const int64_t blocks = (height.output - 1) / std::max(rows, std::min(height.extent(), kBlockRows)) + 1;
      b.rows = (height.output - 1) / blocks + 1;
      b.input_rows = (b.rows - 1) * height.stride + height.extent();
      const int64_t slices = 8 * kBlockBytes / (b.input_rows * b.pitch * depth.stride);
      b.slices = deep ? std::min(depth.output, std::max(4 * depth.extent(), slices)) : 1;
      if (b.scratch() <= kMostScratch) return b;
    }
    return std::nullopt;
  }

  // Some 32 outputs from `begin` on. What its outputs divide by, beside the rows' and slices' share, is its
  // kind; the last strip of a tile overlaps the one before it. Its input is read in place where whole vectors
  // may be: where there is padding, what lies there in memory is masked.
  struct Strip {
    int64_t begin;
    size_t kind;
    bool in_place;
    StripEdge edge;  // empty where all is inside
  };
  using Counts = std::array<int64_t, kStrip>;

  int64_t tile_begin(int64_t tile) const { return geometry_.windows[2].output * tile / tiles_; }

  void make_tiles() {
    tiles_ = block_.tiles;
    Counts middle;
    middle.fill(geometry_.windows[2].size);
    kinds_.push_back(middle);
    size_t segment = 0;
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const int64_t begin = tile_begin(tile), end = tile_begin(tile + 1);
      first_strip_.push_back(strips_.size());
      for (int64_t x = begin; x < end; x += kStrip) {
        const int64_t from = std::max(begin, std::min(x, end - kStrip));
        Counts counts;
        while (segment > 0 && segments_[2][segment].begin > from) --segment;
        for (int64_t i = 0; i < kStrip; ++i) {
          while (segment + 1 < segments_[2].size() && segments_[2][segment].end <= from + i) ++segment;
          counts[static_cast<size_t>(i)] = segments_[2][segment].counted;
        }
        size_t kind = 0;
        while (kind < kinds_.size() && kinds_[kind] != counts) ++kind;
        if (kind == kinds_.size()) kinds_.push_back(counts);
        const Window& width = geometry_.windows[2];
        const int64_t last = last_column(std::min(from + kStrip, end) - 1);
        const bool padded = first_column(from) < 0 || last >= width.input;
        const bool in_place = width.in_stride == 1 && !(width.size == 1 && width.stride == 2);
        strips_.push_back({from, kind, in_place, padded ? edge_at(from) : StripEdge{}});
      }
    }
    first_strip_.push_back(strips_.size());
  }

  StripEdge edge_at(int64_t begin) const {
    const Window& width = geometry_.windows[2];
    const int64_t columns = kStrip * width.stride + width.extent();
    StripEdge edge;
    std::vector<std::byte> outside;
    for (int64_t x = first_column(begin); x < first_column(begin) + columns; ++x) {
      const bool inside = 0 <= x && x < width.input;
      edge.keep.push_back(inside ? 0xff : 0);
      outside.push_back(std::byte{!inside});
    }
    sum_rows_({outside.data(), 0, 1}, width.size, width.dilation, 0, {outside.data(), 0}, edge.taps.data());
    return edge;
  }

  // Rows are of one class where windows have equally many counted rows and slices.
  void make_counts() {
    for (const Segment& slices : segments_[0]) {
      for (const Segment& rows : segments_[1]) {
        row_classes_.push_back(index_of(slices.counted * rows.counted, row_counts_));
      }
    }
    for (const int64_t rows : row_counts_) {
      for (const Counts& kind : kinds_) {
        for (const int64_t columns : kind) count_of_.push_back(index_of(rows * columns, counts_));
      }
    }
  }
  static size_t index_of(int64_t value, std::vector<int64_t>& values) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) return static_cast<size_t>(found - values.begin());
    values.push_back(value);
    return values.size() - 1;
  }

  int64_t first_column(int64_t o) const {
    return o * geometry_.windows[2].stride - geometry_.windows[2].start_padding;
  }
  int64_t last_column(int64_t o) const { return first_column(o) + geometry_.windows[2].extent() - 1; }

  // The tensor's bytes lie between these two, from its first element on.
  std::pair<int64_t, int64_t> span() const {
    std::pair<int64_t, int64_t> span{0, 1};
    const auto widen = [&](int64_t size, int64_t stride) {
      if (size > 1) (stride < 0 ? span.first : span.second) += (size - 1) * stride;
    };
    widen(geometry_.batch.size, geometry_.batch.in);
    widen(geometry_.channels.size, geometry_.channels.in);
    for (const Window& window : geometry_.windows) widen(window.input, window.in_stride);
    return span;
  }

  int64_t row_blocks() const { return (geometry_.windows[1].output - 1) / block_.rows + 1; }
  int64_t slice_blocks() const { return (geometry_.windows[0].output - 1) / block_.slices + 1; }
  int64_t units_per_channel() const { return geometry_.batch.size * slice_blocks() * tiles_ * row_blocks(); }

  // The lines of one quantisation.
  struct Requantizer {
    explicit Requantizer(const BlockPooling& plan) : tables(plan.row_counts_.size() * plan.kinds_.size()) {}
    Requantizer(const BlockPooling& plan, const Quantization& z) : Requantizer(plan) { set(plan, z); }

    void set(const BlockPooling& plan, const Quantization& z) {
      if (quantization == z) return;
      quantization = z;
      lines.resize(plan.counts_.size());
      plain = has_lines = true;
      const int64_t taps = plan.geometry_.window_taps();
      const bool thorough = plan.outputs_per_channel_ >= 512;
      for (size_t i = 0; i < lines.size() && has_lines; ++i) {
        has_lines = LineFinder(z, plan.counts_[i], taps).find(thorough, lines[i]);
        plain = plain && lines[i].plain();
      }
      if (!has_lines) return;
      const size_t* count = plan.count_of_.data();
      for (StripLines& table : tables) {
        for (int64_t place = 0; place < kStrip; ++place) {
          const int64_t stride = plan.geometry_.windows[2].stride;
          const Line& line = lines[count[line_place(place, stride)]];
          table.slopes[place] = line.slope;
          if (plain) continue;
          table.adds[place] = line.add;
          table.rounders[place] = line.rounder;
        }
        count += kStrip;
      }
    }

    std::optional<Quantization> quantization;
    std::vector<Line> lines;  // for each count
    std::vector<StripLines> tables;
    bool plain, has_lines;
  };

  // What one thread has, and does.
  class Worker {
   public:
    Worker(const BlockPooling& plan, const void* const* inputs, void* const* outputs,
           const Requantizer* shared)
        : plan_(plan),
          g_(plan.geometry_),
          b_(plan.block_),
          inputs_(inputs),
          outputs_(outputs),
          own_(shared ? std::nullopt : std::optional<Requantizer>(plan)),
          z_(shared ? shared : &*own_),
          memory_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(b_.scratch() + kLine))),
          slot_slices_(static_cast<size_t>(b_.ring), kNone),
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
        const int64_t tile = digit(plan_.tiles_);
        const int64_t slice_block = digit(plan_.slice_blocks());
        // In the order of memory, unless another channel means another quantisation.
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
      if (plan_.streams_) stream_fence();
    }

   private:
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

    // Rows of input are copied to between what is padding in each.
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
        while (plan_.segments_[0][segment].end <= o) ++segment;
        std::byte* out = plan_.writes_output_ ? out_at(o, row_) + begin_ : copied_output_;
        out_pitch_ = plan_.writes_output_ ? g_.windows[1].out_stride : end_ - begin_;
        const int64_t first = o * depth.stride - depth.start_padding;
        if (b_.ring > 0) {
          pool_slices(first, segment, out);
        } else {
          const std::byte* rows = rows_of(first);
          for_each_strip([&](const Strip& strip, int64_t) {
            sum_columns(rows, strip);
            const SumTaps taps = row_taps();
            finish(taps, strip, segment, out);
          });
        }
        if (!plan_.writes_output_) write_out(o);
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
          sum_columns(rows, strip);
          uint16_t* to = slot_sums(slot, i);
          const SumTaps taps = row_taps();
          with_taps(taps, [&](auto count) {
            add_rows<count()>(taps, rows_,
                              [&](int64_t y, const StripSums& sums) { sums.store(to + y * kStrip); });
          });
        });
      }
      for_each_strip([&](const Strip& strip, int64_t i) {
        for (int64_t k = 0; k < depth.size; ++k) {
          const int64_t slice = first + k * depth.dilation;
          const bool inside = slice >= 0 && slice < depth.input;
          taps_[static_cast<size_t>(k)] =
              inside ? slot_sums(static_cast<size_t>(slice % b_.ring), i) : outside_;
        }
        finish({taps_.data(), depth.size, kStrip, 0, 0, 0}, strip, segment, out);
      });
    }

    uint16_t* slot_sums(size_t slot, int64_t strip) const {
      return slice_sums_ + static_cast<int64_t>(slot) * b_.slice_sums() + strip * b_.rows * kStrip;
    }

    template <class Body>
    void for_each_strip(const Body& body) const {
      const size_t first = plan_.first_strip_[static_cast<size_t>(tile_)];
      const size_t end = plan_.first_strip_[static_cast<size_t>(tile_) + 1];
      for (size_t i = first; i < end; ++i) body(plan_.strips_[i], static_cast<int64_t>(i - first));
    }

    int64_t first_row() const { return row_ * g_.windows[1].stride - g_.windows[1].start_padding; }
    int64_t input_rows() const { return (rows_ - 1) * g_.windows[1].stride + g_.windows[1].extent(); }

    // The block's rows inside the input, of that slice.
    const std::byte* rows_of(int64_t slice) {
      const auto& [depth, height, width] = g_.windows;
      // Neither rows nor slices outside are read; their sums are known.
      begin_row_ = std::clamp<int64_t>(0 - first_row(), 0, input_rows());
      end_row_ = std::clamp(height.input - first_row(), begin_row_, input_rows());
      if (slice < 0 || slice >= depth.input) end_row_ = begin_row_;
      if (begin_row_ == end_row_) return nullptr;
      const int64_t count = end_row_ - begin_row_;
      const std::byte* rows = in_ + slice * depth.in_stride + (first_row() + begin_row_) * height.in_stride;
      // Behind a block lies the next one, of the same plane or of another.
      const int64_t bytes = height.input == 1 ? 0 : rows_ * height.stride * height.in_stride;
      const auto strips = static_cast<int64_t>(plan_.first_strip_[static_cast<size_t>(tile_) + 1] -
                                               plan_.first_strip_[static_cast<size_t>(tile_)]);
      ahead_ = {rows + bytes, bytes / (strips * (count + rows_))};
      return rows;
    }

    // The strip's columns of some rows, to where these begin with padding.
    void copy_columns(const std::byte* rows, int64_t count, const Strip& strip) {
      const Window& width = g_.windows[2];
      const int64_t last = std::min(strip.begin + kStrip, end_) - 1;
      const int64_t from = std::max<int64_t>(plan_.first_column(strip.begin), 0);
      const int64_t size = std::min(plan_.last_column(last) + 1, width.input) - from;
      if (size <= 0) return;
      // Not read again after each store, which might be to any of these.
      const int64_t step = width.in_stride, pitch = g_.windows[1].in_stride, copied_pitch = b_.pitch;
      std::byte* to = copied_input_ + from - plan_.first_column(begin_);
      const std::byte* row = rows + from * step;
      for (int64_t r = 0; r < count; ++r, row += pitch, to += copied_pitch) {
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
      const bool padded = !strip.edge.keep.empty();
      if (may_read(rows, pitch, count, strip)) {
        const StripRows in_place{rows + plan_.first_column(strip.begin), pitch, count, &strip.edge,
                                 zero_point_};
        sum(padded ? plan_.sum_edges_ : plan_.sum_rows_, in_place);
      } else {
        copy_columns(rows, count, strip);
        sum(plan_.sum_rows_, {copied_input_ + (strip.begin - begin_) * width.stride, b_.pitch, count});
      }
      ahead_.from += count * ahead_.step;
    }

    void sum(SumRows sum_rows, const StripRows& rows) {
      const Window& width = g_.windows[2];
      sum_rows(rows, width.size, width.dilation, g_.in.flip(), ahead_, row_sums_ + begin_row_ * kStrip);
    }

    // Whether the tensor's memory has all that a strip's vectors take of these rows, padding too.
    bool may_read(const std::byte* rows, int64_t pitch, int64_t count, const Strip& strip) const {
      const std::byte* const last = rows + (count - 1) * pitch;
      const auto [begin, end] = plan_.span_;
      const auto* in = static_cast<const std::byte*>(inputs_[0]);
      return strip.in_place && std::min(rows, last) - in + plan_.first_column(strip.begin) >= begin &&
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

    // All rows of a strip of the block.
    void finish(const SumTaps& taps, const Strip& strip, size_t slice_segment, std::byte* out) {
      out += strip.begin - begin_;
      const auto& segments = plan_.segments_[1];
      for (size_t i = 0; i < segments.size(); ++i) {
        const int64_t from = std::max(segments[i].begin - row_, int64_t{0});
        const int64_t rows = std::min(segments[i].end - row_, rows_) - from;
        if (rows <= 0) continue;
        const size_t table = plan_.row_classes_[slice_segment * segments.size() + i] * plan_.kinds_.size();
        SumTaps part = taps;
        std::array<const uint16_t*, kMostTaps> moved;
        if (from > 0) {
          for (int64_t k = 0; k < taps.count; ++k) {
            moved[static_cast<size_t>(k)] = taps.taps[k] + from * taps.step;
          }
          part.taps = moved.data();
        }
        finish_rows(part, rows, table + strip.kind, out + from * out_pitch_);
      }
    }

    void finish_rows(const SumTaps& taps, int64_t rows, size_t table, std::byte* out) {
      if (!z_->has_lines) return evaluate(taps, rows, table, out);
      if (g_.windows[2].stride == 2) {
        z_->plain ? finish_with<2, true>(taps, rows, table, out)
                  : finish_with<2, false>(taps, rows, table, out);
      } else {
        z_->plain ? finish_with<1, true>(taps, rows, table, out)
                  : finish_with<1, false>(taps, rows, table, out);
      }
    }

    int64_t offset() const { return g_.window_taps() * zero_point_; }

    template <int kStride, bool kPlain>
    void finish_with(const SumTaps& taps, int64_t rows, size_t table, std::byte* out) {
      const StripOutputs<kStride, kPlain> output(*z_->quantization, offset(), g_.out.is_signed);
      const StripLines& lines = z_->tables[table];
      const int64_t pitch = out_pitch_;
      with_taps(taps, [&](auto count) {
        add_rows<count()>(taps, rows, [=, &lines, ahead = ahead_](int64_t y, const StripSums& sums) {
          ahead.ask(y);
          output(sums, lines, out + y * pitch);
        });
      });
      ahead_.from += rows * ahead_.step;
    }

    // By the formula.
    void evaluate(const SumTaps& taps, int64_t rows, size_t table, std::byte* out) {
      const size_t* counts = plan_.count_of_.data() + table * kStrip;
      const int64_t outputs = std::min(kStrip, end_ - begin_);
      for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < outputs; ++x) {
          const int64_t place = g_.windows[2].stride == 2 ? x : x / 2 + x % 2 * 16;
          uint16_t sum = 0;
          for (int64_t k = 0; k < taps.count; ++k) {
            sum = static_cast<uint16_t>(sum + taps.taps[k][y * taps.step + place]);
          }
          store(out + y * out_pitch_ + x, static_cast<uint8_t>(requantize(
                                              sum - offset(), plan_.counts_[counts[x]], *z_->quantization)));
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
      if (plan_.streams_) return stream_copy(to, copied_output_, rows_ * outputs);
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

    const BlockPooling& plan_;
    const Geometry& g_;
    const Block& b_;
    const void* const* inputs_;
    void* const* outputs_;
    std::optional<Requantizer> own_;
    const Requantizer* z_;
    std::unique_ptr<std::byte[]> memory_;
    uint16_t* row_sums_;    // of the block's rows of input, of one strip
    uint16_t* slice_sums_;  // of windows in a slice, for each slot of the ring, strip and row of outputs
    uint16_t* outside_;     // those of a slice outside the input
    std::byte* copied_input_;
    std::byte* copied_output_;
    std::vector<int64_t> slot_slices_;  // which slice is in each slot
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
    Ahead ahead_{};
  };

  Geometry geometry_;
  Block block_;
  int64_t tiles_ = 1;
  std::array<std::vector<Segment>, 3> segments_;
  std::vector<Strip> strips_;
  std::vector<size_t> first_strip_;  // of each tile
  std::vector<Counts> kinds_;
  std::vector<int64_t> row_counts_;  // of each class of rows
  std::vector<size_t> row_classes_;  // for each segment of slices and of rows
  std::vector<int64_t> counts_;      // all that occur
  std::vector<size_t> count_of_;     // which one, for each class of rows, kind of strip and output of it
  SumRows sum_rows_, sum_edges_;
  std::pair<int64_t, int64_t> span_;
  int64_t outputs_per_channel_;
  bool writes_output_;  // in place
  bool streams_;
};

}  // namespace
ANYDML_ISA_END
