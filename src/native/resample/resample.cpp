// Interpolation by tables, one for each dimension: sums along the first dimension of these, then along the
// next one, each in the order of the elements, in double precision; rounded once behind the last one.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "resample/outer_sums.h"
#include "resample/row_table.h"
#include "resample/table.h"
#include "simd/eight.h"

ANYDML_ISA_BEGIN
namespace {

// Pixels of so few elements are put together to rows of eight outputs.
constexpr int64_t kNarrowPixel = 16;
constexpr int64_t kWidestPixel = 256;
// Outputs of a row that are computed together.
constexpr int64_t kMostOutputs = 8192;

// What follows the sums: a division, or a multiplication where that is the same.
class Divisor {
 public:
  explicit Divisor(double divisor) {
    int exponent = 0;
    if (divisor == 1) {
      kind_ = Kind::kNone;
    } else if (std::frexp(divisor, &exponent) == 0.5) {
      kind_ = Kind::kPowerOf2;
      by_ = 1 / divisor;
    } else {
      kind_ = Kind::kAny;
      by_ = divisor;
    }
  }

  ANYDML_INLINE Eight operator()(Eight v) const {
    if (kind_ == Kind::kNone) return v;
    return kind_ == Kind::kPowerOf2 ? v * all_eight(by_) : v / all_eight(by_);
  }

 private:
  enum class Kind { kNone, kPowerOf2, kAny } kind_;
  double by_ = 1;
};

// Outputs of a row and the pixels that they are made of: of narrow pixels blocks of eight elements, else
// pixels.
struct Chunk {
  int64_t begin;
  int64_t end;
  int64_t first;
  int64_t pixels;
};

// Parts of a row whose pixels fit a span; a part of one output may be longer.
template <class Unit>
std::vector<Chunk> chunks_of(int64_t units, int64_t width, int64_t most, const Unit& pixels_of_unit) {
  std::vector<Chunk> chunks;
  for (int64_t i = 0; i < units; ++i) {
    const auto [first, end] = pixels_of_unit(i);
    if (!chunks.empty()) {
      Chunk& chunk = chunks.back();
      int64_t from = chunk.first;
      int64_t to = chunk.first + chunk.pixels;
      if (first != end) {
        to = from == to ? end : std::max(to, end);
        from = chunk.pixels == 0 ? first : std::min(from, first);
      }
      if (i - chunk.begin < most && (to - from) * width <= kSpan) {
        chunk = {chunk.begin, i + 1, from, to - from};
        continue;
      }
    }
    chunks.push_back({i, i + 1, first, end - first});
  }
  return chunks;
}

struct Shape {
  std::vector<Loop> loops;          // over rows
  std::vector<size_t> outer_loops;  // of them those over outputs of the other dimensions with tables
  int64_t width;                    // elements of a pixel
  size_t width_loop;                // over parts of wide pixels
  int64_t part;                     // elements of one
  int64_t pixel_step;               // of the output
  int64_t element_step;
};

class ResamplePlan : public Plan {
 public:
  ResamplePlan(Shape shape, OuterSums sums, std::vector<Chunk> chunks, double divisor, int64_t bytes,
               std::string description)
      : Plan(std::move(description)),
        shape_(std::move(shape)),
        sums_(std::move(sums)),
        chunks_(std::move(chunks)),
        divisor_(divisor),
        bytes_(bytes) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(bytes_);
    const auto per_row = static_cast<int64_t>(chunks_.size());
    const int64_t parts = steps_of(shape_.loops) * per_row;
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      std::vector<double> buffers(static_cast<size_t>((sums_.buffers() + 1) * kBuffer));
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      LoopCursor cursor(shape_.loops, number / per_row);
      for (int64_t of_row = number % per_row; number < end; ++number) {
        std::array<int64_t, kMostDimensions> numbers{};
        for (size_t d = 0; d < shape_.outer_loops.size(); ++d)
          numbers[d] = cursor.index(shape_.outer_loops[d]);
        const int64_t begin = cursor.index(shape_.width_loop) * shape_.part;
        const int64_t width = std::min(shape_.part, shape_.width - begin);
        run_chunk(chunks_[static_cast<size_t>(of_row)], in + cursor.in(), numbers, width, buffers.data(),
                  out + cursor.out());
        if (++of_row == per_row) {
          of_row = 0;
          cursor.advance();
        }
      }
    });
  }

 protected:
  virtual void run_chunk(const Chunk& chunk, const std::byte* in,
                         const std::array<int64_t, kMostDimensions>& numbers, int64_t width, double* buffers,
                         std::byte* out) const = 0;

  Shape shape_;
  OuterSums sums_;
  std::vector<Chunk> chunks_;
  Divisor divisor_;

 private:
  int64_t bytes_;
};

// Blocks of eight elements, whatever pixels these are of.
template <class T>
class RowPlan final : public ResamplePlan {
 public:
  template <class... Arguments>
  explicit RowPlan(RowTable table, Arguments&&... arguments)
      : ResamplePlan(std::forward<Arguments>(arguments)...), table_(std::move(table)) {}

 private:
  void run_chunk(const Chunk& chunk, const std::byte* in, const std::array<int64_t, kMostDimensions>& numbers,
                 int64_t width, double* buffers, std::byte* out) const override {
    constexpr int64_t kItem = sizeof(T);
    sums_.template sum<T>(in, numbers, {chunk.first, chunk.pixels, width}, buffers + kBuffer, buffers);
    const double* const from = buffers - chunk.first * width;
    if (shape_.pixel_step == width * kItem && (width == 1 || shape_.element_step == kItem)) {
      const int64_t size = table_.size();
      table_.sum(chunk.begin, chunk.end, from, [&](int64_t j, Eight sum) {
        store_results<T>(out + j * kItem, kItem, std::min(kEight, size - j), divisor_(sum));
      });
    } else {
      table_.sum(chunk.begin, chunk.end, from, [&](int64_t j, Eight sum) {
        std::byte staged[kEight * kItem];
        narrow_eight<T>(staged, divisor_(sum));
        for (int64_t i = 0; i < std::min(kEight, table_.size() - j); ++i) {
          const int64_t o = (j + i) / width;
          std::memcpy(out + o * shape_.pixel_step + (j + i) % width * shape_.element_step, staged + i * kItem,
                      kItem);
        }
      });
    }
  }

  RowTable table_;
};

// Pixels, whose elements have the same weights.
template <class T>
class PixelPlan final : public ResamplePlan {
 public:
  template <class... Arguments>
  explicit PixelPlan(Table table, Arguments&&... arguments)
      : ResamplePlan(std::forward<Arguments>(arguments)...), table_(std::move(table)) {}

 private:
  void run_chunk(const Chunk& chunk, const std::byte* in, const std::array<int64_t, kMostDimensions>& numbers,
                 int64_t width, double* buffers, std::byte* out) const override {
    constexpr int64_t kItem = sizeof(T);
    if (chunk.pixels * width > kSpan) return run_long(chunk, in, numbers, width, buffers, out);
    sums_.template sum<T>(in, numbers, {chunk.first, chunk.pixels, width}, buffers + kBuffer, buffers);
    for (int64_t o = chunk.begin; o < chunk.end; ++o) {
      const int64_t taps = table_.count_of(o);
      const double* const weights = table_.weights_of(o);
      const double* const from = buffers + (table_.first_of(o) - chunk.first) * width;
      std::byte* const to = out + o * shape_.pixel_step;
      // Whole vectors of packed elements without a word about each.
      int64_t c = 0;
      if (shape_.element_step == kItem && taps == 2) {
        const Eight first = all_eight(weights[0]);
        const Eight second = all_eight(weights[1]);
        const double* const next = from + width;
        for (; c + kEight <= width; c += kEight) {
          narrow_eight<T>(to + c * kItem,
                          divisor_(load_eight(from + c) * first + load_eight(next + c) * second));
        }
      }
      for (; c < width; c += kEight) {
        Eight sum{};
        for (int64_t t = 0; t < taps; ++t) {
          const Eight product = load_eight(from + t * width + c) * all_eight(weights[t]);
          sum = t == 0 ? product : sum + product;
        }
        put(to, c, width, sum);
      }
    }
  }

  // An output of so many pixels that their sums are taken in parts.
  void run_long(const Chunk& chunk, const std::byte* in, const std::array<int64_t, kMostDimensions>& numbers,
                int64_t width, double* buffers, std::byte* out) const {
    double sums[kWidestPixel + kEight]{};
    const int64_t taps = table_.count_of(chunk.begin);
    const double* const weights = table_.weights_of(chunk.begin);
    const int64_t most = kSpan / width;
    for (int64_t begin = 0; begin < taps; begin += most) {
      const int64_t pixels = std::min(most, taps - begin);
      sums_.template sum<T>(in, numbers, {chunk.first + begin, pixels, width}, buffers + kBuffer, buffers);
      for (int64_t t = 0; t < pixels; ++t) {
        add_weighted(buffers + t * width, weights[begin + t], begin + t == 0, width, sums);
      }
    }
    for (int64_t c = 0; c < width; c += kEight) {
      put(out + chunk.begin * shape_.pixel_step, c, width, load_eight(sums + c));
    }
  }

  ANYDML_INLINE void put(std::byte* to, int64_t c, int64_t width, Eight sum) const {
    const int64_t step = shape_.element_step;
    store_results<T>(to + c * step, step, std::min(kEight, width - c), divisor_(sum));
  }

  Table table_;
};

template <class T>
std::unique_ptr<Plan> make_plan_of(Shape shape, std::vector<Outer> outer, Row row, Table table,
                                   double divisor, int64_t bytes, std::string description) {
  const int64_t width = shape.part;
  std::vector<Chunk> chunks;
  if (width < kNarrowPixel && width == shape.width) {
    const int64_t blocks = divided_up(table.size() * width, kEight);
    chunks = chunks_of(blocks, width, kMostOutputs / kEight, [&](int64_t b) {
      int64_t first = INT64_MAX;
      int64_t end = 0;
      const int64_t last = std::min((b + 1) * kEight - 1, table.size() * width - 1) / width;
      for (int64_t o = b * kEight / width; o <= last; ++o) {
        if (table.count_of(o) == 0) continue;
        first = std::min(first, table.first_of(o));
        end = std::max(end, table.first_of(o) + table.count_of(o));
      }
      return std::pair(std::min(first, end), end);
    });
    const auto fits = [&](const Chunk& chunk) { return chunk.pixels * width <= kSpan; };
    if (std::ranges::all_of(chunks, fits)) {
      description += width == 1 ? ", eight outputs at once" : ", eight elements of narrow pixels at once";
      return std::make_unique<RowPlan<T>>(RowTable(table, width), std::move(shape),
                                          OuterSums(std::move(outer), std::move(row)), std::move(chunks),
                                          divisor, bytes, std::move(description));
    }
  }
  chunks = chunks_of(table.size(), width, divided_up(kMostOutputs, width), [&](int64_t o) {
    return std::pair(table.first_of(o), table.first_of(o) + table.count_of(o));
  });
  return std::make_unique<PixelPlan<T>>(std::move(table), std::move(shape),
                                        OuterSums(std::move(outer), std::move(row)), std::move(chunks),
                                        divisor, bytes, description + ", pixels of " + std::to_string(width));
}

using MakePlan = std::unique_ptr<Plan> (*)(Shape shape, std::vector<Outer> outer, Row row, Table table,
                                           double divisor, int64_t bytes, std::string description);

MakePlan choose_plan(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return make_plan_of<float>;
    case DataType::kFloat16:
      return make_plan_of<Half>;
    case DataType::kInt8:
      return make_plan_of<int8_t>;
    case DataType::kUint8:
      return make_plan_of<uint8_t>;
    default:
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Plan> make_resample(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  const MakePlan make = choose_plan(out.type);
  if (make == nullptr || in.type != out.type) {
    reason = "no interpolation of " + std::string(name_of(in.type));
    return nullptr;
  }
  const size_t rank = out.sizes.size();
  require(in.sizes.size() == rank, "tensors of as many dimensions");
  Tables tables = read_tables(request.attributes, in.sizes, out.sizes);
  require(!tables.axes.empty() && tables.axes.size() <= kMostDimensions, "dimensions with tables");

  // Dimensions without a table, of which the one whose elements are nearest in the output is a pixel.
  std::vector<Loop> plain;
  for (size_t d = 0; d < rank; ++d) {
    if (std::ranges::count(tables.axes, d) != 0) continue;
    require(in.sizes[d] == out.sizes[d], "sizes of dimensions without tables");
    plain.push_back({out.sizes[d], in.strides[d], out.strides[d]});
  }
  plain = fold(std::move(plain));
  const size_t last = tables.axes.back();
  Loop pixel{1, 0, 0};
  if (!plain.empty() && std::abs(plain.back().out) < std::abs(out.strides[last])) {
    pixel = take_innermost(plain);
  }
  Shape shape{{}, {}, pixel.size, 0, std::min(pixel.size, kWidestPixel), out.strides[last], pixel.out};

  struct Numbered {
    Loop loop;
    size_t table;
  };
  const size_t none = tables.axes.size();
  std::vector<Numbered> loops;
  for (const Loop& loop : plain) loops.push_back({loop, none});
  for (size_t i = 0; i + 1 < tables.axes.size(); ++i) {
    const size_t axis = tables.axes[i];
    loops.push_back({{out.sizes[axis], 0, out.strides[axis]}, i});
  }
  std::ranges::stable_sort(loops, [](const Numbered& a, const Numbered& b) {
    return std::abs(a.loop.out) > std::abs(b.loop.out);
  });
  shape.outer_loops.resize(tables.axes.size() - 1);
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].table != none) shape.outer_loops[loops[i].table] = i;
    shape.loops.push_back(loops[i].loop);
  }
  shape.width_loop = shape.loops.size();
  shape.loops.push_back(blocks_of(pixel, shape.part));

  std::vector<Outer> outer;
  for (size_t i = 0; i + 1 < tables.axes.size(); ++i) {
    outer.push_back({std::move(tables.tables[i]), in.strides[tables.axes[i]]});
  }
  Table table = std::move(tables.tables.back());
  Row row{in.strides[last], pixel.in, {}};
  std::vector<int64_t> elements = elements_of(table);
  // Where the tables pass over elements, sums are taken of the others alone: of wide pixels if these are
  // some, else, as they are no longer contiguous then, if they are most.
  const auto used = static_cast<int64_t>(elements.size());
  if (pixel.size >= kNarrowPixel ? used * 10 <= in.sizes[last] * 9 : used * 4 <= in.sizes[last]) {
    compact(table, elements);
    row.pixels = std::move(elements);
  }
  int64_t in_elements = 1;
  int64_t out_elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    in_elements *= in.sizes[d];
    out_elements *= out.sizes[d];
  }
  const Attributes& attributes = request.attributes;
  return make(std::move(shape), std::move(outer), std::move(row), std::move(table),
              attributes.has("Divisor") ? attributes.real("Divisor") : 1,
              (in_elements + out_elements) * size_of(out.type),
              "weighted sums of " + std::string(name_of(out.type)));
}

ANYDML_ISA_END
