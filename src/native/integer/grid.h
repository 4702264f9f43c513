// A convolution's input laid out so that every tap is a shift (polyphase decomposition): elements whose rows
// and columns leave the same remainders modulo the strides lie side by side as a phase, with rows of one
// pitch and padding between them. Places of several rows of the output are then one run of the grid, of which
// those behind the end of a row are no outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "integer/pack.h"
#include "platform/division.h"
#include "platform/isa.h"
#include "simd/byte_runs.h"

ANYDML_ISA_BEGIN
namespace {

inline int64_t padded(int64_t count, int64_t unit) { return divided_up(count, unit) * unit; }

// One dimension: the remainders that taps have, and by how many strides each is shifted.
class Phases {
 public:
  explicit Phases(const Spatial& of) : of_(of), reach_(shift(of.taps - 1)) {
    for (int64_t tap = 0; tap < of.taps; ++tap) {
      const int64_t remainder = tap * of.dilation % of.stride;
      if (std::find(remainders_.begin(), remainders_.end(), remainder) == remainders_.end()) {
        remainders_.push_back(remainder);
      }
    }
  }
  int64_t count() const { return static_cast<int64_t>(remainders_.size()); }
  int64_t shift(int64_t tap) const { return tap * of_.dilation / of_.stride; }
  int64_t reach() const { return reach_; }
  int64_t stride() const { return of_.stride; }
  int64_t phase(int64_t tap) const {
    return std::find(remainders_.begin(), remainders_.end(), tap * of_.dilation % of_.stride) -
           remainders_.begin();
  }
  // The element of a phase's place.
  int64_t element(int64_t phase, int64_t place) const {
    return place * of_.stride + remainders_[static_cast<size_t>(phase)] - of_.padding;
  }

 private:
  Spatial of_;
  int64_t reach_;
  std::vector<int64_t> remainders_;
};

// The places of a block: some rows of the output, and of each the same columns.
struct Part {
  int64_t first_row, rows, begin, end;
};

class Grid {
 public:
  // For parts of at most so many rows and columns, whose places are computed `unit` at a time.
  Grid(const Depth& depth, int64_t rows, int64_t columns, int64_t unit)
      : height(depth.height),
        width(depth.width),
        size_(depth.height.size),
        length_(depth.width.size),
        stride_(depth.width.stride),
        unit_(unit),
        pitch(columns + width.reach()) {
    const int64_t last = (rows - 1) * pitch;
    plane_ = padded(std::max(padded(last + columns, unit) + height.reach() * pitch + width.reach(),
                             last + height.reach() * pitch + padded(pitch, kReadAtOnce)),
                    kReadAtOnce);
  }

  // All places of all phases.
  int64_t places() const { return height.count() * width.count() * plane_; }
  int64_t offset(int64_t row, int64_t column) const {
    return (height.phase(row) * width.count() + width.phase(column)) * plane_ + height.shift(row) * pitch +
           width.shift(column);
  }
  // The places that are computed for a part.
  int64_t run(const Part& part) const {
    return padded((part.rows - 1) * pitch + part.end - part.begin, unit_);
  }

  // A row of a phase: its place in the grid, the input's row, or -1, and which of its places are elements;
  // and of how many rows from this one on that is so, each a pitch behind the one before.
  struct Row {
    int64_t place, y, x, begin, end, alike;
  };
  template <class Body>
  void each_row(const Part& part, const Body& body) const {
    for (int64_t h = 0; h < height.count(); ++h) {
      for (int64_t w = 0; w < width.count(); ++w) {
        const int64_t x = width.element(w, part.begin);
        const int64_t begin = x >= 0 ? 0 : std::min(pitch, divided_up(-x, stride_));
        const int64_t end = x >= length_ ? begin : std::clamp((length_ - 1 - x) / stride_ + 1, begin, pitch);
        int64_t place = (h * width.count() + w) * plane_;
        for (int64_t i = 0; i < part.rows + height.reach(); ++i, place += pitch) {
          const int64_t y = height.element(h, part.first_row + i);
          const bool is_there = y >= 0 && y < size_;
          const int64_t rows =
              std::min(part.rows + height.reach() - i, divided_up(size_ - y, height.stride()));
          body(Row{place, is_there ? y : -1, x + begin * stride_, begin, end, is_there ? rows : 0});
        }
      }
    }
  }

  // Rows may be written so many places at a time, beyond their ends too, if it is in their order.
  static constexpr int64_t kReadAtOnce = 64;

  const Phases height, width;

 private:
  int64_t size_, length_, stride_, unit_;
  int64_t plane_;

 public:
  const int64_t pitch;
};

}  // namespace
ANYDML_ISA_END
