// HARDMAX of columns in parts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "normalization/column_block.h"
#include "normalization/hardmax_lines.h"
#include "normalization/line.h"
#include "normalization/long_columns.h"
#include "platform/isa.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

struct HardmaxColumns {
  static constexpr int64_t kMostLines = ColumnBlock::kMostLines;

  // Of sixteen columns.
  struct State {
    std::array<float, kLanes> most{};
    std::array<int64_t, kLanes> places;  // -1 where there is no number yet

    State() { places.fill(-1); }
  };

  static void add(State* states, const ColumnPart& part) {
    const int64_t rows = rows_of_block(part);
    const ColumnBlock block(rows, part.lines(), part.is_half);
    part.for_rows(rows, [&](const ColumnPart& some) {
      block.load(some.in, some.in_step, some.rows, some.columns, false);
      const int64_t lines = some.lines();
      for (int64_t n = 0; n < lines; ++n) {
        prefetch_share(n, lines, some.in + some.rows * some.in_step, some.in_step, some.rows,
                       some.columns * (some.is_half ? sizeof(Half) : sizeof(float)));
        State own;
        HardmaxLine::first_of_columns(block.as_line(n, some.rows, nullptr), own.most, own.places);
        for (int64_t& place : own.places) place += place < 0 ? 0 : some.first;
        merge(states[n], own);
      }
    });
  }

  static void close(State&) {}

  static void merge(State& all, const State& part) {
    for (size_t k = 0; k < kLanes; ++k) {
      if (part.places[k] < 0 || (all.places[k] >= 0 && !(part.most[k] > all.most[k]))) continue;
      all.most[k] = part.most[k];
      all.places[k] = part.places[k];
    }
  }

  static void finish(State& state) {
    for (int64_t& place : state.places) place = std::max<int64_t>(0, place);
  }

  static void map(const State* states, const ColumnPart& part) {
    const int64_t rows = rows_of_block(part);
    const int64_t lines = part.lines();
    const ColumnBlock block(rows, lines, part.is_half);
    std::memset(block.line(0), 0, static_cast<size_t>(block.line(lines) - block.line(0)));
    part.for_rows(rows, [&](const ColumnPart& some) {
      const auto mark = [&](float with) {
        for (int64_t n = 0; n < lines; ++n) mark_line(states[n], some, block.line(n), with);
      };
      mark(1);
      block.put(some.rows, some.columns, some.out, some.out_step, some.is_streamed);
      mark(0);
    });
  }

 private:
  static int64_t rows_of_block(const ColumnPart& part) {
    return ColumnBlock::kNumbers / (part.lines() * kLanes);
  }

  // Of a line of zeros, or such a line again.
  static void mark_line(const State& state, const ColumnPart& some, std::byte* line, float with) {
    for (size_t k = 0; k < kLanes; ++k) {
      const int64_t row = state.places[k] - some.first;
      if (0 <= row && row < some.rows) store(line + row * kLineBytes + k * sizeof(float), with);
    }
  }
};

ANYDML_ISA_END
