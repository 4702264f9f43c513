// GEMM, products of matrices of any strides: blocks of columns, which are packed in panels as deep as stays
// in the second cache, by tiles of rows.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "dense/packing.h"
#include "dense/product.h"
#include "dense/row.h"
#include "dense/tile.h"
#include "dense/tuning.h"
#include "nhwc/fused_activation.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

// Singles at a whole line, uninitialised.
class Singles64 {
 public:
  explicit Singles64(int64_t size) : memory_(new float[static_cast<size_t>(size) + kLineSingles]) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    first_ = memory_.get() + (-address % (kLineSingles * sizeof(float))) / sizeof(float);
  }
  float* data() const { return first_; }

 private:
  static constexpr size_t kLineSingles = 16;
  std::unique_ptr<float[]> memory_;
  float* first_;
};

// How many blocks there are, and the most rows and columns of one.
struct Blocks {
  int64_t rows;
  int64_t columns;
  int64_t most_rows;
  int64_t most_columns;
};

template <class Item>
class GemmPlan final : public Plan {
 public:
  GemmPlan(Product product, const std::string& description) : Plan(description), p_(std::move(product)) {
    for (const int64_t size : p_.batch) batches_ *= size;
    const int64_t work = p_.rows * p_.depth * p_.columns / kMultiplicationsOfAByte;
    const int64_t bytes = (p_.rows * p_.depth + p_.depth * p_.columns) * kItem;
    work_ = batches_ * std::max(work, bytes);
    method_ = method();
    divide(threads_for(work_));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(work_);
    const Blocks blocks = threads == threads_ ? blocks_ : blocks_for(threads);
    const int64_t size = Workspace::size(*this, blocks);
    const int64_t count = batches_ * blocks.rows * blocks.columns;
    const int64_t workers = std::min<int64_t>(threads, count);
    const Singles64 memory(workers * size);
    const int64_t panels = divided(p_.columns, kPanel);
    parallel_for(count, threads, [&](int64_t i, int worker) {
      const int64_t column = i % blocks.columns;
      const int64_t row = i / blocks.columns % blocks.rows;
      const Range rows{share_begin(row, blocks.rows, p_.rows), share_begin(row + 1, blocks.rows, p_.rows)};
      const Range columns{share_begin(column, blocks.columns, panels) * kPanel,
                          std::min(share_begin(column + 1, blocks.columns, panels) * kPanel, p_.columns)};
      const std::array<int64_t, 4> at = offsets(i / (blocks.columns * blocks.rows));
      const size_t a = p_.is_swapped ? 1 : 0;
      const Operands operands{static_cast<const std::byte*>(inputs[a]) + at[a],
                              static_cast<const std::byte*>(inputs[1 - a]) + at[1 - a],
                              p_.has_c ? static_cast<const std::byte*>(inputs[2]) + at[2] : nullptr,
                              static_cast<std::byte*>(outputs[0]) + at[3]};
      const Workspace work(*this, blocks, memory.data() + worker * size);
      if (method_ == Method::kRow) return multiply_row(operands, columns, work);
      if (method_ == Method::kRowsAcross) return multiply_across(operands, columns, work);
      if (method_ == Method::kFewRows) return multiply_few(operands, columns, work);
      multiply(operands, rows, columns, work);
    });
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  static constexpr int64_t kLineSingles = 16;

  enum class Method { kBlocks, kRow, kRowsAcross, kFewRows };

  Method method() const {
    if (p_.b.column == kItem) {
      return p_.rows == 1 ? Method::kRow : p_.rows <= kFewRows ? Method::kFewRows : Method::kBlocks;
    }
    const bool is_across = kMultipliesAcross<Item> && p_.b.row == kItem && p_.columns >= kPanel;
    return is_across && p_.rows <= kRowsAcross ? Method::kRowsAcross : Method::kBlocks;
  }

  int64_t depth_at_once() const { return std::min(kDepth, p_.depth); }
  // From packed panel to panel: a line more than a panel has, so that they do not take each other's place in
  // a cache.
  int64_t panel_step() const { return depth_at_once() * kPanel + kLineSingles; }

  // What a thread needs for a block, in singles.
  struct Workspace {
    float* panels;
    float* rows;
    float* totals;
    std::byte* staging;

    Workspace(const GemmPlan& plan, const Blocks& blocks, float* memory) {
      const Sizes sizes(plan, blocks);
      panels = memory;
      rows = panels + sizes.panels;
      totals = rows + sizes.rows;
      staging = reinterpret_cast<std::byte*>(totals + sizes.totals);
    }
    static int64_t size(const GemmPlan& plan, const Blocks& blocks) {
      const Sizes sizes(plan, blocks);
      return sizes.panels + sizes.rows + sizes.totals + sizes.staging;
    }

   private:
    // Each a multiple of a line.
    struct Sizes {
      int64_t panels = 0;
      int64_t rows = 0;
      int64_t totals = 0;
      int64_t staging = 0;

      Sizes(const GemmPlan& plan, const Blocks& blocks) {
        const Product& p = plan.p_;
        if (plan.method_ == Method::kRow) {
          rows = kDepth;
          totals = 2 * kReadColumns;
          return;
        }
        if (plan.method_ == Method::kRowsAcross) {
          rows = p.rows * kDepth;
          totals = 2 * p.rows * kPanel;
          return;
        }
        rows = packed_rows_size(blocks.most_rows, p.depth);
        if (plan.method_ == Method::kFewRows) {
          panels = kReadDepth * kPanel;
          totals = 2 * p.rows * std::min(blocks.most_columns, kReadColumns);
        } else {
          const int64_t columns = std::min(blocks.most_columns, kBlockColumns);
          panels = columns / kPanel * plan.panel_step();
          if (p.depth > kDepth) totals = std::min(blocks.most_rows, kBlockRows) * columns;
          if (kItem != 4 && p.b.column != kItem) staging = plan.depth_at_once() * kPanel / 2;
        }
        rows = divided(rows, kLineSingles) * kLineSingles;
        totals = divided(totals, kLineSingles) * kLineSingles;
        staging = divided(staging, kLineSingles) * kLineSingles;
      }
    };
  };

  void divide(int threads) {
    threads_ = threads;
    blocks_ = blocks_for(threads);
  }

  // The division into blocks by which threads take the least time, if each block takes as long as its
  // products and its packing.
  Blocks blocks_for(int threads) const {
    const int64_t panels = divided(p_.columns, kPanel);
    const bool has_few = method_ != Method::kBlocks;
    const int64_t most = threads == 1 ? 1 : threads * kBlocksOfAThread;
    const int64_t most_columns = std::min(panels, most);
    const int64_t most_rows = has_few ? 1 : std::min(divided(p_.rows, (kMostRows + 1) / 2), most);
    Blocks best{1, 1, p_.rows, panels * kPanel};
    double least = -1;
    for (int64_t rows = 1; rows <= most_rows; ++rows) {
      for (int64_t columns = 1; columns <= most_columns; ++columns) {
        const Blocks blocks{rows, columns, divided(p_.rows, rows), divided(panels, columns) * kPanel};
        const auto deep = static_cast<double>(blocks.most_columns / kPanel);
        const double packed_columns = has_few ? 0 : kPackedColumns;
        const auto high = static_cast<double>(blocks.most_rows);
        const auto turns = static_cast<double>(divided(blocks.most_columns, kBlockColumns));
        const double block = deep * (high + packed_columns) + kPackedRows * high * turns;
        const double time = static_cast<double>(divided(batches_ * rows * columns, threads)) * block;
        if (least >= 0 && time >= least) continue;
        least = time;
        best = blocks;
      }
    }
    return best;
  }

  std::array<int64_t, 4> offsets(int64_t batch) const {
    std::array<int64_t, 4> found{};
    for (size_t d = p_.batch.size(); d-- > 0; batch /= p_.batch[d]) {
      for (size_t i = 0; i < found.size(); ++i) found[i] += batch % p_.batch[d] * p_.steps[i][d];
    }
    return found;
  }

  // Blocks of columns, packed, by groups of rows.
  void multiply(const Operands& operands, Range rows, Range columns, const Workspace& work) const {
    const int64_t high = p_.depth > kDepth ? kBlockRows : rows.size();
    for (int64_t column = columns.begin; column < columns.end; column += kBlockColumns) {
      const Range block{column, std::min(column + kBlockColumns, columns.end)};
      for (int64_t row = rows.begin; row < rows.end; row += high) {
        for (int64_t k = 0; k < p_.depth; k += kDepth) {
          if (is_cancelled()) return;
          const int64_t depth = std::min(kDepth, p_.depth - k);
          pack_panels<Item, float>(operands.b + k * p_.b.row + block.begin * p_.b.column, p_.b, depth,
                                   block.size(), work.panels, panel_step(), work.staging);
          multiply_block(operands, {row, std::min(row + high, rows.end)}, block, {k, k + depth}, work);
        }
      }
    }
  }

  // Whether rows are read where they are.
  bool reads_rows(Range columns) const {
    if (kItem != 4) return false;
    if (columns.size() <= kFewPanels * kPanel) return true;
    return p_.a.column == kItem && std::abs(p_.a.row) * kMostRows <= kNearRows;
  }

  Rows rows_at(const Operands& operands, Range rows, Range depth, bool is_read, const Workspace& work) const {
    const std::byte* const from = operands.a + rows.begin * p_.a.row + depth.begin * p_.a.column;
    if (is_read) return {from, p_.a.row, p_.a.column};
    return pack_rows<Item>(from, p_.a, rows.size(), depth.size(), work.rows, packed_row_step(p_.depth));
  }

  // Tiles of rows, as even as can be, by panels that are packed; what a part of the depth sums is added to
  // what the parts before it did.
  void multiply_block(const Operands& operands, Range rows, Range columns, Range depth,
                      const Workspace& work) const {
    const bool is_read = reads_rows(columns);
    const int64_t tiles = divided(rows.size(), kMostRows);
    const auto row_of = [&](int64_t tile) { return rows.begin + share_begin(tile, tiles, rows.size()); };
    for (int64_t first = 0; first < tiles; first += kGroupTiles) {
      const int64_t last = std::min(first + kGroupTiles, tiles);
      const Range group{row_of(first), row_of(last)};
      const Rows from = rows_at(operands, group, depth, is_read, work);
      for (int64_t t = first; t < last; ++t) {
        const Range tile{row_of(t), row_of(t + 1)};
        multiply_tiles(operands, tile, columns, depth,
                       {from.from + (tile.begin - group.begin) * from.row_step, from.row_step, from.step},
                       work.totals + (tile.begin - rows.begin) * divided(columns.size(), kPanel) * kPanel,
                       work);
      }
    }
  }

  // A tile of rows by the panels of a block.
  void multiply_tiles(const Operands& operands, Range rows, Range columns, Range depth, Rows from,
                      float* totals, const Workspace& work) const {
    static constexpr float kZeros[kPanel]{};
    alignas(sizeof(Columns)) float results[kMostRows * kPanel];
    DenseTile tile{from.from, from.row_step, from.step, depth.size(), nullptr, 0, kZeros, 0};
    const bool is_first = depth.begin == 0;
    const bool is_last = depth.end == p_.depth;
    const bool is_stored = is_last && kItem == 4 && p_.is_plain() && p_.y.column == kItem;
    const float* weights = work.panels;
    for (int64_t column = columns.begin; column < columns.end;
         column += kPanel, weights += panel_step(), totals += rows.size() * kPanel) {
      const Range panel{column, std::min(column + kPanel, columns.end)};
      const int64_t width = width_of(panel.size());
      tile.weights = reinterpret_cast<const std::byte*>(weights);
      tile.weights_step = width * 4;
      tile.added = is_first ? nullptr : totals;
      tile.added_step = width;
      const auto multiply = kMultiplyTile[width > kColumnLanes][static_cast<size_t>(rows.size() - 1)];
      if (is_stored && panel.size() == width) {
        tile.results_step = p_.y.row / kItem;
        multiply(tile, reinterpret_cast<float*>(operands.y + rows.begin * p_.y.row + column * kItem));
        continue;
      }
      tile.results_step = width;
      multiply(tile, is_last ? results : totals);
      if (is_last) finish_tile<Item>(p_, operands, rows, panel, results, width);
    }
  }

  // Few rows by panels that are not packed: of a part of the depth all of them, and then of the next.
  void multiply_few(const Operands& operands, Range columns, const Workspace& work) const {
    for (int64_t column = columns.begin; column < columns.end; column += kReadColumns) {
      const Range block{column, std::min(column + kReadColumns, columns.end)};
      const int64_t size = p_.rows * divided(block.size(), kPanel) * kPanel;
      float* const totals = work.totals;
      for (int64_t k = 0; k < p_.depth; k += kDepth) {
        if (is_cancelled()) return;
        const Range depth{k, std::min(k + kDepth, p_.depth)};
        float* const sums = k == 0 ? totals : totals + size;
        multiply_where_they_are(operands, block, depth, sums, work);
        for (int64_t i = 0; k != 0 && i < size; ++i) totals[i] += sums[i];
      }
      for (int64_t c = 0; c < block.size(); c += kPanel) {
        const Range panel{block.begin + c, std::min(block.begin + c + kPanel, block.end)};
        finish_tile<Item>(p_, operands, {0, p_.rows}, panel, totals + c * p_.rows, kPanel);
      }
    }
  }

  void multiply_where_they_are(const Operands& operands, Range columns, Range depth, float* sums,
                               const Workspace& work) const {
    static constexpr float kZeros[kPanel]{};
    const bool is_read = kItem == 4 && p_.a.column == kItem;
    const Rows rows = rows_at(operands, {0, p_.rows}, depth, is_read, work);
    const int64_t tiles = divided(p_.rows, kMostRows);
    DenseTile tile{nullptr, rows.row_step, rows.step, 0, nullptr, 0, nullptr, 0};
    for (int64_t k = depth.begin; k < depth.end; k += kReadDepth) {
      tile.depth = std::min(kReadDepth, depth.end - k);
      for (int64_t c = 0; c < columns.size(); c += kPanel) {
        const std::byte* const from = operands.b + k * p_.b.row + (columns.begin + c) * kItem;
        const int64_t count = std::min(kPanel, columns.size() - c);
        // What comes next.
        for (int64_t i = 0; i < tile.depth; ++i) {
          for (int64_t line = 0; line < kPanel * kItem; line += kLine)
            prefetch_line(from + i * p_.b.row + kPanel * kItem + line);
        }
        if (kItem == 4 && count == kPanel) {
          tile.weights = from;
          tile.weights_step = p_.b.row;
        } else {
          // In rows as wide as a panel, that of the last columns too.
          if (count < kPanel) std::fill_n(work.panels, tile.depth * kPanel, 0.0f);
          for (int64_t i = 0; i < tile.depth; ++i)
            widen_run<Item>(from + i * p_.b.row, work.panels + i * kPanel, count);
          tile.weights = reinterpret_cast<const std::byte*>(work.panels);
          tile.weights_step = kPanel * 4;
        }
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t row = share_begin(t, tiles, p_.rows);
          float* const to = sums + c * p_.rows + row * kPanel;
          const bool is_first = k == depth.begin;
          tile.from = rows.from + row * rows.row_step + (k - depth.begin) * rows.step;
          tile.start = is_first ? kZeros : to;
          tile.start_step = is_first ? 0 : kPanel;
          kMultiplyTile[1][static_cast<size_t>(share_begin(t + 1, tiles, p_.rows) - row - 1)](tile, to);
        }
      }
    }
  }

  // One row by columns that lie side by side.
  void multiply_row(const Operands& operands, Range columns, const Workspace& work) const {
    for (int64_t column = columns.begin; column < columns.end; column += kReadColumns) {
      const int64_t count = std::min(kReadColumns, columns.end - column);
      for (int64_t k = 0; k < p_.depth; k += kDepth) {
        if (is_cancelled()) return;
        const int64_t depth = std::min(kDepth, p_.depth - k);
        widen_line<Item>(operands.a + k * p_.a.column, p_.a.column, work.rows, depth);
        float* const sums = k == 0 ? work.totals : work.totals + kReadColumns;
        multiply_row_along<Item>(work.rows, operands.b + k * p_.b.row + column * kItem, p_.b.row, depth,
                                 count, sums);
        for (int64_t i = 0; k != 0 && i < count; ++i) work.totals[i] += sums[i];
      }
      for (int64_t c = 0; c < count; c += kPanel) {
        const Range panel{column + c, column + std::min(c + kPanel, count)};
        finish_tile<Item>(p_, operands, {0, 1}, panel, work.totals + c, kPanel);
      }
    }
  }

  // A few rows by columns of which each lies side by side.
  void multiply_across([[maybe_unused]] const Operands& operands, [[maybe_unused]] Range columns,
                       [[maybe_unused]] const Workspace& work) const {
    if constexpr (kMultipliesAcross<Item>) {
      const auto across = kMultiplyRowsAcross<Item>[p_.rows - 1];
      float* const totals = work.totals;
      const int64_t size = p_.rows * kPanel;
      for (int64_t column = columns.begin; column < columns.end; column += kPanel) {
        // Of the last columns a whole panel, too: those before them are computed again.
        const int64_t begin = std::min(column, p_.columns - kPanel);
        for (int64_t k = 0; k < p_.depth; k += kDepth) {
          if (is_cancelled()) return;
          const int64_t depth = std::min(kDepth, p_.depth - k);
          for (int64_t row = 0; row < p_.rows; ++row) {
            widen_line<Item>(operands.a + row * p_.a.row + k * p_.a.column, p_.a.column,
                             work.rows + row * kDepth, depth);
          }
          float* const sums = k == 0 ? totals : totals + size;
          across(work.rows, operands.b + k * p_.b.row + begin * p_.b.column, p_.b.column, depth, sums);
          for (int64_t i = 0; k != 0 && i < size; ++i) totals[i] += sums[i];
        }
        const Range panel{column, std::min(column + kPanel, columns.end)};
        for (int64_t row = 0; column > begin && row < p_.rows; ++row) {
          float* const at = totals + row * kPanel;
          std::copy(at + (column - begin), at + kPanel, at);
        }
        finish_tile<Item>(p_, operands, {0, p_.rows}, panel, totals, kPanel);
      }
    }
  }

  Product p_;
  int64_t batches_ = 1;
  int64_t work_ = 0;
  Method method_ = Method::kBlocks;
  int threads_ = 0;
  Blocks blocks_{};
};

Matrix matrix_of(const Layout& layout, bool is_transposed) {
  const size_t rank = layout.sizes.size();
  const Matrix matrix{layout.strides[rank - 2], layout.strides[rank - 1]};
  return is_transposed ? matrix.transposed() : matrix;
}

bool is_better_transposed(const Product& product, int64_t item) {
  if (product.columns == 1) return product.rows > 1;
  return product.rows > kRowsAcross && product.rows <= kColumnLanes && product.columns > product.rows &&
         product.b.row == item && product.b.column != product.b.row;
}

std::unique_ptr<Plan> plan_of(const Request& request, std::string& reason) {
  const Layout& a = tensor(request.inputs, 0);
  const Layout& b = tensor(request.inputs, 1);
  const Layout& c = request.inputs.at(2);
  const Layout& y = tensor(request.outputs, 0);
  const Attributes& attributes = request.attributes;
  if (a.type != DataType::kFloat32 && a.type != DataType::kFloat16) {
    reason = "no products of " + std::string(name_of(a.type));
    return nullptr;
  }
  const std::optional<Fused> fused = Fused::of(attributes.activation("FusedActivation"));
  if (!fused) {
    reason = "no activation but RELU and CLIP";
    return nullptr;
  }
  const size_t rank = a.sizes.size();
  require(rank >= 2 && b.sizes.size() == rank && y.sizes.size() == rank, "the ranks of matrices differ");
  require(b.type == a.type && y.type == a.type && (!c.present || c.type == a.type),
          "the types of matrices differ");
  require(!c.present || c.sizes == y.sizes, "the sizes of what is added are not those of the output");
  const bool is_a_transposed = attributes.integer("TransA") != 0;
  const bool is_b_transposed = attributes.integer("TransB") != 0;
  Product product{.batch = {y.sizes.begin(), y.sizes.end() - 2},
                  .steps = {},
                  .rows = y.sizes[rank - 2],
                  .columns = y.sizes[rank - 1],
                  .depth = a.sizes[is_a_transposed ? rank - 2 : rank - 1],
                  .a = matrix_of(a, is_a_transposed),
                  .b = matrix_of(b, is_b_transposed),
                  .c = c.present ? matrix_of(c, false) : Matrix{0, 0},
                  .y = matrix_of(y, false),
                  .has_c = c.present,
                  .alpha = attributes.real("Alpha"),
                  .beta = attributes.real("Beta"),
                  .has_activation = attributes.activation("FusedActivation") != nullptr,
                  .fused = *fused,
                  .is_swapped = false};
  require(a.sizes[is_a_transposed ? rank - 1 : rank - 2] == product.rows &&
              b.sizes[is_b_transposed ? rank - 1 : rank - 2] == product.depth &&
              b.sizes[is_b_transposed ? rank - 2 : rank - 1] == product.columns,
          "the sizes of matrices do not match");
  const Layout* const all[] = {&a, &b, &c, &y};
  for (size_t i = 0; i < product.steps.size(); ++i) {
    if (!all[i]->present) {
      product.steps[i].assign(rank - 2, 0);
      continue;
    }
    require(std::equal(product.batch.begin(), product.batch.end(), all[i]->sizes.begin()), "batches differ");
    product.steps[i].assign(all[i]->strides.begin(), all[i]->strides.end() - 2);
  }
  // Of few rows, columns that are packed in memory are read as rows, and nothing is packed anew. One column
  // is a row.
  std::string description = "product of matrices";
  if (is_better_transposed(product, size_of(a.type))) {
    std::swap(product.rows, product.columns);
    product.a = std::exchange(product.b, product.a.transposed()).transposed();
    product.c = product.c.transposed();
    product.y = product.y.transposed();
    product.is_swapped = true;
    description += ", transposed";
  }
  if (a.type == DataType::kFloat16) return std::make_unique<GemmPlan<Half>>(std::move(product), description);
  return std::make_unique<GemmPlan<float>>(std::move(product), description);
}

}  // namespace

std::unique_ptr<Plan> make_gemm(const Request& request, std::string& reason) {
  return plan_of(request, reason);
}

ANYDML_ISA_END
