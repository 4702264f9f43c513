// A copy of segments: rows of the output are put together of pieces, each a run, a repeated or reversed part
// of the input, or a constant.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "movement/copy.h"
#include "movement/piece_writer.h"
#include "movement/row_shuffles.h"
#include "movement/rows.h"
#include "movement/tuning.h"
#include "movement/view.h"
#include "platform/isa.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

class SegmentCopy final : public Copy {
 public:
  // The constant is of the size of an element; `end` is where the input ends, from its first element on.
  SegmentCopy(View view, int64_t unit, const std::byte* constant, int64_t end)
      : Copy("segments", bytes_of(view, unit)), end_(end) {
    for (int64_t i = 0; i < kWide; i += unit) std::memcpy(constant_ + i, constant, static_cast<size_t>(unit));
    view_ = fold(std::move(view), unit, unit_);
    const SegmentedDimension innermost = std::move(view_.back());
    view_.pop_back();
    step_ = innermost.out_step;
    packs_rows_ = step_ == unit_;
    tabulate(innermost);
    // Rows of few pieces are put together at once.
    while (!view_.empty() && is_expanded() && joins(view_.back())) {
      join(view_.back());
      view_.pop_back();
    }
    for (Piece& piece : pieces_) choose(piece);
    for (const SegmentedDimension& dimension : view_) {
      rows_ *= dimension.size();
      places_.push_back(places_of(dimension));
    }
    for (const PieceGroup& group : groups_) parts_of_row_ += group.parts();
    cut();
    find_shuffles();
    may_stage_ = packs_rows_ && (size_ * unit_ >= kLongRun || shuffles_.rows() > 0);
  }

  int64_t parts() const override { return rows_ * parts_of_row_; }

  void run(int64_t first, int64_t last, const std::byte* in, std::byte* out,
           bool non_temporal) const override {
    if (!chunks_.empty()) {
      StagedWriter writer(non_temporal && may_stage_);
      return copy_rows(first, last, in, out, writer);
    }
    PieceWriter writer(non_temporal && may_stage_, bytes() >= kLongPiece * rows_ * parts_of_row_);
    Row row = row_at(first / parts_of_row_, in, out);
    size_t group = 0;
    int64_t part = first % parts_of_row_;
    while (part >= groups_[group].parts()) part -= groups_[group++].parts();
    auto pieces = static_cast<int64_t>(groups_[group].last - groups_[group].first);
    int64_t repetition = part / pieces;
    int64_t piece = part % pieces;
    for (int64_t left = last - first;;) {
      const PieceGroup& each = groups_[group];
      put(writer, row, pieces_[each.first + static_cast<size_t>(piece)], repetition * each.in_step,
          repetition * each.out_step);
      if (--left == 0) return;
      if (++piece < pieces) continue;
      piece = 0;
      if (++repetition < each.repeats) continue;
      repetition = 0;
      if (++group == groups_.size()) {
        group = 0;
        advance(row, in, out);
      }
      pieces = static_cast<int64_t>(groups_[group].last - groups_[group].first);
    }
  }

 private:
  // So many units, or elements of a constant, from a place in a row of the input to one of the output.
  struct Piece {
    int64_t out;
    int64_t in;
    bool is_constant;
    int64_t count;
    int64_t in_step;
    int64_t period = 1;   // units from one to the next in the output, between which the constant is
    bool is_run = false;  // of bytes
    CopyRuns copy = nullptr;
  };
  struct PieceGroup {
    int64_t repeats;
    int64_t in_step;
    int64_t out_step;
    size_t first;
    size_t last;

    int64_t parts() const { return repeats * static_cast<int64_t>(last - first); }
  };
  // A row that pieces are put into.
  struct Row {
    std::array<int64_t, LoopCursor::kMostLoops> index{};
    const std::byte* in;
    std::byte* out;
    bool is_constant;
  };
  // A run that is copied by as many wide loads and stores as it takes: what is written beyond its end, the
  // next ones write over.
  struct Chunk {
    int64_t in;
    int32_t out;
    int16_t size;
    bool is_constant;
  };
  static constexpr int64_t kWide = sizeof(WideChunk);
  // The rows of the innermost dimension of the view that are a step apart in the input.
  struct ShuffledRows {
    int64_t size;
    int64_t step;
    int64_t begin;
  };

  // What an index of a dimension comes to.
  struct Place {
    int64_t in;
    bool is_constant;
  };

  static int64_t bytes_of(const View& view, int64_t unit) {
    for (const SegmentedDimension& dimension : view) unit *= dimension.size();
    return unit;
  }

  // The pieces of a row, which is a step of all dimensions but the innermost.
  void tabulate(const SegmentedDimension& innermost) {
    size_ = innermost.size();
    const int64_t most = std::max(kPieceBytes, size_ * unit_ / kMostSplits) / unit_ + 1;
    int64_t begin = 0;
    for (const SegmentGroup& group : innermost.groups) {
      const size_t first = pieces_.size();
      int64_t at = begin;
      if (is_spread(group)) {
        const int64_t period = group.size();
        const int64_t at_once = divided_up(most, period);
        for (int64_t done = 0; done < group.repeats; done += at_once) {
          pieces_.push_back({(begin + done * period) * step_, group.segments[0].in + done * group.in_step,
                             false, std::min(at_once, group.repeats - done), group.in_step, period});
        }
        groups_.push_back({1, 0, 0, first, pieces_.size()});
        begin += group.repeats * period;
        continue;
      }
      for (const Segment& segment : group.segments) {
        for (int64_t done = 0; done < segment.size; done += most) {
          pieces_.push_back({(at + done) * step_, segment.in + done * segment.in_step, segment.is_constant,
                             std::min(most, segment.size - done), segment.in_step});
        }
        at += segment.size;
      }
      groups_.push_back({group.repeats, group.in_step, group.size() * step_, first, pieces_.size()});
      begin += group.repeats * group.size();
    }
    int64_t parts = 0;
    for (const PieceGroup& group : groups_) parts += group.parts();
    if (parts <= kMostPieces) expand();
  }

  // Whether a group is single units, each with constants behind it.
  bool is_spread(const SegmentGroup& group) const {
    const std::vector<Segment>& segments = group.segments;
    return packs_rows_ && group.repeats > 1 && segments.size() == 2 && segments[0].size == 1 &&
           !segments[0].is_constant && segments[1].is_constant && group.size() * unit_ <= kPortion;
  }

  // Writes out repetitions.
  void expand() {
    std::vector<Piece> all;
    for (const PieceGroup& group : groups_) {
      for (int64_t i = 0; i < group.repeats; ++i) {
        for (size_t p = group.first; p < group.last; ++p) {
          all.push_back(pieces_[p]);
          all.back().in += i * group.in_step;
          all.back().out += i * group.out_step;
        }
      }
    }
    pieces_ = std::move(all);
    groups_ = {{1, 0, 0, 0, pieces_.size()}};
  }

  bool is_expanded() const { return groups_.size() == 1 && groups_[0].repeats == 1; }

  bool joins(const SegmentedDimension& outer) const {
    const int64_t size = outer.size();
    return outer.out_step == size_ * step_ && size * size_ * unit_ <= kPortion &&
           size * static_cast<int64_t>(pieces_.size()) <= kMostPieces;
  }

  void join(const SegmentedDimension& outer) {
    std::vector<Piece> all;
    for (int64_t i = 0; i < outer.size(); ++i) {
      const Place place = place_of(outer, i);
      for (Piece piece : pieces_) {
        piece.out += i * outer.out_step;
        piece.in += place.in;
        if (place.is_constant) {
          piece.count *= piece.period;
          piece.period = 1;
          piece.is_constant = true;
        }
        const bool continues = !all.empty() && all.back().is_constant && piece.is_constant &&
                               all.back().out + all.back().count * step_ == piece.out;
        if (continues) {
          all.back().count += piece.count;
        } else {
          all.push_back(piece);
        }
      }
    }
    pieces_ = std::move(all);
    groups_ = {{1, 0, 0, 0, pieces_.size()}};
    size_ *= outer.size();
  }

  static Place place_of(const SegmentedDimension& dimension, int64_t index) {
    for (const SegmentGroup& group : dimension.groups) {
      const int64_t size = group.size();
      if (index >= group.repeats * size) {
        index -= group.repeats * size;
        continue;
      }
      const int64_t begin = index / size * group.in_step;
      index %= size;
      for (const Segment& segment : group.segments) {
        if (index < segment.size) return {begin + segment.in + index * segment.in_step, segment.is_constant};
        index -= segment.size;
      }
    }
    return {0, true};
  }

  static std::vector<Place> places_of(const SegmentedDimension& dimension) {
    std::vector<Place> places;
    if (dimension.size() > kMostPlaces) return places;
    for (int64_t i = 0; i < dimension.size(); ++i) places.push_back(place_of(dimension, i));
    return places;
  }

  void choose(Piece& piece) const {
    piece.is_run = !piece.is_constant && packs_rows_ && piece.period == 1 &&
                   (piece.in_step == unit_ || piece.count == 1);
    piece.copy = choose_copy_of_row(unit_, piece.in_step, piece.period * step_);
  }

  static int64_t wide_size(const Chunk& chunk) { return divided_up(chunk.size, kWide) * kWide; }

  // Cuts the pieces of short rows into chunks.
  void cut() {
    if (!packs_rows_ || !is_expanded() || size_ * unit_ > kPortion || unit_ > kWide) return;
    std::vector<Chunk> chunks;
    for (const Piece& piece : pieces_) {
      if (piece.period > 1) return;
      const int64_t size = piece.count * unit_;
      // What is repeated or backward is copied unit by unit, and a constant line by line.
      const int64_t step = piece.is_run ? size : piece.is_constant ? kWide : unit_;
      for (int64_t i = 0; i < size; i += step) {
        const int64_t in = piece.is_constant ? 0 : piece.in + i / unit_ * piece.in_step;
        chunks.push_back({in, static_cast<int32_t>(piece.out + i),
                          static_cast<int16_t>(std::min(step, size - i)), piece.is_constant});
      }
    }
    if (static_cast<int64_t>(chunks.size()) > 4 * kMostPieces) return;
    for (const Chunk& chunk : chunks) {
      if (!chunk.is_constant) last_read_ = std::max(last_read_, chunk.in + wide_size(chunk));
    }
    while (wide_ < chunks.size() && chunks[wide_].out + wide_size(chunks[wide_]) <= size_ * unit_) ++wide_;
    chunks_ = std::move(chunks);
    parts_of_row_ = 1;
  }

  // Rows that follow each other, where a few bytes of the input are all of 16 bytes of the output.
  void find_shuffles() {
    const int64_t size = size_ * unit_;
    if (chunks_.empty() || view_.empty() || view_.back().out_step != size || kWide % unit_ != 0) return;
    int64_t begin = 0;
    for (const SegmentGroup& group : view_.back().groups) {
      for (const Segment& segment : group.segments) {
        if (group.repeats == 1 && !segment.is_constant && segment.size > shuffled_.size) {
          shuffled_ = {segment.size, segment.in_step, begin};
        }
        begin += segment.size;
      }
      begin += (group.repeats - 1) * group.size();
    }
    std::vector<int64_t> from(static_cast<size_t>(size), RowShuffles::kConstant);
    for (const Piece& piece : pieces_) {
      for (int64_t i = 0; i < (piece.is_constant ? 0 : piece.count * unit_); ++i) {
        from[static_cast<size_t>(piece.out + i)] = piece.in + i / unit_ * piece.in_step + i % unit_;
      }
    }
    shuffles_ = RowShuffles(from, shuffled_.step, constant_);
  }

  void copy_rows(int64_t first, int64_t last, const std::byte* in, std::byte* out,
                 StagedWriter& writer) const {
    const int64_t size = size_ * unit_;
    Row row = row_at(first, in, out);
    for (int64_t i = first; i < last;) {
      const int64_t shuffled = shuffle_rows(last - i, row, in, writer);
      if (shuffled == 0) copy_row(row, in, writer.reserve(row.out, size));
      const int64_t copied = std::max<int64_t>(shuffled, 1);
      i += copied;
      if (i < last) advance(row, in, out, copied);
    }
  }

  // As many of the rows from this one on as are whole groups; returns how many these are.
  int64_t shuffle_rows(int64_t rows, const Row& row, const std::byte* in, StagedWriter& writer) const {
    if (shuffles_.rows() == 0 || row.is_constant) return 0;
    const int64_t index = row.index[view_.size() - 1] - shuffled_.begin;
    rows = std::min(rows, shuffled_.size - index);
    if (index < 0 || rows < shuffles_.rows()) return 0;
    const int64_t shuffled = shuffles_.rows_before(end_ - (row.in - in), rows);
    const int64_t size = size_ * unit_;
    const int64_t most = kPortion / (shuffles_.rows() * size) * shuffles_.rows();
    for (int64_t r = 0; r < shuffled; r += most) {
      const int64_t count = std::min(most, shuffled - r);
      shuffles_.copy(count, row.in + r * shuffled_.step, writer.reserve(row.out + r * size, count * size));
    }
    return shuffled;
  }

  void copy_row(const Row& row, const std::byte* in, std::byte* to) const {
    if (row.is_constant) return repeat_pattern(constant_, kWide, size_ * unit_, to);
    const std::byte* const from[] = {row.in, constant_};
    // Near the input's end nothing beyond a piece is read.
    const size_t wide = row.in - in + last_read_ <= end_ ? wide_ : 0;
    for (size_t c = 0; c < wide; ++c) {
      const Chunk& chunk = chunks_[c];
      const std::byte* const begin = from[chunk.is_constant] + chunk.in;
      int64_t i = 0;
      do {
        store_chunk(to + chunk.out + i, load_chunk<WideChunk>(begin + i));
        i += kWide;
      } while (i < chunk.size);
    }
    for (size_t c = wide; c < chunks_.size(); ++c) {
      const Chunk& chunk = chunks_[c];
      copy_short(to + chunk.out, from[chunk.is_constant] + chunk.in, chunk.size);
    }
  }

  Row row_at(int64_t number, const std::byte* in, std::byte* out) const {
    Row row{};
    for (size_t d = view_.size(); d-- > 0;) {
      const int64_t size = view_[d].size();
      row.index[d] = number % size;
      number /= size;
    }
    locate(row, in, out);
    return row;
  }

  // By steps that do not pass the end of the innermost dimension.
  void advance(Row& row, const std::byte* in, std::byte* out, int64_t steps = 1) const {
    for (size_t d = view_.size(); d-- > 0;) {
      row.index[d] += steps;
      if (row.index[d] < view_[d].size()) break;
      row.index[d] = 0;
      steps = 1;
    }
    locate(row, in, out);
  }

  void locate(Row& row, const std::byte* in, std::byte* out) const {
    row.in = in;
    row.out = out;
    row.is_constant = false;
    for (size_t d = 0; d < view_.size(); ++d) {
      const Place place = places_[d].empty() ? place_of(view_[d], row.index[d])
                                             : places_[d][static_cast<size_t>(row.index[d])];
      row.in += place.in;
      row.out += row.index[d] * view_[d].out_step;
      row.is_constant |= place.is_constant;
    }
  }

  void put(PieceWriter& writer, const Row& row, const Piece& piece, int64_t in_offset,
           int64_t out_offset) const {
    std::byte* const out = row.out + piece.out + out_offset;
    const std::byte* const in = row.in + piece.in + in_offset;
    const int64_t size = piece.count * piece.period * unit_;
    if (row.is_constant || piece.is_constant) {
      if (packs_rows_) {
        for (int64_t i = 0; i < size; i += kPortion) {
          const int64_t count = std::min(kPortion, size - i);
          writer.put(out + i, count, [&](std::byte* to) { repeat_pattern(constant_, kWide, count, to); });
        }
      } else {
        for (int64_t i = 0; i < piece.count; ++i) repeat_pattern(constant_, kWide, unit_, out + i * step_);
      }
    } else if (piece.is_run) {
      writer.copy(out, in, size);
    } else if (piece.period > 1) {
      const int64_t period = piece.period * unit_;
      const int64_t most = kPortion / period;
      for (int64_t i = 0; i < piece.count; i += most) {
        const int64_t count = std::min(most, piece.count - i);
        writer.put(out + i * period, count * period, [&](std::byte* to) {
          repeat_pattern(constant_, kWide, count * period, to);
          piece.copy({count, unit_, piece.in_step, period}, in + i * piece.in_step, to);
        });
      }
    } else if (unit_ <= kLongRun) {
      const int64_t most = kPortion / unit_;
      for (int64_t i = 0; i < piece.count; i += most) {
        const int64_t count = std::min(most, piece.count - i);
        writer.put(out + i * step_, count * unit_, [&](std::byte* to) {
          piece.copy({count, unit_, piece.in_step, step_}, in + i * piece.in_step, to);
        });
      }
    } else {
      for (int64_t i = 0; i < piece.count; ++i) {
        writer.copy(out + i * step_, in + i * piece.in_step, unit_);
      }
    }
  }

  int64_t unit_ = 0;
  alignas(kWide) std::byte constant_[kWide];  // again and again
  int64_t end_;                               // of the input
  View view_;                                 // of the dimensions around a row
  std::vector<std::vector<Place>> places_;    // of their indices, where these are not too many
  int64_t size_ = 0;                          // units of a row
  int64_t step_ = 0;                          // from one to the next, in the output
  bool packs_rows_ = false;
  bool may_stage_ = false;
  std::vector<Piece> pieces_;
  std::vector<PieceGroup> groups_;
  int64_t rows_ = 1;
  int64_t parts_of_row_ = 0;
  std::vector<Chunk> chunks_;  // empty where rows are not short
  RowShuffles shuffles_;
  ShuffledRows shuffled_{0, 0, 0};
  size_t wide_ = 0;        // of them may write beyond their ends
  int64_t last_read_ = 0;  // the end of what they read
};

}  // namespace
ANYDML_ISA_END
