// GEMM, products of matrices of any strides: blocks of rows by blocks of columns, of which panels are packed
// as deep as stays in the second cache.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "dense/tile.h"
#include "nhwc/fused_activation.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// The depth of a panel, whose rows are summed apart: 64 KiB of it stay in the second cache, and sums of many
// products keep their accuracy.
constexpr int64_t kDepth = 512;
// Rows and columns of a block.
constexpr int64_t kBlockRows = 192;
constexpr int64_t kBlockColumns = 512;
// Blocks for each thread, so that none waits long for the last.
constexpr int64_t kBlocksOfAThread = 4;
// Rows up to which columns are read where they are, as packing them would take longer than the products; and
// how deep that is done at a time, so that memory is read in long runs.
constexpr int64_t kFewRows = 2 * kMostRows;
constexpr int64_t kReadDepth = 64;

// Steps in bytes from row to row, and from column to column.
struct Matrix {
  int64_t row;
  int64_t column;

  Matrix transposed() const { return {column, row}; }
};

struct Product {
  std::vector<int64_t> batch;
  std::array<std::vector<int64_t>, 4> steps;  // of A, B, C and the output, along the batch
  int64_t rows;
  int64_t columns;
  int64_t depth;
  Matrix a;  // rows by depth
  Matrix b;  // depth by columns
  Matrix c;
  Matrix y;
  bool has_c;
  double alpha;
  double beta;
  bool is_half;
  Fused fused;
  bool is_swapped = false;  // A is the second input
};

class GemmPlan final : public Plan {
 public:
  GemmPlan(Product product, std::string description)
      : Plan(std::move(description)), p_(std::move(product)), item_(p_.is_half ? 2 : 4) {
    for (const int64_t size : p_.batch) batches_ *= size;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t work = p_.rows * p_.depth * p_.columns / kMultiplicationsOfAByte;
    const int64_t bytes = (p_.rows * p_.depth + p_.depth * p_.columns) * item_;
    const int threads = threads_for(batches_ * std::max(work, bytes));
    Blocks blocks = blocks_for(threads);
    const int64_t size = Workspace::size(blocks);
    const int64_t count = batches_ * blocks.rows * blocks.columns;
    const int64_t workers = std::min<int64_t>(threads, count);
    const std::unique_ptr<float[]> memory(new float[static_cast<size_t>(workers * size)]);
    parallel_for(count, threads, [&](int64_t i, int worker) {
      const int64_t column = i % blocks.columns;
      const int64_t row = i / blocks.columns % blocks.rows;
      const Range rows{share_begin(row, blocks.rows, p_.rows), share_begin(row + 1, blocks.rows, p_.rows)};
      const int64_t panels = divided(p_.columns, kPanel);
      const Range columns{share_begin(column, blocks.columns, panels) * kPanel,
                          std::min(share_begin(column + 1, blocks.columns, panels) * kPanel, p_.columns)};
      const std::array<int64_t, 4> at = offsets(i / (blocks.columns * blocks.rows));
      const size_t a = p_.is_swapped ? 1 : 0;
      const Operands operands{static_cast<const std::byte*>(inputs[a]) + at[a],
                              static_cast<const std::byte*>(inputs[1 - a]) + at[1 - a],
                              p_.has_c ? static_cast<const std::byte*>(inputs[2]) + at[2] : nullptr,
                              static_cast<std::byte*>(outputs[0]) + at[3]};
      multiply(operands, rows, columns, Workspace(memory.get() + worker * size, blocks));
    });
  }

 private:
  struct Range {
    int64_t begin;
    int64_t end;
    int64_t size() const { return end - begin; }
  };
  struct Operands {
    const std::byte* a;
    const std::byte* b;
    const std::byte* c;
    std::byte* y;
  };
  // How many there are, and the most rows and columns of one.
  struct Blocks {
    int64_t rows;
    int64_t columns;
    int64_t most_rows;
    int64_t most_columns;
  };

  static constexpr int64_t divided(int64_t size, int64_t by) { return (size + by - 1) / by; }

  // What a thread needs for a block, in floats. Halves are converted 64 at a time.
  struct Workspace {
    float* totals;  // panel by panel, row by row
    float* packed;  // a panel, or the sums of few rows
    float* rows;
    std::byte* halves;

    Workspace(float* memory, const Blocks& blocks)
        : totals(memory),
          packed(totals + blocks.most_rows * blocks.most_columns + kConvertedAtOnce),
          rows(packed + packed_size(blocks)),
          halves(reinterpret_cast<std::byte*>(rows + blocks.most_rows * kDepth + kConvertedAtOnce)) {}

    static int64_t packed_size(const Blocks& blocks) {
      const int64_t sums = std::min(blocks.most_rows, kFewRows) * blocks.most_columns;
      return std::max(kDepth * kPanel + kConvertedAtOnce, sums);
    }
    static int64_t size(const Blocks& blocks) {
      const int64_t halves = kDepth * kPanel / 2 + kConvertedAtOnce;
      return blocks.most_rows * (blocks.most_columns + kDepth) + 2 * kConvertedAtOnce + packed_size(blocks) +
             halves;
    }
  };

  Blocks blocks_for(int threads) const {
    const int64_t panels = divided(p_.columns, kPanel);
    Blocks blocks{divided(p_.rows, kBlockRows), divided(p_.columns, kBlockColumns), 0, 0};
    const int64_t wanted = threads == 1 ? 1 : threads * kBlocksOfAThread;
    while (batches_ * blocks.rows * blocks.columns < wanted && blocks.columns < panels) {
      blocks.columns = std::min(panels, 2 * blocks.columns);
    }
    while (batches_ * blocks.rows * blocks.columns < wanted && blocks.rows * kFewRows < p_.rows) {
      blocks.rows *= 2;
    }
    blocks.most_rows = divided(p_.rows, blocks.rows);
    blocks.most_columns = divided(panels, blocks.columns) * kPanel;
    return blocks;
  }

  std::array<int64_t, 4> offsets(int64_t batch) const {
    std::array<int64_t, 4> found{};
    for (size_t d = p_.batch.size(); d-- > 0; batch /= p_.batch[d]) {
      for (size_t i = 0; i < found.size(); ++i) found[i] += batch % p_.batch[d] * p_.steps[i][d];
    }
    return found;
  }

  void multiply(const Operands& operands, Range rows, Range columns, const Workspace& work) const {
    const bool is_in_place = !p_.is_half && rows.size() <= kFewRows && p_.b.column == 4;
    for (int64_t k = 0; k < p_.depth; k += kDepth) {
      if (is_cancelled()) return;
      const int64_t depth = std::min(kDepth, p_.depth - k);
      DenseTile tile{nullptr, p_.a.row, p_.a.column, depth, nullptr, 0, nullptr, 0};
      tile.from = operands.a + rows.begin * p_.a.row + k * p_.a.column;
      if (packs_rows()) {
        pack_rows(tile.from, rows.size(), depth, work);
        tile.from = reinterpret_cast<const std::byte*>(work.rows);
        tile.row_step = depth * 4;
        tile.step = 4;
      }
      const std::byte* const b = operands.b + k * p_.b.row + columns.begin * p_.b.column;
      const int64_t whole = is_in_place ? columns.size() / kPanel * kPanel : 0;
      if (whole > 0) multiply_in_place(tile, b, rows.size(), whole, k == 0, work);
      for (int64_t first = whole; first < columns.size(); first += kPanel) {
        const int64_t count = std::min(kPanel, columns.size() - first);
        pack(b + first * p_.b.column, depth, count, work);
        tile.weights = reinterpret_cast<const std::byte*>(work.packed);
        tile.weights_step = width_of(count) * 4;
        multiply_panel(tile, rows.size(), k == 0, work.totals + first * rows.size(), width_of(count));
      }
    }
    for (int64_t first = 0; first < columns.size(); first += kPanel) {
      const int64_t count = std::min(kPanel, columns.size() - first);
      finish(operands, rows, {columns.begin + first, columns.begin + first + count},
             work.totals + first * rows.size(), width_of(count));
    }
  }

  // Of a panel of so many columns, whose last vector may be all that it has.
  static int64_t width_of(int64_t columns) { return columns <= kColumnLanes ? kColumnLanes : kPanel; }

  // The rows of a block by a panel, in tiles that are as even as can be.
  static void multiply_panel(DenseTile tile, int64_t rows, bool is_first, float* totals, int64_t width) {
    static constexpr float kZeros[kPanel]{};
    alignas(sizeof(Columns)) float results[kMostRows * kPanel];
    const std::byte* const from = tile.from;
    const int64_t tiles = divided(rows, kMostRows);
    tile.start = kZeros;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = share_begin(t, tiles, rows);
      const int64_t count = share_begin(t + 1, tiles, rows) - row;
      float* const to = totals + row * width;
      tile.from = from + row * tile.row_step;
      kMultiplyTile[width > kColumnLanes][static_cast<size_t>(count - 1)](tile, is_first ? to : results);
      for (int64_t i = 0; !is_first && i < count * width; ++i) to[i] += results[i];
    }
  }

  // Few rows by panels that are not packed: a part of the depth of all of them, and then the next.
  void multiply_in_place(DenseTile tile, const std::byte* b, int64_t rows, int64_t columns, bool is_first,
                         const Workspace& work) const {
    static constexpr float kZeros[kPanel]{};
    const std::byte* const from = tile.from;
    const int64_t depth = tile.depth;
    const int64_t tiles = divided(rows, kMostRows);
    float* const sums = is_first ? work.totals : work.packed;
    tile.weights_step = p_.b.row;
    for (int64_t k = 0; k < depth; k += kReadDepth) {
      tile.depth = std::min(kReadDepth, depth - k);
      for (int64_t first = 0; first < columns; first += kPanel) {
        tile.weights = b + k * p_.b.row + first * 4;
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t row = share_begin(t, tiles, rows);
          float* const to = sums + first * rows + row * kPanel;
          tile.from = from + row * tile.row_step + k * tile.step;
          tile.start = k == 0 ? kZeros : to;
          tile.start_step = k == 0 ? 0 : kPanel;
          kMultiplyTile[1][static_cast<size_t>(share_begin(t + 1, tiles, rows) - row - 1)](tile, to);
        }
      }
    }
    for (int64_t i = 0; !is_first && i < rows * columns; ++i) work.totals[i] += sums[i];
  }

  // Rows that are no floats behind each other become such. Those of few lines stay where they are.
  bool packs_rows() const { return p_.is_half || (p_.a.column != 4 && p_.columns > kPanel); }

  void pack_rows(const std::byte* from, int64_t rows, int64_t depth, const Workspace& work) const {
    auto* const to = reinterpret_cast<std::byte*>(work.rows);
    if (!p_.is_half) return gather_tile<uint32_t>({from, p_.a.row, p_.a.column}, rows, depth, to, depth * 4);
    for (int64_t r = 0; r < rows; r += kPanel) {
      const int64_t count = std::min(kPanel, rows - r);
      gather_tile<uint16_t>({from + r * p_.a.row, p_.a.row, p_.a.column}, count, depth, work.halves,
                            depth * 2);
      widen_halves(work.halves, to + r * depth * 4, divided(count * depth, kConvertedAtOnce));
    }
  }

  // A panel, with zeros for columns that there are not.
  void pack(const std::byte* from, int64_t depth, int64_t columns, const Workspace& work) const {
    const Tile tile{from, p_.b.row, p_.b.column};
    const int64_t width = width_of(columns);
    auto* const to = reinterpret_cast<std::byte*>(work.packed);
    if (p_.is_half) {
      if (columns < width) std::memset(work.halves, 0, static_cast<size_t>(depth * width * 2));
      gather_tile<uint16_t>(tile, depth, columns, work.halves, width * 2);
      widen_halves(work.halves, to, divided(depth * width, kConvertedAtOnce));
    } else {
      if (columns < width) std::memset(to, 0, static_cast<size_t>(depth * width * 4));
      gather_tile<uint32_t>(tile, depth, columns, to, width * 4);
    }
  }

  // y = f(alpha * total + beta * c), of a panel.
  void finish(const Operands& operands, Range rows, Range columns, float* totals, int64_t width) const {
    const int64_t count = columns.size();
    for (int64_t row = rows.begin; row < rows.end; ++row, totals += width) {
      if (p_.has_c) {
        const std::byte* const c = operands.c + row * p_.c.row + columns.begin * p_.c.column;
        for (int64_t i = 0; i < count; ++i) {
          const std::byte* const at = c + i * p_.c.column;
          const double added = p_.is_half ? static_cast<float>(load<Half>(at)) : load<float>(at);
          totals[i] = static_cast<float>(p_.alpha * totals[i] + p_.beta * added);
        }
      } else if (p_.alpha != 1) {
        for (int64_t i = 0; i < count; ++i) totals[i] = static_cast<float>(p_.alpha * totals[i]);
      }
      auto* const bytes = reinterpret_cast<std::byte*>(totals);
      for (int64_t i = 0; i < count; i += kLanesOf<float>) {
        const auto lanes = load_lanes<float, float>(bytes + i * 4);
        store_lanes<float, float>(bytes + i * 4, p_.fused.applied<float>(lanes));
      }
      put(totals, count, operands.y + row * p_.y.row + columns.begin * p_.y.column);
    }
  }

  void put(const float* from, int64_t count, std::byte* to) const {
    const auto* const bytes = reinterpret_cast<const std::byte*>(from);
    if (p_.is_half && p_.y.column == 2) {
      alignas(64) std::byte halves[divided(kPanel, kConvertedAtOnce) * kConvertedAtOnce * 2];
      narrow_to_halves(bytes, halves, divided(count, kConvertedAtOnce));
      std::memcpy(to, halves, static_cast<size_t>(count * 2));
    } else if (p_.is_half) {
      for (int64_t i = 0; i < count; ++i) store(to + i * p_.y.column, Half(from[i]));
    } else if (p_.y.column == 4) {
      std::memcpy(to, bytes, static_cast<size_t>(count * 4));
    } else {
      for (int64_t i = 0; i < count; ++i) store(to + i * p_.y.column, from[i]);
    }
  }

  Product p_;
  int64_t item_;
  int64_t batches_ = 1;
};

Matrix matrix_of(const Layout& layout, bool is_transposed) {
  const size_t rank = layout.sizes.size();
  const Matrix matrix{layout.strides[rank - 2], layout.strides[rank - 1]};
  return is_transposed ? matrix.transposed() : matrix;
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
                  .is_half = a.type == DataType::kFloat16,
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
  // Of few rows, columns that are packed in memory are read as rows, and nothing is packed anew.
  std::string description = "product of matrices";
  if (product.rows <= kColumnLanes && product.columns > product.rows && product.b.row == size_of(a.type) &&
      product.b.column != product.b.row) {
    std::swap(product.rows, product.columns);
    product.a = std::exchange(product.b, product.a.transposed()).transposed();
    product.c = product.c.transposed();
    product.y = product.y.transposed();
    product.is_swapped = true;
    description += ", transposed";
  }
  return std::make_unique<GemmPlan>(std::move(product), std::move(description));
}

}  // namespace

std::unique_ptr<Plan> make_gemm(const Request& request, std::string& reason) {
  return plan_of(request, reason);
}

ANYDML_ISA_END
