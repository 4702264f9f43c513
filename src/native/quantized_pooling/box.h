// The reduction of one window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "platform/isa.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/sums.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// The elements of a window that lie inside the input. sum of (x - zero point) = sum of x - taps inside *
// zero point: a tap on padding is a real 0 and adds none.
struct Box {
  int64_t start;
  int64_t run, step;  // elements, and bytes from one to the next
  int64_t rows, row_step;
  int64_t slices, slice_step;
  int64_t inside;   // taps
  int64_t repeats;  // taps on each element that is visited

  Box(const std::array<Window, 3>& windows, const Taps& d, const Taps& h, const Taps& w)
      : start(d.start + h.start + w.start),
        run(w.visited),
        step(w.visited == 1 ? 1 : windows[2].tap_step),
        rows(h.visited),
        row_step(windows[1].tap_step),
        slices(d.visited),
        slice_step(windows[0].tap_step),
        inside(d.inside * h.inside * w.inside) {
    const int64_t visited = d.visited * h.visited * w.visited;
    repeats = visited < inside ? inside / visited : 1;
    if (step != 1) return;
    // Rows, and slices, that follow each other in memory without a gap are one run of bytes.
    if (rows == 1 || row_step == run) run *= std::exchange(rows, 1);
    if (rows == 1 && (slices == 1 || slice_step == run)) run *= std::exchange(slices, 1);
  }

  // Whether it is one run of consecutive bytes.
  bool is_run() const { return step == 1 && rows == 1 && slices == 1 && repeats == 1; }

  int64_t sum(const std::byte* in, uint8_t flip) const {
    in += start;
    int64_t sum = 0;
    for (int64_t d = 0; d < slices; ++d) {
      for (int64_t h = 0; h < rows; ++h) sum += sum_of_row(in + d * slice_step + h * row_step, flip);
    }
    return sum * repeats;
  }

 private:
  int64_t sum_of_row(const std::byte* in, uint8_t flip) const {
    if (step == 1) return sum_bytes(in, run, flip);
    int64_t sum = 0;
    for (int64_t k = 0; k < run; ++k) sum += load<uint8_t>(in + k * step) ^ flip;
    return sum;
  }
};

}  // namespace
ANYDML_ISA_END
