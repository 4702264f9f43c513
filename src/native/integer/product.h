// Products by blocks: packed, multiplied by tiles, and turned into outputs row by row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "integer/grid.h"
#include "integer/micro_kernel.h"
#include "integer/outputs.h"
#include "integer/pack.h"
#include "integer/problem.h"
#include "integer/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"

ANYDML_ISA_BEGIN
namespace {

// A task is a block of rows and columns of one product, with all its sums. It is as large as operands are
// read often by it, and small enough for all threads to have some.
struct TaskShape {
  int64_t rows, columns;
};

inline TaskShape task_shape(const Problem& problem, int64_t row_unit, int64_t column_unit, int64_t products,
                            int threads, int64_t column_block) {
  TaskShape task = {std::min(kTaskRows, padded(problem.rows, row_unit)),
                    std::min(column_block, padded(problem.columns(), column_unit))};
  const auto tasks = [&] {
    return products * divided_up(problem.rows, task.rows) * divided_up(problem.columns(), task.columns);
  };
  while (threads > 1 && tasks() < threads * kTasksPerThread) {
    if (task.rows > kRowBlock && task.rows >= task.columns) {
      task.rows = padded(task.rows / 2, row_unit);
    } else if (task.columns > 2 * column_unit) {
      task.columns = padded(task.columns / 2, column_unit);
    } else if (task.rows > row_unit) {
      task.rows = padded(task.rows / 2, row_unit);
    } else {
      break;
    }
  }
  return task;
}

// A product whose blocks are shared out to threads.
class BlockedProduct : public Plan {
 public:
  void run(const void* const* inputs, void* const* outputs) const override {
    const Scratch rooms(room_ * threads_);
    parallel_for(calls_, threads_, [&](int64_t call, int worker) {
      std::byte* const room = rooms.bytes() + worker * room_;
      const int64_t end = share_begin(call + 1, calls_, tasks_);
      begin_call();
      for (int64_t task = share_begin(call, calls_, tasks_); task < end; ++task)
        run_task(task, inputs, outputs, room);
      end_call();
    });
  }

 protected:
  // A block of one product.
  struct Block {
    const std::byte* a;
    const std::byte* b;
    int64_t first_row, rows;
    int64_t first_column, columns;
    int64_t parameters;  // the number of the product's first row among parameters
  };

  // `row_unit` and `column_unit` are what sizes of blocks are multiples of.
  BlockedProduct(Problem problem, std::string description, int64_t row_unit, int64_t column_unit,
                 double products_per_byte, int64_t column_block = kColumnBlock)
      : Plan(std::move(description)), p_(std::move(problem)) {
    int64_t products = 1;
    for (const Outer& each : p_.outer) products *= each.size;
    const auto work = static_cast<int64_t>(std::min(p_.work(products_per_byte), 0x1p62));
    threads_ = threads_for(work);
    task_ = task_shape(p_, row_unit, column_unit, products, threads_, column_block);
    tasks_ = products * divided_up(p_.rows, task_.rows) * divided_up(p_.columns(), task_.columns);
    calls_ = std::min(tasks_, std::max(threads_ * kTasksPerThread, work / kBytesPerCall));
  }

  // Where a part of a thread's memory begins, which `count` elements take.
  int64_t take(int64_t count, size_t size) {
    const int64_t at = room_;
    room_ += padded(count * static_cast<int64_t>(size), kAlignment);
    return at;
  }

  // What a thread makes ready for some blocks, and undoes behind them.
  virtual void begin_call() const {}
  virtual void end_call() const {}

  // Writes the rows of a block.
  virtual void compute(const Block& block, const void* const* inputs, std::byte* room,
                       RowWriter& writer) const = 0;

  Problem p_;
  TaskShape task_;

 private:
  static constexpr int64_t kAlignment = 64;

  void run_task(int64_t task, const void* const* inputs, void* const* outputs, std::byte* room) const {
    Block block = {static_cast<const std::byte*>(inputs[p_.a]),
                   static_cast<const std::byte*>(inputs[p_.b]),
                   0,
                   0,
                   0,
                   0,
                   0};
    const std::byte* bias = p_.column_bias.at(inputs, 0);
    auto* out = static_cast<std::byte*>(outputs[0]);
    const int64_t column_parts = divided_up(p_.columns(), task_.columns);
    const int64_t row_parts = divided_up(p_.rows, task_.rows);
    block.first_column = task % column_parts * task_.columns;
    block.columns = std::min(task_.columns, p_.columns() - block.first_column);
    task /= column_parts;
    block.first_row = task % row_parts * task_.rows;
    block.rows = std::min(task_.rows, p_.rows - block.first_row);
    task /= row_parts;
    for (size_t d = p_.outer.size(); d-- > 0;) {
      const Outer& outer = p_.outer[d];
      const int64_t index = task % outer.size;
      task /= outer.size;
      block.a += index * outer.a;
      block.b += index * outer.b;
      if (bias != nullptr) bias += index * outer.bias;
      out += index * outer.out;
      block.parameters += index * outer.rows;
    }
    const int64_t width = p_.depth.width.places;
    RowWriter writer(p_, inputs, bias, out, block.first_column, block.columns, {width, width, false});
    compute(block, inputs, room, writer);
  }

  int threads_;
  int64_t tasks_;
  int64_t calls_;     // which tasks are divided among
  int64_t room_ = 0;  // bytes of a thread
};

template <class Kind>
class ProductPlan final : public BlockedProduct {
  using Cell = typename Kind::Cell;
  using Sum = typename Kind::Sum;

 public:
  ProductPlan(Problem problem, std::string description)
      : BlockedProduct(std::move(problem), std::move(description), Kind::kRows, Kind::kColumns,
                       kProductsPerByte),
        read_a_(reader_of<Cell, true>(p_.a_type)),
        read_b_(reader_of<Cell, false>(p_.b_type)),
        read_run_(reader_of<Cell, true>(p_.b_type)) {
    rows_ = std::min(kRowBlock, task_.rows);
    depth_ = std::min(kDepthBlock, padded(p_.depth.count(), Kind::kDepth));
    room_.a = take(rows_ * depth_, sizeof(Cell));
    room_.b = take(task_.columns * depth_, sizeof(Cell));
    room_.row = take(kLinePiece + Kind::kDepth, sizeof(Cell));
    room_.columns = take(2 * task_.columns, sizeof(Cell));
    room_.zeros = take(task_.columns + rows_, sizeof(Cell));
    room_.sums = take(task_.rows * task_.columns, sizeof(Sum));
    room_.totals = take(is_long() ? task_.rows * task_.columns : 0, sizeof(int64_t));
  }

 private:
  // Where a thread packs, and has its sums: offsets in bytes.
  struct Room {
    int64_t a, b, row, columns, zeros, sums, totals;
  };

  // Whether sums of 32 bits are gathered in 64 before they could leave their range.
  bool is_long() const { return sizeof(Sum) == 4 && p_.depth.count() > kMostProducts; }

  void compute(const Block& block, const void* const* inputs, std::byte* room,
               RowWriter& writer) const override {
    multiply(block, inputs, room);
    const auto* const sums = reinterpret_cast<const Sum*>(room + room_.sums);
    const auto* const totals = reinterpret_cast<const int64_t*>(room + room_.totals);
    for (int64_t r = 0; r < block.rows; ++r) {
      const int64_t row = block.first_row + r;
      if (is_long()) {
        writer.write(totals + r * task_.columns, row, block.parameters + row);
      } else {
        writer.write(sums + r * task_.columns, row, block.parameters + row);
      }
    }
  }

  void multiply(const Block& block, const void* const* inputs, std::byte* room) const {
    const auto cells = [room](int64_t at) { return reinterpret_cast<Cell*>(room + at); };
    auto* const sums = reinterpret_cast<Sum*>(room + room_.sums);
    auto* const totals = reinterpret_cast<int64_t*>(room + room_.totals);
    Cell* const zeros = cells(room_.zeros);
    for (int64_t i = 0; i < block.columns; ++i) {
      zeros[i] = static_cast<Cell>(p_.b_zero.integer(inputs, block.first_column + i));
    }
    const int64_t all = padded(block.rows, Kind::kRows) * task_.columns;
    std::fill_n(sums, all, Sum{0});
    if (is_long()) std::fill_n(totals, all, int64_t{0});
    const int64_t count = p_.depth.count();
    for (int64_t begin = 0; begin < count && !is_cancelled(); begin += depth_) {
      const int64_t end = std::min(count, begin + depth_);
      if (p_.depth.is_transposed() && block.rows <= kFewRows) {
        add_runs(block, begin, end, inputs, room);
      } else {
        add_block(block, begin, end, inputs, room);
      }
      if (is_long() && (end % kMostProducts == 0 || end == count)) {
        for (int64_t i = 0; i < all; ++i) totals[i] += sums[i];
        std::fill_n(sums, all, Sum{0});
      }
    }
  }

  // Tiles of panels.
  void add_block(const Block& block, int64_t begin, int64_t end, const void* const* inputs,
                 std::byte* room) const {
    const auto cells = [room](int64_t at) { return reinterpret_cast<Cell*>(room + at); };
    auto* const sums = reinterpret_cast<Sum*>(room + room_.sums);
    const Cell* const zeros = cells(room_.zeros);
    const int64_t steps = divided_up(end - begin, Kind::kDepth);
    if (p_.depth.is_transposed()) {
      pack_runs<Kind>(p_.depth, block.b, block.first_column, block.columns, begin, end, read_run_, zeros,
                      cells(room_.row), cells(room_.b));
    } else {
      pack_columns<Kind>(p_.depth, block.b, block.first_column, block.columns, begin, end, read_b_, zeros,
                         cells(room_.columns), cells(room_.b));
    }
    for (int64_t first = 0; first < block.rows; first += rows_) {
      const int64_t rows = std::min(rows_, block.rows - first);
      const int64_t row = block.first_row + first;
      set_row_zeros(block.parameters + row, rows, inputs, room);
      pack_rows<Kind>(p_.depth, block.a + row * p_.a_row, p_.a_row, rows, begin, end, read_a_,
                      zeros + task_.columns, cells(room_.row), cells(room_.a));
      for (int64_t c = 0; c < block.columns; c += Kind::kColumns) {
        for (int64_t r = 0; r < rows; r += Kind::kRows) {
          add_tile<Kind>(cells(room_.a) + r * steps * Kind::kDepth, cells(room_.b) + c * steps * Kind::kDepth,
                         steps, std::min<int64_t>(Kind::kRows, rows - r),
                         sums + (first + r) * task_.columns + c, task_.columns);
        }
      }
    }
  }

  // Few rows by columns that are runs: each is multiplied as soon as it is read.
  static_assert(kDepthBlock <= kLinePiece && kFewRows <= Kind::kRows);
  void add_runs(const Block& block, int64_t begin, int64_t end, const void* const* inputs,
                std::byte* room) const {
    const auto cells = [room](int64_t at) { return reinterpret_cast<Cell*>(room + at); };
    auto* const sums = reinterpret_cast<Sum*>(room + room_.sums);
    const Cell* const zeros = cells(room_.zeros);
    Cell* const line = cells(room_.row);
    const int64_t length = padded(end - begin, Kind::kDepth);
    set_row_zeros(block.parameters + block.first_row, block.rows, inputs, room);
    pack_rows<Kind, 1>(p_.depth, block.a + block.first_row * p_.a_row, p_.a_row, block.rows, begin, end,
                       read_a_, zeros + task_.columns, line, cells(room_.a));
    const Depth& depth = p_.depth;
    const std::byte* const b = block.b + block.first_column * depth.width.step + begin * depth.b_step;
    for (int64_t c = 0; c < block.columns; ++c) {
      read_run_(b + c * depth.width.step, depth.b_step, end - begin, zeros + c, line);
      for (int64_t r = 0; r < block.rows; ++r) {
        Sum& sum = sums[r * task_.columns + c];
        sum = wrapped_sum(sum, dot(Kind{}, cells(room_.a) + r * length, line, end - begin));
      }
    }
  }

  static Sum wrapped_sum(Sum a, Sum b) {
    using Bits = std::make_unsigned_t<Sum>;
    return static_cast<Sum>(static_cast<Bits>(a) + static_cast<Bits>(b));
  }

  void set_row_zeros(int64_t first, int64_t rows, const void* const* inputs, std::byte* room) const {
    Cell* const zeros = reinterpret_cast<Cell*>(room + room_.zeros) + task_.columns;
    for (int64_t r = 0; r < rows; ++r) zeros[r] = static_cast<Cell>(p_.a_zero.integer(inputs, first + r));
  }

  Read<Cell> read_a_;
  Read<Cell> read_b_;
  Read<Cell> read_run_;
  int64_t rows_, depth_;  // of a block that is packed
  Room room_;
};

}  // namespace
ANYDML_ISA_END
