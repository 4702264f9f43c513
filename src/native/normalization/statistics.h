// What is accumulated of the elements of groups, and what then becomes of each element.
//
// A state has a few numbers for each column of a tile, or, where a tile is one group, for each lane until
// they are put together, and then for that group. Sums go over lanes and chunks in an order that depends on
// sizes and strides alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "normalization/runs.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kLanes = 16;
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct State {
  static constexpr size_t kNumbers = 4;

  alignas(64) double of[kNumbers][kRun];
  int64_t count = 0;  // the elements of each group
};

// A run of each input, and the number in its group of the run's first element, and from one to the next.
struct Run {
  const double* const* in;
  int64_t count;
  int64_t number;
  int64_t number_step;
};

// A group's number: its column's, or that of the tile.
template <bool kColumns>
ANYDML_INLINE double at(const double* numbers, int64_t i) {
  return kColumns ? numbers[i] : numbers[0];
}

// Calls step(i, total) for each element of a run with what it joins: that of its column, or of its lane.
template <bool kColumns, class Step>
ANYDML_INLINE void accumulate(double* totals, int64_t count, const Step& step) {
  if constexpr (kColumns) {
    for (int64_t i = 0; i < count; ++i) totals[i] = step(i, totals[i]);
  } else {
    double lanes[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = totals[lane];
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = step(i + lane, lanes[lane]);
    }
    for (int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] = step(i, lanes[lane]);
    for (int64_t lane = 0; lane < kLanes; ++lane) totals[lane] = lanes[lane];
  }
}

// Puts lanes together in halves.
template <bool kColumns, class Join>
ANYDML_INLINE void join_lanes(double* totals, const Join& join) {
  if constexpr (!kColumns) {
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t lane = 0; lane < half; ++lane) totals[lane] = join(totals[lane], totals[lane + half]);
    }
  }
}
template <bool kColumns>
ANYDML_INLINE void add_lanes(double* totals) {
  join_lanes<kColumns>(totals, [](double a, double b) { return a + b; });
}

template <bool kColumns>
ANYDML_INLINE void fill(double* totals, int64_t width, double value) {
  std::fill_n(totals, kColumns ? width : kLanes, value);
}

// What is below is told by masks of inputs: those that are accumulated, those that an element's result is of,
// and those that are parameters of groups.
constexpr unsigned bit(unsigned input) { return 1U << input; }

// Mean and variance, by chunks whose squares are of differences from their own means, so that nothing
// cancels. y = (x - mean) / sqrt(variance + epsilon) * scale + bias + added
struct Moments {
  static constexpr unsigned kSummed = bit(0);
  static constexpr unsigned kMapped = bit(0) | bit(1) | bit(2) | bit(3);
  static constexpr unsigned kParameters = 0;
  // The numbers that are outputs behind the first one.
  static constexpr std::array<size_t, 2> kWritten = {0, 2};

  bool is_centred;
  bool is_scaled;
  double epsilon;
  std::array<bool, 4> has{};  // inputs

  template <bool kColumns, class Units>
  void chunk(const Units& units, int64_t width, const double* const*, State& state) const {
    double* const sum = state.of[0];
    double* const squares = state.of[1];
    double* const mean = state.of[3];
    fill<kColumns>(sum, width, 0);
    fill<kColumns>(squares, width, 0);
    fill<kColumns>(mean, width, 0);
    const auto count = static_cast<double>(state.count);
    if (is_centred) {
      units([&](const Run& run) {
        const double* const x = run.in[0];
        accumulate<kColumns>(sum, run.count, [&](int64_t i, double total) { return total + x[i]; });
      });
      add_lanes<kColumns>(sum);
      for (int64_t i = 0; i < (kColumns ? width : 1); ++i) mean[i] = sum[i] / count;
    }
    units([&](const Run& run) {
      const double* const x = run.in[0];
      accumulate<kColumns>(squares, run.count, [&](int64_t i, double total) {
        const double apart = x[i] - at<kColumns>(mean, i);
        return total + apart * apart;
      });
    });
    add_lanes<kColumns>(squares);
  }

  void merge(State& all, const State& part, int64_t width) const {
    const auto n = static_cast<double>(all.count);
    const auto m = static_cast<double>(part.count);
    for (int64_t i = 0; i < width; ++i) {
      const double apart = part.of[0][i] / m - all.of[0][i] / n;
      all.of[1][i] += part.of[1][i] + apart * apart * (n * m / (n + m));
      all.of[0][i] += part.of[0][i];
    }
  }

  void finish(State& state, int64_t width, const double* const*) const {
    const auto count = static_cast<double>(state.count);
    for (int64_t i = 0; i < width; ++i) {
      state.of[0][i] /= count;
      state.of[2][i] = state.of[1][i] / count;
      state.of[1][i] = is_scaled ? 1 / std::sqrt(state.of[2][i] + epsilon) : 1;
    }
  }

  template <bool kColumns>
  void map(const Run& run, const State& state, const double* const*, double* y) const {
    const double* const x = run.in[0];
    for (int64_t i = 0; i < run.count; ++i) {
      y[i] = (x[i] - at<kColumns>(state.of[0], i)) * at<kColumns>(state.of[1], i);
    }
    if (has[1]) {
      for (int64_t i = 0; i < run.count; ++i) y[i] *= run.in[1][i];
    }
    for (size_t k = 2; k < has.size(); ++k) {
      if (!has[k]) continue;
      for (int64_t i = 0; i < run.count; ++i) y[i] += run.in[k][i];
    }
  }
};

// The gradients of batch normalisation: of elements, of scales, of biases, of which the last two are sums.
// dx = scale / root * (dy - sum(dy) / n - (x - mean) * sum(dy * (x - mean)) / n / root^2)
struct BatchGradients {
  static constexpr unsigned kSummed = bit(0) | bit(1);
  static constexpr unsigned kMapped = bit(0) | bit(1);
  static constexpr unsigned kParameters = bit(2) | bit(3) | bit(4);
  static constexpr std::array<size_t, 2> kWritten = {1, 0};

  bool is_training;  // whether mean and variance are the elements' own, and not constants
  double epsilon;

  template <bool kColumns, class Units>
  void chunk(const Units& units, int64_t width, const double* const* parameters, State& state) const {
    fill<kColumns>(state.of[0], width, 0);
    fill<kColumns>(state.of[1], width, 0);
    const double* const mean = parameters[2];
    units([&](const Run& run) {
      const double* const x = run.in[0];
      const double* const dy = run.in[1];
      accumulate<kColumns>(state.of[0], run.count, [&](int64_t i, double total) { return total + dy[i]; });
      accumulate<kColumns>(state.of[1], run.count, [&](int64_t i, double total) {
        return total + dy[i] * (x[i] - at<kColumns>(mean, i));
      });
    });
    add_lanes<kColumns>(state.of[0]);
    add_lanes<kColumns>(state.of[1]);
  }

  void merge(State& all, const State& part, int64_t width) const {
    for (size_t k = 0; k < 2; ++k) {
      for (int64_t i = 0; i < width; ++i) all.of[k][i] += part.of[k][i];
    }
  }

  void finish(State& state, int64_t width, const double* const* parameters) const {
    const auto count = static_cast<double>(state.count);
    for (int64_t i = 0; i < width; ++i) {
      const double square = parameters[3][i] + epsilon;
      const double root = std::sqrt(square);
      state.of[2][i] = state.of[1][i] / count / square;
      state.of[1][i] /= root;
    }
    set_factors(state, width, parameters);
  }

  // What all of an element's gradient is multiplied by.
  void set_factors(State& state, int64_t width, const double* const* parameters) const {
    for (int64_t i = 0; i < width; ++i) {
      state.of[3][i] = parameters[4][i] / std::sqrt(parameters[3][i] + epsilon);
    }
  }

  template <bool kColumns>
  void map(const Run& run, const State& state, const double* const* parameters, double* y) const {
    const double* const x = run.in[0];
    const double* const dy = run.in[1];
    if (!is_training) {
      for (int64_t i = 0; i < run.count; ++i) y[i] = dy[i] * at<kColumns>(state.of[3], i);
      return;
    }
    const double share = 1 / static_cast<double>(state.count);
    for (int64_t i = 0; i < run.count; ++i) {
      const double apart = x[i] - at<kColumns>(parameters[2], i);
      const double own = dy[i] - at<kColumns>(state.of[0], i) * share - apart * at<kColumns>(state.of[2], i);
      y[i] = own * at<kColumns>(state.of[3], i);
    }
  }
};

// y = x / max(norm, epsilon)
struct Norm {
  static constexpr unsigned kSummed = bit(0);
  static constexpr unsigned kMapped = bit(0);
  static constexpr unsigned kParameters = 0;
  static constexpr std::array<size_t, 2> kWritten = {0, 0};

  bool is_of_squares;
  double epsilon;

  template <bool kColumns, class Units>
  void chunk(const Units& units, int64_t width, const double* const*, State& state) const {
    double* const sum = state.of[0];
    fill<kColumns>(sum, width, 0);
    units([&](const Run& run) {
      const double* const x = run.in[0];
      if (is_of_squares) {
        accumulate<kColumns>(sum, run.count, [&](int64_t i, double total) { return total + x[i] * x[i]; });
      } else {
        accumulate<kColumns>(sum, run.count,
                             [&](int64_t i, double total) { return total + std::fabs(x[i]); });
      }
    });
    add_lanes<kColumns>(sum);
  }

  void merge(State& all, const State& part, int64_t width) const {
    for (int64_t i = 0; i < width; ++i) all.of[0][i] += part.of[0][i];
  }

  void finish(State& state, int64_t width, const double* const*) const {
    for (int64_t i = 0; i < width; ++i) {
      const double norm = is_of_squares ? std::sqrt(state.of[0][i]) : state.of[0][i];
      state.of[0][i] = 1 / (norm < epsilon ? epsilon : norm);
    }
  }

  template <bool kColumns>
  void map(const Run& run, const State& state, const double* const*, double* y) const {
    const double* const x = run.in[0];
    for (int64_t i = 0; i < run.count; ++i) y[i] = x[i] * at<kColumns>(state.of[0], i);
  }
};

inline double exponential_of_one(double x) {
  return applied_to_one(x, [](Doubles lanes) { return exp_of(lanes); });
}

// e^(x - most) for each element.
template <bool kColumns>
ANYDML_INLINE void exponentials(const double* x, const double* most, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = x[i] - at<kColumns>(most, i);
  apply_to_run(to, count, [](Doubles lanes) { return exp_of(lanes); });
}

// Softmax and its logarithm, by the largest element. Elements that equal it are counted apart from the sum of
// the others' exponentials, so that what is small does not vanish beside them:
// y = e^(x - most) / (count + others), or x - most - ln(1 + (count - 1 + others)).
struct Softmax {
  static constexpr unsigned kSummed = bit(0);
  static constexpr unsigned kMapped = bit(0);
  static constexpr unsigned kParameters = 0;
  static constexpr std::array<size_t, 2> kWritten = {0, 0};
  static constexpr double kLeast = -std::numeric_limits<double>::infinity();

  bool is_logarithm;

  template <bool kColumns, class Units>
  void chunk(const Units& units, int64_t width, const double* const*, State& state) const {
    double* const most = state.of[0];
    double* const others = state.of[1];
    double* const equal = state.of[2];
    double* const nan = state.of[3];
    fill<kColumns>(most, width, kLeast);
    for (double* const each : {others, equal, nan}) fill<kColumns>(each, width, 0);
    const auto larger = [](double a, double b) { return a > b ? a : b; };
    units([&](const Run& run) {
      const double* const x = run.in[0];
      accumulate<kColumns>(most, run.count,
                           [&](int64_t i, double found) { return x[i] > found ? x[i] : found; });
      accumulate<kColumns>(nan, run.count,
                           [&](int64_t i, double found) { return x[i] != x[i] ? x[i] : found; });
    });
    join_lanes<kColumns>(most, larger);
    add_lanes<kColumns>(nan);
    for (int64_t i = 0; i < (kColumns ? width : 1); ++i) most[i] += nan[i];
    units([&](const Run& run) {
      const double* const x = run.in[0];
      alignas(64) double e[kRun];
      exponentials<kColumns>(x, most, run.count, e);
      accumulate<kColumns>(others, run.count, [&](int64_t i, double total) {
        return x[i] < at<kColumns>(most, i) ? total + e[i] : total;
      });
      accumulate<kColumns>(equal, run.count, [&](int64_t i, double total) {
        return x[i] == at<kColumns>(most, i) ? total + 1 : total;
      });
    });
    add_lanes<kColumns>(others);
    add_lanes<kColumns>(equal);
  }

  void merge(State& all, const State& part, int64_t width) const {
    for (int64_t i = 0; i < width; ++i) {
      const double a = all.of[0][i];
      const double b = part.of[0][i];
      const double most = a != a ? a : b != b ? b : a > b ? a : b;
      double others = 0;
      double equal = 0;
      for (const State* const each : {static_cast<const State*>(&all), &part}) {
        if (each->of[0][i] == most) {
          others += each->of[1][i];
          equal += each->of[2][i];
        } else {
          others += (each->of[1][i] + each->of[2][i]) * exponential_of_one(each->of[0][i] - most);
        }
      }
      all.of[0][i] = most;
      all.of[1][i] = others;
      all.of[2][i] = equal;
    }
  }

  void finish(State& state, int64_t width, const double* const*) const {
    for (int64_t i = 0; i < width; ++i) {
      const double others = state.of[1][i] + (state.of[2][i] - 1);
      // Infinities among the elements, and NaN, leave nothing.
      if (!(std::fabs(state.of[0][i]) < std::numeric_limits<double>::infinity())) {
        state.of[0][i] = state.of[1][i] = kNan;
      } else if (!is_logarithm) {
        state.of[1][i] = 1 / (1 + others);
      } else {
        state.of[1][i] = others <= 1 ? applied_to_one(others, [](Doubles t) { return log1p_of(t); })
                                     : applied_to_one(1 + others, [](Doubles t) { return log_of(t); });
      }
    }
  }

  template <bool kColumns>
  void map(const Run& run, const State& state, const double* const*, double* y) const {
    const double* const x = run.in[0];
    if (is_logarithm) {
      for (int64_t i = 0; i < run.count; ++i) {
        y[i] = x[i] - at<kColumns>(state.of[0], i) - at<kColumns>(state.of[1], i);
      }
      return;
    }
    exponentials<kColumns>(x, state.of[0], run.count, y);
    for (int64_t i = 0; i < run.count; ++i) y[i] *= at<kColumns>(state.of[1], i);
  }
};

// 1 for the first of the largest numbers of a group, 0 for all others; the first element, where none is a
// number.
struct Hardmax {
  static constexpr unsigned kSummed = bit(0);
  static constexpr unsigned kMapped = bit(0);
  static constexpr unsigned kParameters = 0;
  static constexpr std::array<size_t, 2> kWritten = {0, 0};
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  template <bool kColumns, class Units>
  void chunk(const Units& units, int64_t width, const double* const*, State& state) const {
    double* const most = state.of[0];
    double* const first = state.of[1];
    fill<kColumns>(most, width, -kNone);
    fill<kColumns>(first, width, kNone);
    units([&](const Run& run) {
      const double* const x = run.in[0];
      accumulate<kColumns>(most, run.count,
                           [&](int64_t i, double found) { return x[i] > found ? x[i] : found; });
    });
    join_lanes<kColumns>(most, [](double a, double b) { return a > b ? a : b; });
    units([&](const Run& run) {
      const double* const x = run.in[0];
      accumulate<kColumns>(first, run.count, [&](int64_t i, double found) {
        const double number = static_cast<double>(run.number + i * run.number_step);
        return (x[i] == at<kColumns>(most, i)) & (number < found) ? number : found;
      });
    });
    join_lanes<kColumns>(first, [](double a, double b) { return a < b ? a : b; });
  }

  void merge(State& all, const State& part, int64_t width) const {
    for (int64_t i = 0; i < width; ++i) {
      const double a = all.of[0][i];
      const double b = part.of[0][i];
      const bool is_first = part.of[1][i] < all.of[1][i];
      if (b > a || (a == b && is_first)) all.of[1][i] = part.of[1][i];
      if (b > a) all.of[0][i] = b;
    }
  }

  void finish(State& state, int64_t width, const double* const*) const {
    for (int64_t i = 0; i < width; ++i) state.of[1][i] = state.of[1][i] == kNone ? 0 : state.of[1][i];
  }

  template <bool kColumns>
  void map(const Run& run, const State& state, const double* const*, double* y) const {
    for (int64_t i = 0; i < run.count; ++i) {
      const double number = static_cast<double>(run.number + i * run.number_step);
      y[i] = number == at<kColumns>(state.of[1], i) ? 1 : 0;
    }
  }
};

ANYDML_ISA_END
