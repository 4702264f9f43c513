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
#include <utility>
#include <vector>

#include "attention/added.h"
#include "attention/few_rows.h"
#include "attention/operands.h"
#include "attention/packing.h"
#include "attention/products.h"
#include "attention/rows.h"
#include "attention/tuning.h"
#include "attention/weights.h"
#include "attention/workspace.h"
#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
class AttentionPlan final : public Plan {
 public:
  AttentionPlan(Attention attention, std::string description)
      : Plan(std::move(description)),
        a_(attention),
        n_(attention.sizes),
        packing_(attention),
        additions_(attention) {
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
    const int64_t depth = std::min(n_.size, kDepth);
    const int64_t columns = std::min(n_.value_size, kColumns);
    const int64_t floats = Workspace::floats(height, depth, columns);
    const Scratch memory(static_cast<int64_t>(workers) * floats * 4);
    for (size_t i = 0; i < workers; ++i) {
      spaces[i].place(memory.floats() + static_cast<int64_t>(i) * floats, height, depth, columns);
    }
    parallel_for(others * blocks, threads, [&](int64_t task, int worker) {
      // Blocks of a head follow each other, as its keys and values may be in a cache. Where they see
      // different keys, the last ones of all heads, which see the most, come first.
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

  // Rows of a block, a multiple of those of a panel. Heads that are multiplied in parts have one panel, so
  // that a part of them is packed once.
  int64_t height_for(int64_t rows, int64_t others, int64_t parts, int threads) const {
    if (n_.size > kDepth || parts > 1) return kPanel;
    const int64_t fitting = std::min(kBlockRows, kBlockNumbers / (n_.size + n_.value_size)) / kPanel * kPanel;
    int64_t height = std::min(std::max(kPanel, fitting), padded(rows, kPanel));
    while (height > kPanel && others * divided_up(rows, height) < threads * kBlocksOfAThread)
      height -= kPanel;
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

  // Of the keys of a block that begin at `key`, how many each row sees; the most that one of `count` rows
  // does.
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
    packing_.load_bias(inputs, packing_.value_bias(block.head) + block.column, block.columns,
                       space.value_bias.data());
    space.rows.largest.fill(kNoScore);
    space.rows.sums.fill(0);
    const int64_t depths = divided_up(n_.size, kDepth);
    const int64_t height = padded(block.count, kPanel);
    const int64_t columns = block.is_few ? padded(block.columns, kWidest) : padded(block.columns, kPanel);
    std::fill_n(space.sums, (block.is_few ? block.count : height) * columns, 0.0f);
    if (block.is_few) {
      if (depths == 1) packing_.pack_few_queries(block, 0, n_.size, inputs, space);
    } else if (depths == 1) {
      for_panels(block, [&](const RowPanel& panel) {
        packing_.pack_queries(block, panel, 0, n_.size, inputs, space, space.query + panel.first * n_.size);
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
    packing_.for_heads(block, {0, block.count, 0}, [&](int64_t r, int64_t rows, int64_t head, int64_t query) {
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
    packing_.load_bias(inputs, packing_.key_bias(block.head) + first, depth, space.key_bias.data());
    return {a_.key, a_.past_key, key, count, first, depth, space.key_bias.data()};
  }
  Some values_to_weigh(const Block& block, int64_t key, int64_t count, const Workspace& space) const {
    return {a_.value, a_.past_value, key, count, block.column, block.columns, space.value_bias.data()};
  }

  void attend_panels(const Block& block, int64_t key, int64_t count, int64_t depths,
                     const void* const* inputs, Workspace& space) const {
    float* const weights = space.weights.data();
    const Some some = part_of_keys(block, key, count, 0, inputs, space);
    const Some weighed = values_to_weigh(block, key, count, space);
    Matrix keys{};
    if (depths == 1) keys = packing_.keys_of(some, block, inputs, space);
    const ValuePanels values = packing_.values_of(weighed, block, inputs, space);
    for_panels(block, [&](const RowPanel& panel) {
      bool is_part = false;
      const int64_t seen =
          look(block, panel.first, panel.count, panel.width, key, count, space.rows, is_part);
      if (seen == 0) return;
      additions_.add(block, panel, key, seen, inputs, space);
      for (int64_t part = 0; part < depths; ++part) {
        const float* queries = space.query + panel.first * n_.size;
        if (depths > 1) {
          const Some each = part_of_keys(block, key, count, part, inputs, space);
          packing_.pack_queries(block, panel, each.first, each.width, inputs, space, space.query);
          keys = packing_.keys_of(each, block, inputs, space);
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
      if (depths > 1) packing_.pack_few_queries(block, some.first, some.width, inputs, space);
      Block each = block;
      each.count = 1;  // of which each reads a key once
      const Matrix keys = packing_.keys_of(some, each, inputs, space);
      for (int64_t r = 0; r < block.count; ++r) {
        add_products(space.query + r * padded(some.width, kWidest), keys.at, keys.step, most, some.width,
                     weights + r * kKeys);
      }
    }
    additions_.add(block, {0, block.count, 0}, key, count, inputs, space);
    const auto weigh = space.added.adds == Adds::kByScore ? weigh_row<Adds::kByScore>
                       : space.added.adds == Adds::kByKey ? weigh_row<Adds::kByKey>
                                                          : weigh_row<Adds::kNothing>;
    const auto seen = [&](int64_t r) {
      return static_cast<int64_t>(space.rows.seen[static_cast<size_t>(r)]);
    };
    for (int64_t r = 0; r < block.count; ++r) {
      weigh(weights + r * kKeys, seen(r), static_cast<float>(a_.scale), space.added, r, space.rows);
    }
    const Matrix values =
        packing_.rows_of_values(values_to_weigh(block, key, count, space), block, inputs, space);
    const int64_t columns = padded(block.columns, kWidest);
    FewValues few{weights, values.at, values.step, count, columns, space.rows.factors.data(), space.sums};
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
    const int64_t tasks = divided_up(length, kPositions);
    parallel_for(n_.batch * n_.heads * tasks, threads, [&](int64_t task) {
      const int64_t head = task / tasks % n_.heads;
      const int64_t sequence = task / tasks / n_.heads;
      const int64_t before = past_of(sequence, inputs);
      int64_t position = task % tasks * kPositions;
      const int64_t end = std::min(position + kPositions, length);
      // Rows that are past, and lie behind each other in both tensors, are one.
      const auto is_packed = [&](const Place& place) {
        return place.strides[3] == kItem && place.strides[2] == size * kItem;
      };
      if (position < before && is_packed(past) && is_packed(to)) {
        const int64_t rows = std::min(end, before) - position;
        std::memcpy(out + to.at(sequence, head, position),
                    bytes_of(inputs, past) + past.at(sequence, head, position),
                    static_cast<size_t>(rows * size * kItem));
        position += rows;
      }
      float row[kWritten];
      float biases[kWritten];
      for (; position < end; ++position) {
        for (int64_t first = 0; first < size; first += kWritten) {
          const int64_t count = std::min(kWritten, size - first);
          if (position < before) {
            load_row<T>(bytes_of(inputs, past) + past.at(sequence, head, position) + first * past.strides[3],
                        past.strides[3], count, row);
          } else if (position < before + n_.keys) {
            load_row<T>(
                bytes_of(inputs, now) + now.at(sequence, head, position - before) + first * now.strides[3],
                now.strides[3], count, row);
            packing_.load_bias(inputs,
                               (which == 0 ? packing_.key_bias(head) : packing_.value_bias(head)) + first,
                               count, biases);
            for (int64_t i = 0; a_.bias.is_there() && i < count; ++i) row[i] += biases[i];
          } else {
            std::fill_n(row, count, 0.0f);
          }
          store_row<T>(row, to.strides[3], count,
                       out + to.at(sequence, head, position) + first * to.strides[3]);
        }
      }
    });
  }

  static constexpr int64_t kPositions = 64;  // that are copied at a time
  static constexpr int64_t kWritten = 256;   // elements of a row at a time

  Attention a_;
  Sizes n_;
  Packing<T> packing_;
  Additions<T> additions_;
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
