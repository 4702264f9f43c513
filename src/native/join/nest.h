// Strided JOIN: element by element, into an output whose rows have gaps or run backward.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"

ANYDML_ISA_BEGIN
namespace {

// An input's elements [begin, end), counted through all inputs, as loops around the loop `elements`.
struct NestPiece {
  int64_t begin;
  int64_t end;
  int64_t out_start;  // offset in the output of the first one, in bytes
  std::vector<Loop> nest;
  Loop elements;
};

class NestJoin final : public Plan {
 public:
  NestJoin(std::vector<NestPiece> pieces, int64_t element_size, std::string description)
      : Plan(std::move(description)),
        pieces_(std::move(pieces)),
        element_size_(element_size),
        copy_(choose_copy_of_elements(element_size)) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t count = pieces_.back().end;
    const int threads = threads_for(2 * count * element_size_);
    const int64_t calls = calls_for(2 * count * element_size_, threads);
    const int64_t step = (count + calls - 1) / calls;
    parallel_for(calls, threads, [&](int64_t part) {
      copy_range(inputs, out, std::min(part * step, count), std::min((part + 1) * step, count));
    });
  }

 private:
  void copy_range(const void* const* inputs, std::byte* out, int64_t first, int64_t last) const {
    auto piece = std::ranges::upper_bound(pieces_, first, {}, &NestPiece::end);
    for (; first < last; first = std::min(last, piece++->end)) {
      const auto* in = static_cast<const std::byte*>(inputs[piece - pieces_.begin()]);
      const int64_t begin = first - piece->begin;
      const int64_t end = std::min(last, piece->end) - piece->begin;
      const int64_t start = offsets_at(piece->nest, begin / piece->elements.size).out +
                            begin % piece->elements.size * piece->elements.out;
      copy_nest(piece->nest, piece->elements, copy_, begin, end, in, out + (piece->out_start + start));
    }
  }

  std::vector<NestPiece> pieces_;
  int64_t element_size_;
  CopyElements copy_;
};

}  // namespace
ANYDML_ISA_END
