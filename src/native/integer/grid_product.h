// Convolutions whose input is copied to a grid, block by block of places: what such plans have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "integer/grid.h"
#include "integer/outputs.h"
#include "integer/problem.h"
#include "integer/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"

ANYDML_ISA_BEGIN
namespace {

// The rows and columns of places, and the results, of a block.
struct GridShape {
  int64_t rows, columns, results;
};

// The largest blocks whose grids take at most kGridBytes, of `place_bytes` for each place, and of which there
// are enough for all threads.
inline GridShape grid_shape(const Problem& problem, int64_t unit, int64_t place_bytes, int64_t result_unit,
                            int64_t products, int threads) {
  const Spatial& height = problem.depth.height;
  const Spatial& width = problem.depth.width;
  GridShape shape = {height.places, width.places, padded(problem.rows, result_unit)};
  const auto is_large = [&] {
    return Grid(problem.depth, shape.rows, shape.columns, unit).places() * place_bytes > kGridBytes;
  };
  const auto halve = [](int64_t& size, int64_t all, int64_t by) {
    size = padded(divided_up(all, divided_up(all, size) * 2), by);
  };
  while (shape.rows > 1 && is_large()) halve(shape.rows, height.places, 1);
  while (shape.columns > 2 * unit && is_large()) halve(shape.columns, width.places, unit);
  const auto blocks = [&] {
    return products * divided_up(height.places, shape.rows) * divided_up(width.places, shape.columns) *
           divided_up(problem.rows, shape.results);
  };
  while (threads > 1 && blocks() < threads * kTasksPerThread) {
    if (shape.rows > 1 && shape.rows * shape.columns > kFewPlaces) {
      halve(shape.rows, height.places, 1);
    } else if (shape.columns > kFewPlaces) {
      halve(shape.columns, width.places, unit);
    } else if (shape.results > result_unit) {
      halve(shape.results, problem.rows, result_unit);
    } else if (shape.rows > 1) {
      halve(shape.rows, height.places, 1);
    } else {
      break;
    }
  }
  return shape;
}

class GridProduct : public Plan {
 protected:
  // A block of one image and group.
  struct Block {
    const std::byte* a;
    const std::byte* b;
    int64_t group;
    int64_t first_result, results;
    int64_t parameters;  // the number of the group's first result among parameters
    Part part;
    bool is_again;  // whether the thread had the same part of the group before
  };

  // Places are computed `unit` at a time, results by multiples of `result_unit`.
  GridProduct(Problem problem, std::string description, int64_t unit, int64_t place_bytes,
              int64_t result_unit, double products_per_byte)
      : Plan(std::move(description)),
        p_(std::move(problem)),
        threads_(threads_for(static_cast<int64_t>(std::min(p_.work(products_per_byte), 0x1p62)))),
        shape_(grid_shape(p_, unit, place_bytes, result_unit, p_.outer[0].size * p_.outer[1].size, threads_)),
        grid_(p_.depth, shape_.rows, shape_.columns, unit) {}

  // Where a part of a thread's memory begins, which `count` elements take.
  int64_t take(int64_t count, size_t size) {
    const int64_t at = room_;
    room_ += padded(count * static_cast<int64_t>(size), kLine);
    return at;
  }

  // Calls compute(block, out, room) for all blocks, the outputs of whose first place begin at `out`. Small
  // blocks are computed for several groups one after the other.
  template <class Compute>
  void each_block(const void* const* inputs, void* const* outputs, const Compute& compute) const {
    const Scratch rooms(room_ * threads_);
    const int64_t rows = divided_up(p_.depth.height.places, shape_.rows);
    const int64_t columns = divided_up(p_.depth.width.places, shape_.columns);
    const int64_t results = divided_up(p_.rows, shape_.results);
    const Outer& image = p_.outer[0];
    const Outer& group = p_.outer[1];
    const int64_t places = rows * columns * results;
    const int64_t most = std::max<int64_t>(1, kGroupedPlaces / (shape_.rows * shape_.columns));
    const int64_t enough = threads_ == 1 ? 1 : divided_up(threads_ * kTasksPerThread, places * image.size);
    const int64_t chunks = std::min(group.size, std::max(divided_up(group.size, most), enough));
    parallel_for(image.size * chunks * places, threads_, [&](int64_t index, int worker) {
      Block block = {};
      block.first_result = index % results * shape_.results;
      block.results = std::min(shape_.results, p_.rows - block.first_result);
      index /= results;
      block.part.begin = index % columns * shape_.columns;
      block.part.end = std::min(block.part.begin + shape_.columns, p_.depth.width.places);
      index /= columns;
      block.part.first_row = index % rows * shape_.rows;
      block.part.rows = std::min(shape_.rows, p_.depth.height.places - block.part.first_row);
      index /= rows;
      const int64_t chunk = index % chunks;
      index /= chunks;
      const int64_t end = share_begin(chunk + 1, chunks, group.size);
      for (block.group = share_begin(chunk, chunks, group.size); block.group < end; ++block.group) {
        block.a = static_cast<const std::byte*>(inputs[p_.a]) + block.group * group.a;
        block.b = static_cast<const std::byte*>(inputs[p_.b]) + index * image.b + block.group * group.b;
        block.parameters = block.group * group.rows;
        std::byte* const out = static_cast<std::byte*>(outputs[0]) + index * image.out +
                               block.group * group.out + block.part.first_row * p_.out_height +
                               block.part.begin * p_.out_width;
        compute(block, out, rooms.bytes() + worker * room_);
        block.is_again = true;
      }
    });
  }

  // Of sums that have room for whole batches.
  RowWriter writer_of(const Block& block, const void* const* inputs, std::byte* out, int64_t first,
                      int64_t places) const {
    return RowWriter(p_, inputs, nullptr, out, first, places,
                     {block.part.end - block.part.begin, grid_.pitch, true});
  }

  Problem p_;
  int threads_;
  GridShape shape_;
  Grid grid_;

 private:
  static constexpr int64_t kLine = 64;

  int64_t room_ = 0;  // bytes of a thread
};

}  // namespace
ANYDML_ISA_END
