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
#include "dense/blocks.h"
#include "dense/few_rows.h"
#include "dense/packing.h"
#include "dense/product.h"
#include "dense/shallow.h"
#include "dense/singles.h"
#include "dense/tile.h"
#include "dense/tuning.h"
#include "nhwc/fused_activation.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

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
    method_ = method();
    // What a product moves counts where it is more; results do where there is little else.
    const int64_t results = method_ == Method::kShallow ? p_.rows * p_.columns : 0;
    const int64_t bytes = (p_.rows * p_.depth + p_.depth * p_.columns + results) * kItem;
    work_ = batches_ * std::max(work, bytes);
    divide(threads_for(work_));
  }

  // Where the right matrix is packed for each call, and is one for the whole batch, it can be packed once.
  bool has_prepack() const override {
    const std::vector<int64_t>& steps = p_.steps[1];
    return !p_.is_swapped && method_ == Method::kBlocks && known_ == nullptr &&
           std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 0; });
  }

  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    const bool keeps_c = p_.has_c && inputs[2] != nullptr;
    if (!has_prepack() || inputs[1] == nullptr || inputs[0] != nullptr) return nullptr;
    if (keeps_c &&
        !std::all_of(p_.steps[2].begin(), p_.steps[2].end(), [](int64_t step) { return step == 0; })) {
      return nullptr;
    }
    const auto known = std::make_shared<const Singles64>(divided_up(p_.depth * packed_columns() * kItem, 4));
    auto* const to = reinterpret_cast<Item*>(known->data());
    const auto* const from = static_cast<const std::byte*>(inputs[1]);
    const int64_t panels = divided_up(p_.columns, kPanel);
    const int64_t parts = divided_up(panels, kPackedAtOnce);
    parallel_for(parts, threads_for(p_.depth * p_.columns * kItem), [&](int64_t part) {
      const int64_t first = share_begin(part, parts, panels) * kPanel;
      const int64_t end = std::min(share_begin(part + 1, parts, panels) * kPanel, p_.columns);
      pack_panels<Item, Item>(from + first * p_.b.column, p_.b, p_.depth, end - first, to + first * p_.depth,
                              kPanel * p_.depth, nullptr);
    });
    auto plan = std::make_unique<GemmPlan>(p_, description());
    plan->known_ = known;
    if (keeps_c) plan->keep_c(static_cast<const std::byte*>(inputs[2]));
    return plan;
  }

  int64_t prepack_bytes() const override {
    if (known_ == nullptr) return 0;
    return p_.depth * packed_columns() * kItem + static_cast<int64_t>(known_c_.size()) * kItem;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(work_);
    const Blocks blocks = threads == threads_ ? blocks_ : blocks_for(threads);
    const Sizes sizes(*this, blocks);
    const int64_t size = sizes.all();
    const int64_t count = batches_ * blocks.rows * blocks.columns;
    const int64_t workers = std::min<int64_t>(threads, count);
    const Scratch memory(workers * size * 4);
    const int64_t panels = divided_up(p_.columns, kPanel);
    const auto* const c = known_c_.empty() ? static_cast<const std::byte*>(inputs[2])
                                           : reinterpret_cast<const std::byte*>(known_c_.data());
    const int64_t blocks_of_one = blocks.rows * blocks.columns;
    const auto multiply = [&](int64_t i, int worker) {
      Range rows{0, p_.rows};
      Range columns{0, p_.columns};
      int64_t batch = i;
      // Beside a small product divisions take long.
      if (blocks_of_one > 1) {
        const int64_t column = i % blocks.columns;
        const int64_t row = i / blocks.columns % blocks.rows;
        rows = {share_begin(row, blocks.rows, p_.rows), share_begin(row + 1, blocks.rows, p_.rows)};
        columns = {share_begin(column, blocks.columns, panels) * kPanel,
                   std::min(share_begin(column + 1, blocks.columns, panels) * kPanel, p_.columns)};
        batch = i / blocks_of_one;
      }
      const std::array<int64_t, 4> at = offsets(batch);
      const size_t a = p_.is_swapped ? 1 : 0;
      const Operands operands{
          static_cast<const std::byte*>(inputs[a]) + at[a],
          known_ == nullptr ? static_cast<const std::byte*>(inputs[1 - a]) + at[1 - a] : nullptr,
          p_.has_c ? c + at[2] : nullptr, static_cast<std::byte*>(outputs[0]) + at[3]};
      const Workspace work = sizes.at(memory.floats() + worker * size);
      const FewRows<Item> few(p_, operands, work);
      switch (method_) {
        case Method::kShallow:
          return ShallowProduct(p_, operands).multiply(rows, columns);
        case Method::kRow:
          return few.multiply_row(columns);
        case Method::kRowsAcross:
          return few.multiply_across(columns);
        case Method::kFewRows:
          return few.multiply_few(columns);
        case Method::kBlocks:
          return BlockedProduct<Item>(p_, operands, known_items(), work).multiply(rows, columns);
      }
    };
    // Of small products several in a call, which takes as long as one of them.
    const int64_t calls =
        std::clamp(work_ / kBytesOfCall, std::min(count, threads * kBlocksOfAThread), count);
    parallel_for(calls, threads, [&](int64_t call, int worker) {
      const int64_t end = share_begin(call + 1, calls, count);
      for (int64_t i = share_begin(call, calls, count); i < end; ++i) multiply(i, worker);
    });
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(Item));

  enum class Method { kBlocks, kShallow, kRow, kRowsAcross, kFewRows };

  Method method() const {
    if (kItem == 4 && ShallowProduct::takes(p_)) return Method::kShallow;
    if (p_.b.column == kItem) {
      return p_.rows == 1 ? Method::kRow : p_.rows <= kFewRows ? Method::kFewRows : Method::kBlocks;
    }
    const bool is_across = kTransposesColumns<Item> && p_.b.row == kItem && p_.columns >= kPanel;
    return is_across && p_.rows <= kRowsAcross ? Method::kRowsAcross : Method::kBlocks;
  }

  // What a thread needs for a block, in singles, each a multiple of a line.
  struct Sizes {
    int64_t panels = 0;
    int64_t rows = 0;
    int64_t totals = 0;
    int64_t staging = 0;

    Sizes(const GemmPlan& plan, const Blocks& blocks) {
      const Product& p = plan.p_;
      const int64_t columns = std::min(blocks.most_columns, kBlockColumns);
      switch (plan.method_) {
        case Method::kShallow:
          break;
        case Method::kRow:
          rows = kDepth;
          totals = 2 * kReadColumns;
          break;
        case Method::kRowsAcross:
          rows = p.rows * kDepth;
          totals = 2 * p.rows * kPanel;
          break;
        case Method::kFewRows:
          panels = kReadDepth * kPanel;
          if (kItem != 4 || p.a.column != kItem) rows = packed_rows_size(p.rows, p.depth);
          totals = 2 * p.rows * std::min(blocks.most_columns, kReadColumns);
          break;
        case Method::kBlocks:
          if (kItem != 4 || plan.known_ == nullptr) panels = columns / kPanel * panel_step(p);
          if (!reads_rows<Item>(p, columns)) rows = packed_rows_size(blocks.most_rows, p.depth);
          if (p.depth > kDepth) totals = std::min(blocks.most_rows, kBlockRows) * columns;
          if (kItem != 4 && p.b.column != kItem) staging = depth_at_once(p) * kPanel / 2;
          break;
      }
      for (int64_t* const size : {&panels, &rows, &totals, &staging}) {
        *size = divided_up(*size, kLineSingles) * kLineSingles;
      }
    }

    int64_t all() const { return panels + rows + totals + staging; }
    Workspace at(float* memory) const {
      float* const totals_at = memory + panels + rows;
      return {memory, memory + panels, totals_at, reinterpret_cast<std::byte*>(totals_at + totals)};
    }
  };

  void divide(int threads) {
    threads_ = threads;
    blocks_ = blocks_for(threads);
  }

  // The division into blocks by which threads take the least time, if each block takes as long as its
  // products and its packing.
  Blocks blocks_for(int threads) const {
    const int64_t panels = divided_up(p_.columns, kPanel);
    const int64_t most = threads == 1 ? 1 : threads * kBlocksOfAThread;
    const int64_t high_tiles = std::min(divided_up(p_.rows, (kMostRows + 1) / 2), most);
    // Few rows are not divided; nor is a shallow product's row, which is one run of memory, where there are
    // rows enough.
    const bool is_shallow = method_ == Method::kShallow;
    const bool packs = method_ == Method::kBlocks;
    const int64_t most_rows = packs || is_shallow ? high_tiles : 1;
    const int64_t most_columns = is_shallow && high_tiles == most ? 1 : std::min(panels, most);
    Blocks best{1, 1, p_.rows, panels * kPanel};
    double least = -1;
    for (int64_t rows = 1; rows <= most_rows; ++rows) {
      for (int64_t columns = 1; columns <= most_columns; ++columns) {
        const Blocks blocks{rows, columns, divided_up(p_.rows, rows), divided_up(panels, columns) * kPanel};
        const auto deep = static_cast<double>(blocks.most_columns / kPanel);
        const double packed_columns = packs ? kPackedColumns : 0;
        const auto high = static_cast<double>(blocks.most_rows);
        const auto turns = static_cast<double>(divided_up(blocks.most_columns, kBlockColumns));
        const double packed_rows = packs ? kPackedRows * high * turns : 0;
        const double block = deep * (high + packed_columns) + packed_rows;
        // A thread that comes late makes the others wait for a part of a block.
        const double rounds =
            static_cast<double>(divided_up(batches_ * rows * columns, threads)) + kLateBlocks;
        const double time = rounds * block;
        if (least >= 0 && time > least) continue;
        least = time;
        best = blocks;
      }
    }
    return best;
  }

  // Copies what is added, once where it is the same for all rows or columns.
  void keep_c(const std::byte* from) {
    const int64_t rows = p_.c.row == 0 ? 1 : p_.rows;
    const int64_t columns = p_.c.column == 0 ? 1 : p_.columns;
    known_c_.resize(static_cast<size_t>(rows * columns));
    auto* to = known_c_.data();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = 0; c < columns; ++c) *to++ = load<Item>(from + row * p_.c.row + c * p_.c.column);
    }
    p_.c = {rows == 1 ? 0 : columns * kItem, columns == 1 ? 0 : kItem};
  }

  // With those that fill the last vector.
  int64_t packed_columns() const { return divided_up(p_.columns, kColumnLanes) * kColumnLanes; }

  const Item* known_items() const {
    return known_ == nullptr ? nullptr : reinterpret_cast<const Item*>(known_->data());
  }

  std::array<int64_t, 4> offsets(int64_t batch) const {
    std::array<int64_t, 4> found{};
    for (size_t d = p_.batch.size(); d-- > 0 && batch > 0;) {
      const int64_t index = d == 0 ? batch : batch % p_.batch[d];
      for (size_t i = 0; i < found.size(); ++i) found[i] += index * p_.steps[i][d];
      if (d > 0) batch /= p_.batch[d];
    }
    return found;
  }

  Product p_;
  int64_t batches_ = 1;
  int64_t work_ = 0;
  Method method_ = Method::kBlocks;
  int threads_ = 0;
  Blocks blocks_{};
  std::shared_ptr<const Singles64> known_;
  std::vector<Item> known_c_;
};

Matrix matrix_of(const Layout& layout, bool is_transposed) {
  const size_t rank = layout.sizes.size();
  const Matrix matrix{layout.strides[rank - 2], layout.strides[rank - 1]};
  return is_transposed ? matrix.transposed() : matrix;
}

// Removes dimensions of the batch that have one size, and those whose products have the right matrix in
// common and whose rows follow each other: they are one product of more rows.
void fold_batch(Product& p) {
  for (size_t d = p.batch.size(); d-- > 0;) {
    const int64_t size = p.batch[d];
    // One row has no step of its own.
    const auto follows = [&](size_t i, const Matrix& m) {
      return p.rows == 1 || p.steps[i][d] == p.rows * m.row;
    };
    const bool is_one = size > 1 && d + 1 == p.batch.size() && p.steps[1][d] == 0 && follows(0, p.a) &&
                        (!p.has_c || follows(2, p.c)) && follows(3, p.y);
    if (size != 1 && !is_one) continue;
    if (is_one && p.rows == 1) {
      p.a.row = p.steps[0][d];
      p.c.row = p.steps[2][d];
      p.y.row = p.steps[3][d];
    }
    if (is_one) p.rows *= size;
    p.batch.erase(p.batch.begin() + static_cast<std::ptrdiff_t>(d));
    for (auto& steps : p.steps) steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(d));
  }
}

bool is_better_transposed(const Product& product, int64_t item) {
  if (product.columns == 1) return product.rows > 1;
  // Halves take as long to become singles where they are rows as to be packed where they are columns.
  return item == 4 && product.rows > kRowsAcross && product.rows <= kColumnLanes &&
         product.columns > product.rows && product.b.row == item && product.b.column != product.b.row;
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
  const Activation* const activation = attributes.activation("FusedActivation");
  const std::optional<Fused> fused = Fused::of(activation);
  TileActivation program(fused ? Attributes() : attributes);
  if (!fused && (program.is_none() || !program.is_known())) {
    reason = "no activation that is computed on a tile";
    return nullptr;
  }
  const size_t rank = a.sizes.size();
  require(rank >= 2 && b.sizes.size() == rank && y.sizes.size() == rank, "the ranks of matrices differ");
  require(b.type == a.type && (y.type == a.type || y.type == DataType::kFloat32) &&
              (!c.present || c.type == a.type),
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
                  .has_activation = activation != nullptr,
                  .fused = fused ? *fused : *Fused::of(nullptr),
                  .activation = std::move(program),
                  .stores_singles = y.type != a.type,
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
  fold_batch(product);
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
