// MULTIHEAD_ATTENTION and its revision by online softmax (FlashAttention): blocks of keys pass under a block
// of queries, so that no more than a block of scores is ever there. Threads share the blocks of queries, each
// of which sees the blocks of keys in one order.
//
// All is in single precision: products and sums of weighted values are one chain of fused multiply-adds for a
// block, in the order of the elements of a head and of the keys.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attention/few_rows.h"
#include "attention/operands.h"
#include "attention/products.h"
#include "attention/rows.h"
#include "attention/tuning.h"
#include "attention/weights.h"
#include "attention/workspace.h"
#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/bits_as.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/strided_copy.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
class AttentionPlan final : public Plan {
 public:
  AttentionPlan(Attention attention, std::string description)
      : Plan(std::move(description)), a_(attention), n_(attention.sizes) {
    const int64_t multiplications =
        n_.batch * n_.query_heads * n_.queries * n_.total() * (n_.size + n_.value_size);
    const int64_t elements = n_.batch * n_.heads * n_.total() * (n_.size + n_.value_size);
    cost_ = multiplications / kMultiplicationsOfAByte + elements * kItem;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(cost_);
    present(a_.key, a_.past_key, a_.present_key, 0, inputs, outputs, threads);
    present(a_.value, a_.past_value, a_.present_value, 1, inputs, outputs, threads);
    const int64_t rows = n_.shared() * n_.queries;
    const int64_t parts = divided_up(n_.value_size, kColumns);
    const int64_t others = n_.batch * n_.heads * parts;
    const int64_t height = height_for(rows, others, parts, threads);
    const int64_t blocks = divided_up(rows, height);
    const auto workers = static_cast<size_t>(std::min<int64_t>(threads, others * blocks));
    const std::unique_ptr<Workspace[]> spaces(new Workspace[workers]);
    for (size_t i = 0; i < workers; ++i) {
      spaces[i].reserve(height, std::min(n_.size, kDepth), std::min(n_.value_size, kColumns));
    }
    parallel_for(others * blocks, threads, [&](int64_t task, int worker) {
      // Blocks of a head follow each other, as its keys and values may be in a cache. Where they see different
      // keys, the last ones of all heads, which see the most, come first.
      const bool is_causal = a_.lengths.is_there();
      const int64_t block = is_causal ? blocks - 1 - task / others : task % blocks;
      const int64_t other = is_causal ? task % others : task / blocks;
      const int64_t head = other / parts;
      const int64_t first = block * height;
      const int64_t count = std::min(height, rows - first);
      const int64_t column = other % parts * kColumns;
      Block each{head / n_.heads, head % n_.heads, first, count, column, 0, 0, 0, rows <= kFewRows};
      each.columns = std::min(kColumns, n_.value_size - column);
      each.past = past_of(each.sequence, inputs);
      for (int64_t r = 0; r < count; ++r) each.most = std::max(each.most, seen_by(each, r));
      attend(each, inputs, static_cast<std::byte*>(outputs[0]), spaces[static_cast<size_t>(worker)]);
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

  // Rows of a block, a multiple of those of a panel. Heads that are multiplied in parts have one panel, so that
  // a part of them is packed once.
  int64_t height_for(int64_t rows, int64_t others, int64_t parts, int threads) const {
    if (n_.size > kDepth || parts > 1) return kPanel;
    const int64_t fitting = std::min(kBlockRows, kBlockNumbers / (n_.size + n_.value_size)) / kPanel * kPanel;
    int64_t height = std::min(std::max(kPanel, fitting), padded(rows, kPanel));
    while (height > kPanel && others * divided_up(rows, height) < threads * kBlocksOfAThread) height -= kPanel;
    // As even as can be.
    return padded(divided_up(rows, divided_up(rows, height)), kPanel);
  }

  // Never more than there are, whatever the data say.
  int64_t past_of(int64_t sequence, const void* const* inputs) const {
    if (!a_.lengths.is_there()) return n_.past;
    const std::byte* const at = bytes_of(inputs, a_.lengths) + a_.lengths.at(sequence, 0, 0);
    const auto most = static_cast<double>(n_.past);
    double length = 0;
    if (a_.length_type == DataType::kInt32) length = load<int32_t>(at);
    if (a_.length_type == DataType::kFloat32) length = load<float>(at);
    if (a_.length_type == DataType::kFloat16) length = widen<Half, float>(at);
    return length > 0 ? static_cast<int64_t>(std::min(length, most)) : 0;
  }

  // Keys that a row of a block sees, the first of all.
  int64_t seen_by(const Block& block, int64_t row) const {
    if (!a_.lengths.is_there()) return n_.total();
    return block.past + std::min((block.first + row) % n_.queries + 1, n_.keys);
  }

  // The biases of a part of a head, as singles.
  void load_bias(const void* const* inputs, int64_t first, int64_t count, float* to) const {
    if (!a_.bias.is_there()) return;
    const int64_t step = a_.bias.strides[3];
    load_row<T>(bytes_of(inputs, a_.bias) + first * step, step, count, to);
  }
  int64_t key_bias(int64_t head) const { return n_.query_heads * n_.size + head * n_.size; }
  int64_t value_bias(int64_t head) const { return key_bias(n_.heads) + head * n_.value_size; }

  // The rows of a panel that belong to one head lie at equal distances. Calls body(row, count, head, query) for
  // each such run.
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
      widen_halves(halves, reinterpret_cast<std::byte*>(to), divided_up(count * panel.width, kConvertedAtOnce));
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

  // What masks and relative positions add to the scores of a block of keys, for a panel of rows, or few.
  void add(const Block& block, const RowPanel& panel, int64_t key, int64_t count, const void* const* inputs,
           Workspace& space) const {
    Added& added = space.added;
    added.adds = Adds::kNothing;
    if (!a_.ends.is_there() && !a_.mask.is_there() && !a_.relative.is_there()) return;
    const auto filter = static_cast<float>(a_.filter);
    const auto is_same = [&](const Place& place) {
      return !place.is_there() || (place.strides[2] == 0 && (place.strides[1] == 0 || n_.shared() == 1));
    };
    added.key_bias.fill(0);
    added.key_mask.fill(0);
    if (a_.ends.is_there()) {
      const int64_t end = load<int32_t>(bytes_of(inputs, a_.ends) + a_.ends.at(block.sequence, 0, 0));
      const int64_t start =
          a_.starts.is_there()
              ? load<int32_t>(bytes_of(inputs, a_.starts) + a_.starts.at(block.sequence, 0, 0))
              : 0;
      for (int64_t j = 0; j < count; ++j) {
        const bool is_masked = key + j >= end || key + j < start;
        added.key_mask[static_cast<size_t>(j)] = is_masked ? filter : 0.0f;
      }
    }
    added.adds = is_same(a_.mask) && is_same(a_.relative) ? Adds::kByKey : Adds::kByScore;
    if (added.adds == Adds::kByScore && !block.is_few) return add_by_score(block, panel, key, count, inputs, space);
    const bool by_score = added.adds == Adds::kByScore;
    for_heads(block, panel, [&](int64_t first, int64_t rows, int64_t head, int64_t query) {
      for (int64_t r = first; r < (by_score ? first + rows : 1); ++r, ++query) {
        float* const bias = by_score ? added.bias.data() + r * kKeys : added.key_bias.data();
        float* const mask = by_score ? added.mask.data() + r * kKeys : added.key_mask.data();
        if (by_score) {
          std::fill_n(bias, kKeys, 0.0f);
          std::copy(added.key_mask.begin(), added.key_mask.end(), mask);
        }
        if (a_.relative.is_there()) {
          const int64_t step = a_.relative.strides[3];
          load_row<T>(bytes_of(inputs, a_.relative) + a_.relative.at(block.sequence, head, query) + key * step,
                      step, count, bias);
        }
        if (a_.mask.is_there()) {
          const std::byte* const at =
              bytes_of(inputs, a_.mask) + a_.mask.at(block.sequence, head, query) + key * a_.mask.strides[3];
          for (int64_t j = 0; j < count; ++j) {
            mask[j] = load<int32_t>(at + j * a_.mask.strides[3]) == 0 ? filter : 0.0f;
          }
        }
      }
    });
  }

  void add_by_score(const Block& block, const RowPanel& panel, int64_t key, int64_t count,
                    const void* const* inputs, Workspace& space) const {
    Added& added = space.added;
    const int64_t scores = count * panel.width;
    if (a_.relative.is_there()) {
      // The scores come later.
      auto* const halves = reinterpret_cast<std::byte*>(space.weights.data());
      gather<T>(block, panel, a_.relative, key, count, inputs, halves, added.bias.data());
    } else {
      std::fill_n(added.bias.data(), scores, 0.0f);
    }
    float* const mask = added.mask.data();
    if (a_.mask.is_there()) {
      gather<float>(block, panel, a_.mask, key, count, inputs, nullptr, mask);
      const auto filter = static_cast<float>(a_.filter);
      for (int64_t i = 0; i < scores; ++i) mask[i] = bits_as<int32_t>(mask[i]) == 0 ? filter : 0.0f;
    } else {
      for (int64_t j = 0; j < count; ++j) {
        std::fill_n(mask + j * panel.width, panel.width, added.key_mask[static_cast<size_t>(j)]);
      }
    }
  }

  // Of the keys of a block that begin at `key`, how many each row sees; the most that one of `count` rows does.
  int64_t look(const Block& block, int64_t first, int64_t count, int64_t width, int64_t key, int64_t keys,
               Rows& rows, bool& is_part) const {
    is_part = false;
    int64_t most = keys;
    if (a_.lengths.is_there()) {
      most = 0;
      for (int64_t r = 0; r < count; ++r) {
        const int64_t seen = std::clamp<int64_t>(seen_by(block, first + r) - key, 0, keys);
        rows.seen[static_cast<size_t>(first + r)] = static_cast<float>(seen);
        is_part = is_part || seen < keys;
        most = std::max(most, seen);
      }
      count = std::min(count, width);
    } else {
      count = 0;
    }
    std::fill_n(rows.seen.data() + first + count, width - count, static_cast<float>(keys));
    return most;
  }

  void attend(const Block& block, const void* const* inputs, std::byte* output, Workspace& space) const {
    load_bias(inputs, value_bias(block.head) + block.column, block.columns, space.value_bias.data());
    space.rows.largest.fill(kNoScore);
    space.rows.sums.fill(0);
    const int64_t depths = divided_up(n_.size, kDepth);
    const int64_t height = padded(block.count, kPanel);
    const int64_t columns = block.is_few ? padded(block.columns, kWidest) : padded(block.columns, kPanel);
    std::fill_n(space.sums, (block.is_few ? block.count : height) * columns, 0.0f);
    if (block.is_few) {
      if (depths == 1) pack_few_queries(block, 0, n_.size, inputs, space);
    } else if (depths == 1) {
      for_panels(block, [&](const RowPanel& panel) {
        pack_queries(block, panel, 0, n_.size, inputs, space, space.query + panel.first * n_.size);
      });
    }
    for (int64_t key = 0; key < block.most && !is_cancelled(); key += kKeys) {
      const int64_t count = std::min(kKeys, block.most - key);
      if (block.is_few) {
        attend_few(block, key, count, depths, inputs, space);
      } else {
        attend_panels(block, key, count, depths, inputs, space);
      }
    }
    float* const row = space.row.data();
    for_heads(block, {0, block.count, 0}, [&](int64_t r, int64_t rows, int64_t head, int64_t query) {
      for (int64_t end = r + rows; r < end; ++r, ++query) {
        const float total = space.rows.sums[static_cast<size_t>(r)];
        const int64_t width = block.is_few ? columns : kPanel;
        for (int64_t c = 0; c < block.columns; c += width) {
          const float* const sums = space.sums + (block.is_few ? r * columns : c * height + r * kPanel);
          for (int64_t i = 0; i < std::min(width, block.columns - c); ++i) row[c + i] = sums[i] / total;
        }
        const int64_t step = a_.output.strides[3];
        store_row<T>(row, step, block.columns,
                     output + a_.output.at(block.sequence, head, query) + block.column * step);
      }
    });
  }

  template <class Body>
  static void for_panels(const Block& block, const Body& body) {
    for (int64_t first = 0; first < block.count; first += kPanel) {
      const int64_t count = std::min(kPanel, block.count - first);
      body(RowPanel{first, count, width_of(count)});
    }
  }

  Some part_of_keys(const Block& block, int64_t key, int64_t count, int64_t part, const void* const* inputs,
                    Workspace& space) const {
    const int64_t first = part * kDepth;
    const int64_t depth = std::min(kDepth, n_.size - first);
    load_bias(inputs, key_bias(block.head) + first, depth, space.key_bias.data());
    return {a_.key, a_.past_key, key, count, first, depth, space.key_bias.data()};
  }
  Some values_to_weigh(const Block& block, int64_t key, int64_t count, const Workspace& space) const {
    return {a_.value, a_.past_value, key, count, block.column, block.columns, space.value_bias.data()};
  }

  void attend_panels(const Block& block, int64_t key, int64_t count, int64_t depths, const void* const* inputs,
                     Workspace& space) const {
    float* const weights = space.weights.data();
    const Some some = part_of_keys(block, key, count, 0, inputs, space);
    const Some weighed = values_to_weigh(block, key, count, space);
    Matrix keys{};
    if (depths == 1) keys = keys_of(some, block, inputs, space);
    const ValuePanels values = values_of(weighed, block, inputs, space);
    for_panels(block, [&](const RowPanel& panel) {
      bool is_part = false;
      const int64_t seen = look(block, panel.first, panel.count, panel.width, key, count, space.rows, is_part);
      if (seen == 0) return;
      add(block, panel, key, seen, inputs, space);
      for (int64_t part = 0; part < depths; ++part) {
        const float* queries = space.query + panel.first * n_.size;
        if (depths > 1) {
          const Some each = part_of_keys(block, key, count, part, inputs, space);
          pack_queries(block, panel, each.first, each.width, inputs, space, space.query);
          keys = keys_of(each, block, inputs, space);
          queries = space.query;
          multiply_keys(keys.at, keys.step, seen, each.width, queries, panel.width, part == 0, weights);
        } else {
          multiply_keys(keys.at, keys.step, seen, some.width, queries, panel.width, true, weights);
        }
      }
      weigh_for(space.added.adds, is_part)(weights, panel.width, seen, static_cast<float>(a_.scale),
                                           space.added, panel.first, space.rows);
      multiply_values(weights, panel.width, panel.first, panel.count, seen, is_part, space.rows, values,
                      block.columns, space.sums, padded(block.count, kPanel) * kPanel);
    });
  }

  void attend_few(const Block& block, int64_t key, int64_t count, int64_t depths, const void* const* inputs,
                  Workspace& space) const {
    float* const weights = space.weights.data();
    bool is_part = false;
    const int64_t most = look(block, 0, block.count, block.count, key, count, space.rows, is_part);
    if (most == 0) return;
    std::fill_n(weights, block.count * kKeys, 0.0f);
    for (int64_t part = 0; part < depths; ++part) {
      const Some some = part_of_keys(block, key, count, part, inputs, space);
      if (depths > 1) pack_few_queries(block, some.first, some.width, inputs, space);
      Block each = block;
      each.count = 1;  // of which each reads a key once
      const Matrix keys = keys_of(some, each, inputs, space);
      for (int64_t r = 0; r < block.count; ++r) {
        add_products(space.query + r * padded(some.width, kWidest), keys.at, keys.step, most, some.width,
                     weights + r * kKeys);
      }
    }
    add(block, {0, block.count, 0}, key, count, inputs, space);
    const auto weigh = space.added.adds == Adds::kByScore ? weigh_row<Adds::kByScore>
                       : space.added.adds == Adds::kByKey ? weigh_row<Adds::kByKey>
                                                          : weigh_row<Adds::kNothing>;
    const auto seen = [&](int64_t r) { return static_cast<int64_t>(space.rows.seen[static_cast<size_t>(r)]); };
    for (int64_t r = 0; r < block.count; ++r) {
      weigh(weights + r * kKeys, seen(r), static_cast<float>(a_.scale), space.added, r, space.rows);
    }
    const Matrix values = rows_of_values(values_to_weigh(block, key, count, space), block, inputs, space);
    const int64_t columns = padded(block.columns, kWidest);
    FewValues few{weights,    values.at, values.step, count, columns, space.rows.factors.data(),
                  space.sums};
    if (!is_part) return multiply_few(few, block.count);
    for (int64_t r = 0; r < block.count; ++r) {
      few.keys = seen(r);
      multiply_few(few, 1);
      few.weights += kKeys;
      few.factors += 1;
      few.sums += columns;
    }
  }

  // All keys, or values: those that are past, then the new ones, and behind them zeros.
  void present(const Place& now, const Place& past, const Place& to, size_t which, const void* const* inputs,
               void* const* outputs, int threads) const {
    if (!to.is_there()) return;
    const int64_t size = which == 0 ? n_.size : n_.value_size;
    const int64_t length = a_.present_lengths[which];
    auto* const out = static_cast<std::byte*>(outputs[static_cast<size_t>(to.tensor)]);
    parallel_for(n_.batch * n_.heads * length, threads, [&](int64_t task) {
      const int64_t position = task % length;
      const int64_t head = task / length % n_.heads;
      const int64_t sequence = task / length / n_.heads;
      const int64_t before = past_of(sequence, inputs);
      float row[kWritten];
      float biases[kWritten];
      for (int64_t first = 0; first < size; first += kWritten) {
        const int64_t count = std::min(kWritten, size - first);
        if (position < before) {
          load_row<T>(bytes_of(inputs, past) + past.at(sequence, head, position) + first * past.strides[3],
                      past.strides[3], count, row);
        } else if (position < before + n_.keys) {
          load_row<T>(
              bytes_of(inputs, now) + now.at(sequence, head, position - before) + first * now.strides[3],
              now.strides[3], count, row);
          load_bias(inputs, (which == 0 ? key_bias(head) : value_bias(head)) + first, count, biases);
          for (int64_t i = 0; a_.bias.is_there() && i < count; ++i) row[i] += biases[i];
        } else {
          std::fill_n(row, count, 0.0f);
        }
        store_row<T>(row, to.strides[3], count,
                     out + to.at(sequence, head, position) + first * to.strides[3]);
      }
    });
  }

  static constexpr int64_t kWritten = 256;  // elements of a row at a time

  Attention a_;
  Sizes n_;
  int64_t cost_;  // in bytes that take as long
};

Place place_of(const Attributes& attributes, const char* name) {
  if (!attributes.has(name)) return {};
  const std::vector<int64_t>& numbers = attributes.integers(name);
  require(numbers.size() == 6, "numbers of a place");
  return {numbers[0], numbers[1], {numbers[2], numbers[3], numbers[4], numbers[5]}};
}

double double_of(const Attributes& attributes, const char* name) {
  return bits_as<double>(attributes.integer(name));
}

}  // namespace

std::unique_ptr<Plan> make_attention(const Request& request, std::string& reason) {
  const Attributes& attributes = request.attributes;
  const auto place = [&](const char* name) { return place_of(attributes, name); };
  const std::vector<int64_t>& sizes = attributes.integers("Sizes");
  require(sizes.size() == 8, "sizes");
  Attention attention{{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], sizes[7]},
                      double_of(attributes, "Scale"),
                      double_of(attributes, "MaskFilterValue"),
                      place("Query"),
                      place("Key"),
                      place("Value"),
                      place("PastKey"),
                      place("PastValue"),
                      place("Output"),
                      place("PresentKey"),
                      place("PresentValue"),
                      {},
                      place("Bias"),
                      place("Mask"),
                      place("RelativePositionBias"),
                      place("Ends"),
                      place("Starts"),
                      place("Lengths"),
                      DataType::kInt32};
  const std::vector<int64_t>& lengths = attributes.integers("PresentLengths");
  require(lengths.size() == 2, "lengths of what is present");
  attention.present_lengths = {lengths[0], lengths[1]};
  if (attention.lengths.is_there()) {
    attention.length_type = tensor(request.inputs, static_cast<size_t>(attention.lengths.tensor)).type;
  }
  const DataType type = tensor(request.outputs, 0).type;
  const std::string description = "attention of " + std::string(name_of(type)) + " by blocks of keys";
  if (type == DataType::kFloat32) return std::make_unique<AttentionPlan<float>>(attention, description);
  if (type == DataType::kFloat16) return std::make_unique<AttentionPlan<Half>>(attention, description);
  reason = "no attention of " + std::string(name_of(type));
  return nullptr;
}

ANYDML_ISA_END
