// MULTIHEAD_ATTENTION and its revision by online softmax (FlashAttention): blocks of keys pass under a block
// of queries, so that no more than a block of scores is ever there. Threads share the blocks of queries, each
// of which sees the blocks of keys in one order.
//
// Products and sums of weighted values are in single precision, one chain for a block, in the order of the
// elements of a head and of the keys; scores, what is added to them, and sums of weights in double precision.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
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
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

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
    int64_t height = kMostRows;
    while (height > kFewestRows &&
           (height / 2 >= rows || others * divided_up(rows, height) < threads * kBlocksOfAThread)) {
      height /= 2;
    }
    const int64_t blocks = divided_up(rows, height);
    const auto workers = static_cast<size_t>(std::min<int64_t>(threads, others * blocks));
    const std::unique_ptr<Workspace[]> spaces(new Workspace[workers]);
    for (size_t i = 0; i < workers; ++i) {
      spaces[i].reserve(height, std::min(n_.size, kDepth), std::min(n_.value_size, kColumns));
    }
    parallel_for(others * blocks, threads, [&](int64_t task, int worker) {
      // The last blocks see the most keys, where they see different ones.
      const int64_t block = blocks - 1 - task / others;
      const int64_t head = task % others / parts;
      const int64_t first = block * height;
      const int64_t count = std::min(height, rows - first);
      const int64_t column = task % parts * kColumns;
      Block each{head / n_.heads, head % n_.heads, first, count, padded(count), column, 0, 0, 0,
                 rows <= kFewRows};
      each.columns = std::min(kColumns, n_.value_size - column);
      each.past = past_of(each.sequence, inputs);
      for (int64_t r = 0; r < count; ++r) each.most = std::max(each.most, seen_by(each, r));
      attend(each, inputs, static_cast<std::byte*>(outputs[0]), spaces[static_cast<size_t>(worker)]);
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

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

  // A column for each row of a block, or a row where they are few: elements from `first` of its query.
  void pack_queries(const Block& block, int64_t first, int64_t depth, const void* const* inputs,
                    Workspace& space) const {
    const int64_t step = a_.query.strides[3];
    for (int64_t r = 0; r < (block.is_few ? block.count : block.width); ++r) {
      float* const row = block.is_few ? space.query + r * padded(depth) : space.row.data();
      if (r < block.count) {
        const int64_t head = block.head * n_.shared() + (block.first + r) / n_.queries;
        const int64_t query = (block.first + r) % n_.queries;
        load_row<T>(bytes_of(inputs, a_.query) + a_.query.at(block.sequence, head, query) + first * step,
                    step, depth, row);
        if (a_.bias.is_there()) {
          float* const bias = space.key_bias.data();
          load_bias(inputs, head * n_.size + first, depth, bias);
          for (int64_t i = 0; i < depth; ++i) row[i] += bias[i];
        }
      } else {
        std::fill_n(row, depth, 0.0f);
      }
      for (int64_t i = 0; !block.is_few && i < depth; ++i) space.query[i * block.width + r] = row[i];
    }
  }

  // Rows of keys or values from `key` on, of each `width` elements from `first`: where they lie, if that can
  // be read as it is, or a copy, with zeros up to a row's end.
  Matrix rows_of(const Place& now, const Place& past, const Block& block, int64_t key, int64_t count,
                 int64_t first, int64_t width, bool is_padded, const float* bias, const void* const* inputs,
                 float* copy) const {
    const auto at = [&](int64_t j) {
      const Place& place = j < block.past ? past : now;
      const int64_t position = j < block.past ? j : j - block.past;
      return bytes_of(inputs, place) + place.at(block.sequence, block.head, position) +
             first * place.strides[3];
    };
    const bool is_past = key + count <= block.past;
    const Place& place = is_past ? past : now;
    if (sizeof(T) == sizeof(float) && (is_past || key >= block.past) && place.strides[3] == kItem &&
        (is_past || !a_.bias.is_there()) && (!is_padded || width == padded(width))) {
      return {at(key), place.strides[2]};
    }
    const int64_t row = padded(width);
    for (int64_t j = 0; j < count; ++j) {
      float* const to = copy + j * row;
      const bool is_old = key + j < block.past;
      load_row<T>(at(key + j), is_old ? past.strides[3] : now.strides[3], width, to);
      if (!is_old && a_.bias.is_there()) {
        for (int64_t i = 0; i < width; ++i) to[i] += bias[i];
      }
      std::fill_n(to + width, row - width, 0.0f);
    }
    return {reinterpret_cast<const std::byte*>(copy), row * kSingle};
  }

  // What masks and relative positions add to the scores of a block of keys.
  void add(const Block& block, int64_t key, int64_t count, const void* const* inputs, Added& added) const {
    added.of_key.fill(0);
    added.by_score = false;
    if (a_.ends.is_there()) {
      const int64_t end = load<int32_t>(bytes_of(inputs, a_.ends) + a_.ends.at(block.sequence, 0, 0));
      const int64_t start =
          a_.starts.is_there()
              ? load<int32_t>(bytes_of(inputs, a_.starts) + a_.starts.at(block.sequence, 0, 0))
              : 0;
      for (int64_t j = 0; j < count; ++j) {
        const bool is_masked = key + j >= end || key + j < start;
        added.of_key[static_cast<size_t>(j)] = is_masked ? a_.filter : 0.0;
      }
    }
    if (!a_.mask.is_there() && !a_.relative.is_there()) return;
    std::array<int64_t, kMostRows> masks{};
    std::array<int64_t, kMostRows> relatives{};
    bool is_same = true;
    for (int64_t r = 0; r < block.count; ++r) {
      const auto row = static_cast<size_t>(r);
      const int64_t head = block.head * n_.shared() + (block.first + r) / n_.queries;
      const int64_t query = (block.first + r) % n_.queries;
      masks[row] = a_.mask.at(block.sequence, head, query);
      relatives[row] = a_.relative.at(block.sequence, head, query);
      is_same = is_same && masks[row] == masks[0] && relatives[row] == relatives[0];
    }
    added.by_score = !is_same;
    const int64_t rows = is_same ? 1 : block.is_few ? block.count : block.width;
    for (int64_t r = 0; r < rows; ++r) {
      // Of what pads a block no result is kept.
      const auto row = static_cast<size_t>(std::min(r, block.count - 1));
      double* const to = is_same ? added.of_key.data() : added.of_score.data() + r * block.row_step();
      const int64_t step = is_same ? 1 : block.key_step();
      if (block.is_few && !is_same) std::fill_n(to, kKeys, 0.0);
      for (int64_t j = 0; j < count; ++j) {
        double sum = is_same ? to[j] : 0.0;
        if (a_.relative.is_there()) {
          const std::byte* const at = bytes_of(inputs, a_.relative) + relatives[row];
          sum += widen<T, float>(at + (key + j) * a_.relative.strides[3]);
        }
        if (a_.mask.is_there()) {
          const std::byte* const at = bytes_of(inputs, a_.mask) + masks[row];
          sum += load<int32_t>(at + (key + j) * a_.mask.strides[3]) == 0 ? a_.filter : 0.0;
        }
        to[j * step] = sum;
      }
    }
  }

  // Products of a few rows with a block of keys; zeros behind it, as whole vectors are read.
  static void add_dots(const Block& block, const Matrix& keys, int64_t count, int64_t depth, bool is_first,
                       Workspace& space) {
    for (int64_t r = 0; r < block.count; ++r) {
      float* const to = space.weights.data() + r * kKeys;
      const float* const query = space.query + r * padded(depth);
      if (is_first) std::fill_n(to, kKeys, 0.0f);
      for (int64_t j = 0; j < count; ++j) to[j] += dot(query, keys.at + j * keys.step, depth);
    }
  }

  void weigh_all(const Block& block, int64_t count, bool is_part, Workspace& space) const {
    float* const weights = space.weights.data();
    const bool by_score = space.added.by_score;
    if (block.is_few) {
      for (int64_t r = 0; r < block.count; ++r) {
        const auto row = static_cast<size_t>(r);
        const auto seen = static_cast<int64_t>(space.rows.seen[row]);
        (by_score ? weigh_row<true> : weigh_row<false>)(weights + r * kKeys, seen, a_.scale, space.added, row,
                                                        space.rows);
      }
      return;
    }
    const auto weigh_rows = is_part ? (by_score ? weigh<true, true> : weigh<false, true>)
                                    : (by_score ? weigh<true, false> : weigh<false, false>);
    weigh_rows(weights, block.width, count, a_.scale, space.added, space.rows);
  }

  void attend(const Block& block, const void* const* inputs, std::byte* output, Workspace& space) const {
    const int64_t width = block.width;
    const int64_t columns = padded(block.columns);
    const int64_t depths = divided_up(n_.size, kDepth);
    if (depths == 1) pack_queries(block, 0, n_.size, inputs, space);
    load_bias(inputs, value_bias(block.head) + block.column, block.columns, space.value_bias.data());
    space.rows.largest.fill(-std::numeric_limits<double>::infinity());
    space.rows.sums.fill(0);
    std::fill_n(space.sums, block.count * columns, 0.0f);
    for (int64_t key = 0; key < block.most; key += kKeys) {
      const int64_t count = std::min(kKeys, block.most - key);
      for (int64_t part = 0; part < depths; ++part) {
        const int64_t first = part * kDepth;
        const int64_t depth = std::min(kDepth, n_.size - first);
        if (depths > 1) pack_queries(block, first, depth, inputs, space);
        load_bias(inputs, key_bias(block.head) + first, depth, space.key_bias.data());
        const Matrix keys = rows_of(a_.key, a_.past_key, block, key, count, first, depth, false,
                                    space.key_bias.data(), inputs, space.keys);
        if (block.is_few) {
          add_dots(block, keys, count, depth, part == 0, space);
        } else {
          multiply({keys.at, keys.step, kSingle, reinterpret_cast<const std::byte*>(space.query),
                    width * kSingle, space.weights.data(), width, count, depth, width,
                    part == 0 ? nullptr : space.ones.data()});
        }
      }
      add(block, key, count, inputs, space.added);
      bool is_part = false;
      for (int64_t r = 0; r < width; ++r) {
        const int64_t seen = r < block.count ? std::clamp<int64_t>(seen_by(block, r) - key, 0, count) : count;
        space.rows.seen[static_cast<size_t>(r)] = static_cast<double>(seen);
        is_part = is_part || seen < count;
      }
      weigh_all(block, count, is_part, space);
      const Matrix values = rows_of(a_.value, a_.past_value, block, key, count, block.column, block.columns,
                                    true, space.value_bias.data(), inputs, space.values);
      Product product{reinterpret_cast<const std::byte*>(space.weights.data()),
                      block.row_step() * kSingle,
                      block.key_step() * kSingle,
                      values.at,
                      values.step,
                      space.sums,
                      columns,
                      block.count,
                      count,
                      columns,
                      space.rows.factors.data()};
      if (!is_part) {
        multiply(product);
        continue;
      }
      // No row reads a value that it does not see, be it infinite.
      for (int64_t r = 0; r < block.count; ++r) {
        Product row = product;
        row.left += r * row.left_row;
        row.out += r * columns;
        row.factors += r;
        row.rows = 1;
        row.depth = static_cast<int64_t>(space.rows.seen[static_cast<size_t>(r)]);
        multiply(row);
      }
    }
    for (int64_t r = 0; r < block.count; ++r) {
      float* const row = space.sums + r * columns;
      const double factor = 1.0 / space.rows.sums[static_cast<size_t>(r)];
      for (int64_t c = 0; c < block.columns; ++c) row[c] = static_cast<float>(row[c] * factor);
      const int64_t head = block.head * n_.shared() + (block.first + r) / n_.queries;
      const int64_t query = (block.first + r) % n_.queries;
      const int64_t step = a_.output.strides[3];
      store_row<T>(row, step, block.columns,
                   output + a_.output.at(block.sequence, head, query) + block.column * step);
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
