// A line: a group of elements side by side (rows), or such groups side by side, of as many as there are
// lanes, whose elements are a step apart (columns); and loops over it.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "normalization/wide.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/half.h"
#include "stores/row_stream.h"

ANYDML_ISA_BEGIN

// One tensor of a line, or of lines side by side: vectors of kLanes elements, `step` bytes apart; an only
// element, where it is the same for all lanes.
struct Vectors {
  const std::byte* at = nullptr;
  int64_t step = 0;
  bool is_one = false;
};

// Of as many singles as there are lanes.
inline constexpr int64_t kLineBytes = kLanes * static_cast<int64_t>(sizeof(float));

struct Line {
  std::array<Vectors, 4> in;
  std::byte* out;
  int64_t out_step;
  int64_t count;     // of vectors
  int64_t whole;     // those of them that are full, which come first
  int64_t lanes;     // of the others
  int64_t back;      // how many lanes these begin before what is theirs; 0 where there is nothing before them
  int64_t elements;  // of a group
  float* room;       // for the line's elements, and a vector before them
  bool is_of_halves = false;    // whether its singles are halves in a buffer, to be narrowed once more
  int64_t ahead = 0;            // how far from the first tensor's elements those lie that are to be fetched
  RowStream* stream = nullptr;  // of the row before, where results go past the caches
};

// While vector i is computed, sends of the row before as much as a vector has.
template <class T>
ANYDML_INLINE void send_vector(RowStream* stream, int64_t i) {
  constexpr int64_t kInLine = kLine / (kLanes * static_cast<int64_t>(sizeof(T)));
  if (stream != nullptr && i % kInLine == kInLine - 1) stream->send_line();
}

template <class T>
ANYDML_INLINE Wide vector_at(const Vectors& x, int64_t i) {
  const std::byte* const at = x.at + i * x.step;
  return x.is_one ? broadcast_wide(widen<T, double>(at)) : load_wide_lanes<T>(at);
}
// Of which there are but some lanes: the last ones, or, where nothing is before them, the first.
template <class T>
ANYDML_INLINE Wide part_at(const Line& line, const Vectors& x, int64_t i) {
  if (x.is_one) return vector_at<T>(x, i);
  const std::byte* const at = x.at + i * x.step;
  if (line.back > 0) return load_wide_lanes<T>(at - line.back * static_cast<int64_t>(sizeof(T)));
  T some[kLanes];
  std::memcpy(some, at, static_cast<size_t>(line.lanes) * sizeof(T));
  for (int64_t k = line.lanes; k < kLanes; ++k) some[k] = some[line.lanes - 1];
  return load_wide_lanes<T>(reinterpret_cast<const std::byte*>(some));
}

// A vector that counts whole.
struct Every {
  template <bool kColumns>
  ANYDML_INLINE Wide counted(const Wide& x) const {
    return x;
  }
};
// One of which in rows only the lanes count that are its own.
struct Part {
  int64_t begin;
  int64_t end;

  template <bool kColumns>
  ANYDML_INLINE Wide counted(const Wide& x) const {
    return kColumns ? x : some_lanes(x, begin, end);
  }
};

// Calls body(i, x, lanes) for each vector of the first tensor.
template <class T, class Body>
ANYDML_INLINE void for_vectors(const Line& line, const Body& body) {
  RowStream* const stream = line.stream;
  for (int64_t i = 0; i < line.whole; ++i) {
    send_vector<T>(stream, i);
    body(i, load_wide_lanes<T>(line.in[0].at + i * line.in[0].step), Every{});
  }
  const Part part{line.back, line.back + line.lanes};
  for (int64_t i = line.whole; i < line.count; ++i) body(i, part_at<T>(line, line.in[0], i), part);
}

// The results of a part, of which in rows those before it are the same once more.
template <class T, bool kColumns>
ANYDML_INLINE void put_part(const Line& line, int64_t i, const Wide& y) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  std::byte* const to = line.out + i * line.out_step;
  if (!kColumns && line.back > 0) return store_wide_lanes<T>(to - line.back * kItem, y);
  std::byte some[kLanes * sizeof(T)];
  store_wide_lanes<T>(some, y);
  std::memcpy(to, some + line.back * kItem, static_cast<size_t>(line.lanes * kItem));
}

// Writes results, and rounds to odd what becomes halves by way of singles, so that it is rounded once.
template <class T, bool kColumns>
ANYDML_INLINE void store_results(const Line& line, std::byte* to, const Wide& y) {
  if constexpr (std::is_same_v<T, float> && kColumns) {
    if (line.is_of_halves) {
      ANYDML_UNROLL(16)
      for (int64_t p = 0; p < kParts; ++p) {
        const auto singles = round_to_odd<static_cast<int>(kDoubleLanes)>(y.parts[p]);
        std::memcpy(to + p * static_cast<int64_t>(sizeof(singles)), &singles, sizeof(singles));
      }
      return;
    }
  }
  store_wide_lanes<T>(to, y);
}

// Writes result(i, x, at) for each vector x of the first tensor, at(k) being that of another. A row's part is
// read before anything is written, as the output may lie over the input.
template <class T, bool kColumns, class Result>
ANYDML_INLINE void map_line(const Line& line, const Result& result) {
  const auto of_part = [&](int64_t i) ANYDML_INLINE_LAMBDA {
    return result(i, part_at<T>(line, line.in[0], i),
                  [&](size_t k) ANYDML_INLINE_LAMBDA { return part_at<T>(line, line.in[k], i); });
  };
  const bool has_last = !kColumns && line.whole < line.count;
  const Wide last = has_last ? of_part(line.whole) : Wide{};
  const std::byte* const ahead = line.in[0].at + line.ahead;
  for (int64_t i = 0; i < line.whole; ++i) {
    const Wide x = load_wide_lanes<T>(line.in[0].at + i * line.in[0].step);
    if constexpr (!kColumns) prefetch_line(ahead + i * line.in[0].step);
    const Wide y = result(i, x, [&](size_t k) ANYDML_INLINE_LAMBDA { return vector_at<T>(line.in[k], i); });
    store_results<T, kColumns>(line, line.out + i * line.out_step, y);
  }
  if (has_last) return put_part<T, kColumns>(line, line.whole, last);
  for (int64_t i = line.whole; i < line.count; ++i) put_part<T, kColumns>(line, i, of_part(i));
}

// One number for all lanes in rows, those of the lanes in columns.
template <bool kColumns, class Join>
ANYDML_INLINE Wide joined_lanes(const Wide& x, const Join& join) {
  if constexpr (kColumns) return x;
  return broadcast_wide(joined(x, join));
}
template <bool kColumns>
ANYDML_INLINE Wide added_lanes(const Wide& x) {
  return joined_lanes<kColumns>(x, [](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return a + b; });
}

// Of numbers, or of vectors.
template <class V>
ANYDML_INLINE V root_of(V x) {
  if constexpr (std::is_same_v<V, double>) {
    return std::sqrt(x);
  } else {
    return square_root<double>(x);
  }
}

// Applies a function of numbers and of vectors to all lanes, or to a number of which all are copies.
template <bool kColumns, class Function>
ANYDML_INLINE Wide for_lanes(const Wide& x, const Function& function) {
  if constexpr (kColumns) return each_of(function, x);
  double first;
  std::memcpy(&first, &x, sizeof(first));
  return broadcast_wide(function(first));
}

ANYDML_ISA_END
