// JOIN: concatenation along an axis, a copy of bits whatever they mean.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "join/nest.h"
#include "join/policy.h"
#include "join/row_pieces.h"
#include "join/rows.h"
#include "platform/isa.h"
#include "simd/strided_copy.h"

ANYDML_ISA_BEGIN
namespace {

// The dimensions before the axis, or those from it on, as loops over an input and its part of the output.
std::vector<Loop> loops_before(const Layout& in, const Layout& out, size_t axis) {
  std::vector<Loop> loops;
  for (size_t d = 0; d < axis; ++d) loops.push_back({in.sizes[d], in.strides[d], out.strides[d]});
  return loops;
}

std::vector<Loop> loops_from(const Layout& in, const Layout& out, size_t axis) {
  std::vector<Loop> loops;
  for (size_t d = axis; d < in.sizes.size(); ++d)
    loops.push_back({in.sizes[d], in.strides[d], out.strides[d]});
  return loops;
}

int64_t count_of(const std::vector<Loop>& loops) {
  int64_t count = 1;
  for (const Loop& loop : loops) count *= loop.size;
  return count;
}

// Whether a tensor's elements are contiguous in the order of the loops.
bool is_packed(const std::vector<Loop>& loops, int64_t element_size, int64_t Loop::* stride) {
  for (size_t d = loops.size(); d-- > 0;) {
    if (loops[d].size > 1 && loops[d].*stride != element_size) return false;
    element_size *= loops[d].size;
  }
  return true;
}

bool continues(const Loop& outer, const Loop& inner) {
  return outer.in == inner.size * inner.in && outer.out == inner.size * inner.out;
}

// Merges neighbouring dimensions before the axis that are one in the memory of every input and of the output,
// so that they stay the same for all.
void fold_rows(std::vector<RowPiece>& pieces) {
  for (size_t d = pieces[0].rows.size(); d-- > 0;) {
    const bool single = pieces[0].rows[d].size == 1;
    const bool joined =
        d + 1 < pieces[0].rows.size() && std::ranges::all_of(pieces, [d](const RowPiece& piece) {
          return continues(piece.rows[d], piece.rows[d + 1]);
        });
    if (!single && !joined) continue;
    for (RowPiece& piece : pieces) {
      if (!single) piece.rows[d + 1].size *= piece.rows[d].size;
      piece.rows.erase(piece.rows.begin() + static_cast<int64_t>(d));
    }
  }
}

RowPiece make_row_piece(const Layout& in, const Layout& out, size_t axis, int64_t begin) {
  const int64_t element_size = size_of(in.type);
  std::vector<Loop> nest = loops_from(in, out, axis);
  const int64_t size = count_of(nest) * element_size;
  const bool packed = is_packed(nest, element_size, &Loop::in);
  nest = fold(std::move(nest));
  const Loop elements = take_innermost(nest);
  return {begin,           begin + size, loops_before(in, out, axis), packed,
          std::move(nest), elements,     choose_copy_of_runs(size),   0,
          nullptr};
}

Rows make_rows(const Request& request, size_t axis) {
  const Layout& out = request.outputs[0];
  Rows rows{};
  rows.element_size = size_of(out.type);
  for (const Layout& in : request.inputs) {
    rows.pieces.push_back(make_row_piece(in, out, axis, rows.size));
    rows.size = rows.pieces.back().end;
  }
  for (RowPiece& piece : rows.pieces) {
    const int64_t wide = wide_size(piece.size());
    if (wide > piece.size() && piece.begin + wide <= rows.size) {
      piece.wide = wide;
      piece.copy_wide = choose_copy_of_runs(wide);
    }
  }
  fold_rows(rows.pieces);
  const std::vector<Loop>& loops = rows.pieces[0].rows;
  rows.count = count_of(loops);
  rows.neighbours = loops.empty() ? 1 : loops.back().size;
  rows.contiguous = is_packed(loops, rows.size, &Loop::out);
  return rows;
}

std::vector<NestPiece> make_nests(const Request& request, size_t axis) {
  const Layout& out = request.outputs[0];
  std::vector<NestPiece> pieces;
  int64_t position = 0;
  int64_t begin = 0;
  for (const Layout& in : request.inputs) {
    std::vector<Loop> nest = fold(loops_from(in, out, 0));
    const int64_t end = begin + count_of(nest);
    const Loop elements = take_innermost(nest);
    pieces.push_back({begin, end, position * out.strides[axis], std::move(nest), elements});
    position += in.sizes[axis];
    begin = end;
  }
  return pieces;
}

void check(const Request& request, size_t axis) {
  const Layout& out = request.outputs[0];
  int64_t position = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Layout& in = tensor(request.inputs, i);
    require(in.type == out.type, "the types of input and output differ");
    require(in.sizes.size() == out.sizes.size() && axis < out.sizes.size(), "the dimensions differ");
    for (size_t d = 0; d < in.sizes.size(); ++d) {
      require(d == axis || in.sizes[d] == out.sizes[d], "the sizes of input and output differ");
    }
    require(in.sizes[axis] <= out.sizes[axis] - position, "the inputs exceed the output");
    position += in.sizes[axis];
  }
  require(position == out.sizes.at(axis), "the inputs do not fill the output");
}

// Whether a row of the output, which is one step of the dimensions before the axis, is contiguous.
bool has_packed_rows(const Layout& out, size_t axis) {
  return is_packed(loops_from(out, out, axis), size_of(out.type), &Loop::out);
}

}  // namespace

std::unique_ptr<Plan> make_join(const Request& request, std::string& reason) {
  const Layout& out = tensor(request.outputs, 0);
  const auto axis = static_cast<size_t>(request.attributes.integer("Axis"));
  const std::string type(name_of(out.type));
  if (size_of(out.type) == 0) {
    reason = "no join of " + type + ", whose elements are not whole bytes";
    return nullptr;
  }
  check(request, axis);
  const std::string description = "join " + type + ", inputs: " + std::to_string(request.inputs.size());
  if (has_packed_rows(out, axis)) {
    Rows rows = make_rows(request, axis);
    JoinPolicy policy(rows);
    return std::make_unique<RowJoin>(std::move(rows), std::move(policy), description);
  }
  return std::make_unique<NestJoin>(
      make_nests(request, axis), size_of(out.type),
      description + ", element by element; declined: row algorithms (the output's rows have gaps)");
}

ANYDML_ISA_END
