// Sums along all dimensions but for the last one that is interpolated, as rows of doubles of so many of its
// elements as fit the first cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "platform/isa.h"
#include "resample/table.h"
#include "simd/eight.h"

ANYDML_ISA_BEGIN
namespace {

// Doubles that are summed together; buffers are longer, as outputs with fewer elements than their neighbours
// read behind their own.
constexpr int64_t kSpan = 2048;
constexpr int64_t kBuffer = 2 * kSpan + 2 * kEight;
constexpr size_t kMostDimensions = 8;

// A row of the input: pixels of elements, at steps in bytes.
struct Row {
  int64_t pixel_step;
  int64_t element_step;
  std::vector<int64_t> pixels;  // those that are in the tables, where these are few; else empty

  int64_t place(int64_t pixel) const {
    return (pixels.empty() ? pixel : pixels[static_cast<size_t>(pixel)]) * pixel_step;
  }
};

// So many pixels of a row, of so many elements each.
struct Span {
  int64_t begin;
  int64_t pixels;
  int64_t width;

  int64_t elements() const { return pixels * width; }
};

// A dimension that is interpolated before the last one.
struct Outer {
  Table table;
  int64_t in_step;
};

template <class T>
bool is_packed(const Row& row, int64_t width) {
  constexpr int64_t kItem = sizeof(T);
  return row.pixels.empty() && (width == 1 || row.element_step == kItem) && row.pixel_step == width * kItem;
}

// Converts elements that follow each other.
template <class T>
void load_packed(const std::byte* from, int64_t count, double* to) {
  constexpr int64_t kItem = sizeof(T);
  int64_t i = 0;
  for (; i + kEight <= count; i += kEight) store_eight(to + i, widen_eight<T>(from + i * kItem));
  for (; i < count; ++i) to[i] = widen<T, double>(from + i * kItem);
}

template <class T>
void load_span(const std::byte* in, const Row& row, const Span& span, double* to) {
  if (is_packed<T>(row, span.width)) {
    return load_packed<T>(in + row.place(span.begin), span.elements(), to);
  }
  for (int64_t x = 0; x < span.pixels; ++x, to += span.width) {
    const std::byte* const from = in + row.place(span.begin + x);
    if (row.element_step == sizeof(T)) {
      load_packed<T>(from, span.width, to);
    } else {
      for (int64_t c = 0; c < span.width; ++c) to[c] = widen<T, double>(from + c * row.element_step);
    }
  }
}

// to[i] = sum of weights[t] * row[t][i] over t, in the order of t, of rows that are `step` bytes apart.
template <class T>
void add_run(const std::byte* rows, int64_t step, int64_t taps, const double* weights, int64_t count,
             double* to) {
  constexpr int64_t kItem = sizeof(T);
  int64_t i = 0;
  if (taps == 2) {
    const Eight first = all_eight(weights[0]);
    const Eight second = all_eight(weights[1]);
    const std::byte* const next = rows + step;
    for (; i + kEight <= count; i += kEight) {
      store_eight(to + i,
                  widen_eight<T>(rows + i * kItem) * first + widen_eight<T>(next + i * kItem) * second);
    }
  }
  // Several vectors at a time, whose sums do not wait for each other.
  constexpr int64_t kMost = 4 * kEight;
  for (; i + kMost <= count; i += kMost) {
    const std::byte* row = rows + i * kItem;
    Eight weight = all_eight(weights[0]);
    Eight a = widen_eight<T>(row) * weight;
    Eight b = widen_eight<T>(row + kEight * kItem) * weight;
    Eight c = widen_eight<T>(row + 2 * kEight * kItem) * weight;
    Eight d = widen_eight<T>(row + 3 * kEight * kItem) * weight;
    for (int64_t t = 1; t < taps; ++t) {
      row += step;
      weight = all_eight(weights[t]);
      a = a + widen_eight<T>(row) * weight;
      b = b + widen_eight<T>(row + kEight * kItem) * weight;
      c = c + widen_eight<T>(row + 2 * kEight * kItem) * weight;
      d = d + widen_eight<T>(row + 3 * kEight * kItem) * weight;
    }
    store_eight(to + i, a);
    store_eight(to + i + kEight, b);
    store_eight(to + i + 2 * kEight, c);
    store_eight(to + i + 3 * kEight, d);
  }
  for (; i < count; ++i) {
    double sum = widen<T, double>(rows + i * kItem) * weights[0];
    for (int64_t t = 1; t < taps; ++t) sum += widen<T, double>(rows + t * step + i * kItem) * weights[t];
    to[i] = sum;
  }
}

// Adds a row to weighted sums, or begins them.
inline void add_weighted(const double* row, double weight, bool is_first, int64_t count, double* to) {
  if (is_first) {
    for (int64_t i = 0; i < count; ++i) to[i] = row[i] * weight;
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] += row[i] * weight;
  }
}

class OuterSums {
 public:
  OuterSums(std::vector<Outer> outer, Row row) : outer_(std::move(outer)), row_(std::move(row)) {}

  // In doubles: one buffer for each dimension, and the last one for the results.
  int64_t buffers() const { return static_cast<int64_t>(outer_.size()) + 1; }

  // Sums of a span for the outputs of those numbers.
  template <class T>
  void sum(const std::byte* in, const std::array<int64_t, kMostDimensions>& outputs, const Span& span,
           double* buffers, double* to) const {
    sum_before<T>(outer_.size(), in, outputs, span, buffers, to);
  }

 private:
  // Along the first `dimensions`.
  template <class T>
  void sum_before(size_t dimensions, const std::byte* in, const std::array<int64_t, kMostDimensions>& outputs,
                  const Span& span, double* buffers, double* to) const {
    if (dimensions == 0) return load_span<T>(in, row_, span, to);
    const Outer& outer = outer_[dimensions - 1];
    const int64_t o = outputs[dimensions - 1];
    const int64_t taps = outer.table.count_of(o);
    const double* const weights = outer.table.weights_of(o);
    const int64_t step = outer.in_step;
    const int64_t count = span.elements();
    in += outer.table.first_of(o) * step;
    if (taps == 0) {
      std::fill_n(to, count, 0.0);
    } else if (dimensions == 1 && is_packed<T>(row_, span.width)) {
      add_run<T>(in + row_.place(span.begin), step, taps, weights, count, to);
    } else if (dimensions == 1 && row_.element_step == sizeof(T) && span.width >= kEight) {
      for (int64_t x = 0; x < span.pixels; ++x, to += span.width) {
        add_run<T>(in + row_.place(span.begin + x), step, taps, weights, span.width, to);
      }
    } else {
      for (int64_t t = 0; t < taps; ++t) {
        sum_before<T>(dimensions - 1, in + t * step, outputs, span, buffers + kBuffer, buffers);
        add_weighted(buffers, weights[t], t == 0, count, to);
      }
    }
  }

  std::vector<Outer> outer_;
  Row row_;
};

}  // namespace
ANYDML_ISA_END
