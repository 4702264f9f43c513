// A range of rows of adjacent columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// `rows` steps along the axis, of adjacent columns.
struct RowRange {
  int64_t rows;
  const std::byte* in;
  int64_t in_step;
  std::byte* out;
  int64_t out_step;

  RowRange part(int64_t begin, int64_t end) const {
    return {end - begin, in + begin * in_step, in_step, out + begin * out_step, out_step};
  }
};

ANYDML_ISA_END
