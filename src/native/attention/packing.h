// Queries, keys and values as products read them: packed, or where they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "attention/operands.h"
#include "attention/products.h"
#include "attention/rows.h"
#include "attention/tuning.h"
#include "attention/workspace.h"
#include "dense/tile.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/strided_copy.h"
#include "simd/transpose.h"

ANYDML_ISA_BEGIN
namespace {

// Keys or values of a block, `count` of them from `key` on: elements of each from `first` on.
struct Some {
  const Place& now;
  const Place& past;
  int64_t key;
  int64_t count;
  int64_t first;
  int64_t width;
  const float* bias;
};

// Of tensors of elements of T.
template <class T>
class Packing {
 public:
  explicit Packing(const Attention& attention) : a_(attention), n_(attention.sizes) {}

  // The biases of a part of a head, as singles.
  void load_bias(const void* const* inputs, int64_t first, int64_t count, float* to) const {
    if (!a_.bias.is_there()) return;
    const int64_t step = a_.bias.strides[3];
    load_row<T>(bytes_of(inputs, a_.bias) + first * step, step, count, to);
  }
  int64_t key_bias(int64_t head) const { return n_.query_heads * n_.size + head * n_.size; }
  int64_t value_bias(int64_t head) const { return key_bias(n_.heads) + head * n_.value_size; }

  // The rows of a panel that belong to one head lie at equal distances. Calls body(row, count, head, query)
  // for each such run.
  template <class Body>
  void for_heads(const Block& block, const RowPanel& panel, const Body& body) const {
    for (int64_t r = 0; r < panel.count;) {
      const int64_t row = block.first + panel.first + r;
      const int64_t query = row % n_.queries;
      const int64_t count = std::min(panel.count - r, n_.queries - query);
      body(r, count, block.head * n_.shared() + row / n_.queries, query);
      r += count;
    }
  }

  // to[i][r] = element i, from `first` on, of row r of a panel, with zeros for rows that there are not.
  // `halves` has room for as many of them, and for what is converted at once.
  template <class Element>
  void gather(const Block& block, const RowPanel& panel, const Place& place, int64_t first, int64_t count,
              const void* const* inputs, std::byte* halves, float* to) const {
    constexpr bool kIsHalf = std::is_same_v<Element, Half>;
    using Bits = std::conditional_t<kIsHalf, uint16_t, uint32_t>;
    constexpr int64_t kBits = sizeof(Bits);
    std::byte* const out = kIsHalf ? halves : reinterpret_cast<std::byte*>(to);
    if (panel.count < panel.width) std::memset(out, 0, static_cast<size_t>(count * panel.width * kBits));
    for_heads(block, panel, [&](int64_t r, int64_t rows, int64_t head, int64_t query) {
      const std::byte* const at = bytes_of(inputs, place) + place.at(block.sequence, head, query);
      gather_tile<Bits>({at + first * place.strides[3], place.strides[3], place.strides[2]}, count, rows,
                        out + r * kBits, panel.width * kBits);
    });
    if constexpr (kIsHalf) {
      widen_halves(halves, reinterpret_cast<std::byte*>(to),
                   divided_up(count * panel.width, kConvertedAtOnce));
    }
  }

  // The queries of a panel, a column each: elements from `first` on.
  void pack_queries(const Block& block, const RowPanel& panel, int64_t first, int64_t depth,
                    const void* const* inputs, Workspace& space, float* to) const {
    // Keys come later.
    gather<T>(block, panel, a_.query, first, depth, inputs, reinterpret_cast<std::byte*>(space.keys), to);
    if (!a_.bias.is_there()) return;
    for_heads(block, panel, [&](int64_t r, int64_t rows, int64_t head, int64_t) {
      load_bias(inputs, head * n_.size + first, depth, space.row.data());
      for (int64_t i = 0; i < depth; ++i) {
        const float bias = space.row[static_cast<size_t>(i)];
        float* const column = to + i * panel.width + r;
        for (int64_t j = 0; j < rows; ++j) column[j] += bias;
      }
    });
  }

  // Few queries, a row each, with zeros up to a multiple of kWidest.
  void pack_few_queries(const Block& block, int64_t first, int64_t depth, const void* const* inputs,
                        Workspace& space) const {
    const int64_t size = padded(depth, kWidest);
    for_heads(block, {0, block.count, 0}, [&](int64_t r, int64_t rows, int64_t head, int64_t query) {
      load_bias(inputs, head * n_.size + first, depth, space.row.data());
      for (int64_t j = 0; j < rows; ++j) {
        float* const row = space.query + (r + j) * size;
        load_row<T>(bytes_of(inputs, a_.query) + a_.query.at(block.sequence, head, query + j) +
                        first * a_.query.strides[3],
                    a_.query.strides[3], depth, row);
        for (int64_t i = 0; a_.bias.is_there() && i < depth; ++i) row[i] += space.row[static_cast<size_t>(i)];
        std::fill_n(row + depth, size - depth, 0.0f);
      }
    });
  }

  // Keys as rows of a matrix, which are copied, unless few read them, or they lie side by side: what lies far
  // apart shares lines of the caches.
  Matrix keys_of(const Some& some, const Block& block, const void* const* inputs, Workspace& space) const {
    const int64_t step = step_in_place(some, block);
    if (step != 0 && (block.count <= kPanel || step == some.width * kSingle)) {
      return {address(some, block, some.key, inputs), step};
    }
    copy_pieces(some, block, kPanel, some.width, some.width, inputs, space.keys);
    return {reinterpret_cast<const std::byte*>(space.keys), some.width * kSingle};
  }

  // Values by panels of columns, with zeros behind the last one.
  ValuePanels values_of(const Some& some, const Block& block, const void* const* inputs,
                        Workspace& space) const {
    const int64_t step = step_in_place(some, block);
    const int64_t whole = some.width % kPanel;
    if (step != 0 && (whole == 0 || whole == kColumnLanes) && block.count <= kPanel) {
      return {address(some, block, some.key, inputs), kPanel * kSingle, step};
    }
    copy_pieces(some, block, kKeys * kPanel, kPanel, padded(some.width, kPanel), inputs, space.values);
    return {reinterpret_cast<const std::byte*>(space.values), kKeys * kPanel * kSingle, kPanel * kSingle};
  }

  // Values as whole rows, with zeros up to a multiple of kWidest.
  Matrix rows_of_values(const Some& some, const Block& block, const void* const* inputs,
                        Workspace& space) const {
    const int64_t step = step_in_place(some, block);
    const int64_t width = padded(some.width, kWidest);
    if (step != 0 && width == some.width) return {address(some, block, some.key, inputs), step};
    copy_pieces(some, block, kPanel, width, width, inputs, space.values);
    return {reinterpret_cast<const std::byte*>(space.values), width * kSingle};
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

  const std::byte* address(const Some& some, const Block& block, int64_t j, const void* const* inputs) const {
    const Place& place = j < block.past ? some.past : some.now;
    const int64_t position = j < block.past ? j : j - block.past;
    return bytes_of(inputs, place) + place.at(block.sequence, block.head, position) +
           some.first * place.strides[3];
  }

  // Where they lie, if they can be read as they are: the step from row to row; 0 where they cannot.
  int64_t step_in_place(const Some& some, const Block& block) const {
    const bool is_past = some.key + some.count <= block.past;
    const Place& place = is_past ? some.past : some.now;
    const bool is_one = is_past || some.key >= block.past;
    const bool has_bias = !is_past && a_.bias.is_there();
    if (sizeof(T) != sizeof(float) || !is_one || has_bias || place.strides[3] != kItem) return 0;
    return place.strides[2];
  }

  // Copies rows as singles with their bias, in pieces as wide as a panel: piece p of row j comes to
  // to + p * panel_step + j * row_step, in floats, with zeros up to `filled` columns.
  void copy_pieces(const Some& some, const Block& block, int64_t panel_step, int64_t row_step, int64_t filled,
                   const void* const* inputs, float* copy) const {
    for (int64_t j = 0; j < some.count; ++j) {
      const bool is_old = some.key + j < block.past;
      const int64_t step = (is_old ? some.past : some.now).strides[3];
      const float* const bias = is_old || !a_.bias.is_there() ? nullptr : some.bias;
      const std::byte* const at = address(some, block, some.key + j, inputs);
      float* to = copy + j * row_step;
      for (int64_t c = 0; c < some.width; c += kPanel, to += panel_step) {
        const int64_t count = std::min(kPanel, some.width - c);
        load_piece(at + c * step, step, count, to);
        for (int64_t i = 0; bias != nullptr && i < count; ++i) to[i] += bias[c + i];
        if (count < kPanel && c + count < filled) std::fill_n(to + count, filled - c - count, 0.0f);
      }
    }
  }

  static void load_piece(const std::byte* from, int64_t step, int64_t count, float* to) {
    if (sizeof(T) == sizeof(float) && step == kItem && count == kPanel) {
      copy_known<kPanel * kSingle>(reinterpret_cast<std::byte*>(to), from);
    } else {
      load_row<T>(from, step, count, to);
    }
  }

  Attention a_;
  Sizes n_;
};

}  // namespace
ANYDML_ISA_END
