// Gradients of batch normalisation of packed runs, without buffers of numbers: in sixteen lanes of doubles,
// with the order of additions of BatchGradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "normalization/runs.h"
#include "normalization/statistics.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// A vector of elements: where there are fewer than there are lanes, by way of memory of their own.
template <class T>
ANYDML_INLINE Wide some_of(const std::byte* from, int64_t count) {
  if (count >= kLanes) return load_wide_lanes<T>(from);
  std::byte some[kLanes * sizeof(T)]{};
  std::memcpy(some, from, static_cast<size_t>(count) * sizeof(T));
  return load_wide_lanes<T>(some);
}
template <class T>
ANYDML_INLINE void put_some(std::byte* to, const Wide& x, int64_t count) {
  if (count >= kLanes) return store_wide_lanes<T>(to, x);
  std::byte some[kLanes * sizeof(T)];
  store_wide_lanes<T>(some, x);
  std::memcpy(to, some, static_cast<size_t>(count) * sizeof(T));
}

// Runs of one distance, or one run.
struct DirectRuns {
  const std::byte* x;
  const std::byte* dy;
  int64_t x_step;
  int64_t dy_step;
  int64_t count;
  int64_t width;
  bool is_large = false;  // more than the caches hold
};

template <class T>
struct DirectGradients {
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));

  // sum(dy) and sum(dy * (x - mean)): of columns, or in lanes.
  template <bool kColumns>
  static void sum(const DirectRuns& runs, const double* mean, double* sums, double* products) {
    if constexpr (kColumns) {
      // The last columns once more with those before them.
      for (int64_t c = 0; c < runs.width; c += kLanes) {
        const int64_t first = c + kLanes > runs.width ? std::max<int64_t>(0, runs.width - kLanes) : c;
        const auto add_some = runs.is_large ? add<true> : add<false>;
        add_some(runs, first, wide_at(mean + first), sums + first, products + first);
      }
    } else {
      const Wide same = broadcast_wide(mean[0]);
      Wide all = wide_at(sums);
      Wide weighted = wide_at(products);
      int64_t i = 0;
      for (; i + kLanes <= runs.width; i += kLanes) {
        const Wide dy = load_wide_lanes<T>(runs.dy + i * kItem);
        all = all + dy;
        weighted = weighted + dy * (load_wide_lanes<T>(runs.x + i * kItem) - same);
      }
      if (const int64_t count = runs.width - i; count > 0) {
        const Wide dy = some_of<T>(runs.dy + i * kItem, count);
        all = all + dy;
        weighted = weighted + some_lanes(dy * (some_of<T>(runs.x + i * kItem, count) - same), 0, count);
      }
      put_wide(sums, all);
      put_wide(products, weighted);
    }
  }

  // dx of runs, which are written `step` apart; `parameters` are the mean, what is taken from gradients, the
  // factor of what is apart from the mean, and that of all.
  template <bool kColumns, bool kIsTraining>
  static void map(const DirectRuns& runs, const double* const (&parameters)[4], std::byte* to, int64_t step) {
    if (kColumns && runs.width % kLanes == 0) return map_rows<kIsTraining>(runs, parameters, to, step);
    for (int64_t i = 0; i < runs.count; ++i) {
      map_run<kColumns, kIsTraining>(
          {runs.x + i * runs.x_step, runs.dy + i * runs.dy_step, 0, 0, 1, runs.width}, parameters,
          to + i * step);
    }
  }

 private:
  template <bool kColumns, bool kIsTraining>
  static void map_run(const DirectRuns& run, const double* const (&parameters)[4], std::byte* to) {
    // Those of one group stay in registers.
    const Wide only[] = {broadcast_wide(parameters[0][0]), broadcast_wide(parameters[1][0]),
                         broadcast_wide(parameters[2][0]), broadcast_wide(parameters[3][0])};
    const auto result = [&](int64_t i, const auto& load) ANYDML_INLINE_LAMBDA {
      const auto at = [&](size_t k)
                          ANYDML_INLINE_LAMBDA { return kColumns ? wide_at(parameters[k] + i) : only[k]; };
      Wide y = load(run.dy + i * kItem);
      if constexpr (kIsTraining) y = (y - at(1)) - (load(run.x + i * kItem) - at(0)) * at(2);
      return y * at(3);
    };
    // What is behind whole vectors is read before anything is written, as gradients may lie over elements.
    const int64_t whole = run.width / kLanes * kLanes;
    const int64_t last = std::max<int64_t>(0, run.width - kLanes);
    const auto some = [&](const std::byte* from) ANYDML_INLINE_LAMBDA { return some_of<T>(from, run.width); };
    const Wide rest = whole < run.width ? result(last, some) : Wide{};
    for (int64_t i = 0; i < whole; i += kLanes) {
      store_wide_lanes<T>(to + i * kItem, result(i, [](const std::byte* from) ANYDML_INLINE_LAMBDA {
                            return load_wide_lanes<T>(from);
                          }));
    }
    if (whole < run.width) put_some<T>(to + last * kItem, rest, run.width - last);
  }

  // Of rows of whole vectors, some columns after the others, whose parameters stay in registers.
  template <bool kIsTraining>
  static void map_rows(const DirectRuns& runs, const double* const (&parameters)[4], std::byte* to,
                       int64_t step) {
    for (int64_t c = 0; c < runs.width; c += kLanes) {
      const Wide mean = wide_at(parameters[0] + c);
      const Wide taken = wide_at(parameters[1] + c);
      const Wide apart_by = wide_at(parameters[2] + c);
      const Wide factor = wide_at(parameters[3] + c);
      const int64_t offset = c * kItem;
      for (int64_t i = 0; i < runs.count; ++i) {
        Wide y = load_wide_lanes<T>(runs.dy + i * runs.dy_step + offset);
        if constexpr (kIsTraining) {
          const Wide apart = load_wide_lanes<T>(runs.x + i * runs.x_step + offset) - mean;
          y = (y - taken) - apart * apart_by;
        }
        store_wide_lanes<T>(to + i * step + offset, y * factor);
      }
    }
  }

  template <bool kAhead>
  static void add(const DirectRuns& runs, int64_t first, const Wide& mean, double* sums, double* products) {
    const int64_t offset = first * kItem;
    const int64_t count = runs.width - first;
    Wide all{};
    Wide weighted{};
    for (int64_t i = 0; i < runs.count; ++i) {
      if constexpr (kAhead) {  // the same columns of the next rows, as they lie apart
        prefetch_line(runs.dy + (i + runs.count) * runs.dy_step + offset);
        prefetch_line(runs.x + (i + runs.count) * runs.x_step + offset);
      }
      const Wide dy = some_of<T>(runs.dy + i * runs.dy_step + offset, count);
      all = all + dy;
      weighted = weighted + dy * (some_of<T>(runs.x + i * runs.x_step + offset, count) - mean);
    }
    put_wide(sums, all);
    put_wide(products, weighted);
  }
};

ANYDML_ISA_END
