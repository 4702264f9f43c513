// TOP_K and TOP_K1: the largest or smallest elements along an axis, in order, and their indices.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/unaligned.h"
#include "top_k/items.h"
#include "top_k/order.h"
#include "top_k/selection.h"

ANYDML_ISA_BEGIN
namespace {

// The work of an item that is sorted, in bytes that are read meanwhile.
constexpr int64_t kItemWork = 128;
// Elements that a part of a row has at least, and at least as multiples of `k`, as all parts are chosen from
// once more.
constexpr int64_t kFewestOfPart = 16 << 10;
constexpr int64_t kFewestTimesK = 8;
// Neighbouring rows that are gone through together, where elements of one lie apart: what fills a line. So
// many bytes of items they have at most, as all are needed in turn.
constexpr int64_t kLineBytes = 64;
constexpr int64_t kMostItemBytes = 256 << 10;

// Where something begins in each tensor.
struct Place {
  int64_t in = 0;
  int64_t values = 0;
  int64_t indices = 0;

  Place& operator+=(const Place& other) {
    in += other.in;
    values += other.values;
    indices += other.indices;
    return *this;
  }
};

// A dimension, with its steps in bytes.
struct Dimension {
  int64_t size;
  Place step;

  Place at(int64_t i) const { return {i * step.in, i * step.values, i * step.indices}; }
};

struct Geometry {
  std::vector<Dimension> rows;  // all dimensions but the axis; neighbouring rows are of the last one
  Dimension axis;
  int64_t k;
  int64_t index_size;
};

inline Place place_of(const std::vector<Dimension>& rows, int64_t row) {
  Place place;
  for (size_t d = rows.size(); d-- > 0;) {
    const int64_t outer = d == 0 ? 0 : row / rows[d].size;
    place += rows[d].at(row - outer * rows[d].size);
    row = outer;
  }
  return place;
}

template <class T>
void copy_block(const std::byte* from, const Loop& rows, const Loop& axis, std::byte* to) {
  for (int64_t i = 0; i < axis.size; ++i) {
    for (int64_t row = 0; row < rows.size; ++row) {
      store(to + row * rows.out + i * axis.out, load<T>(from + i * axis.in + row * rows.in));
    }
  }
}

template <class Order, class Items>
class TopKPlan final : public Plan {
 public:
  using Key = typename Order::Key;
  using Item = typename Items::Item;
  using Select = Selection<Order, Items>;
  static constexpr int64_t kSize = sizeof(Key);
  static constexpr int64_t kBlockBytes = kBlock * kSize + kLineBytes;  // apart by less than a power of 2
  static constexpr int64_t kMostNeighbours = kLineBytes / kSize;

  TopKPlan(Geometry geometry, Order order, std::string description)
      : Plan(std::move(description)), geometry_(std::move(geometry)), order_(order) {
    const Dimension& axis = geometry_.axis;
    if (!geometry_.rows.empty() && axis.step.in != kSize && axis.size > 1) {
      const Dimension& last = geometry_.rows.back();
      const int64_t item_bytes =
          2 * static_cast<int64_t>(sizeof(Item)) * std::min(axis.size, Select::later_limit(geometry_.k));
      const int64_t most = std::clamp<int64_t>(kMostItemBytes / item_bytes, 1, kMostNeighbours);
      if (std::abs(last.step.in) < std::abs(axis.step.in)) neighbours_ = std::min(last.size, most);
    }
    for (const Dimension& each : geometry_.rows) rows_ *= each.size;
    const int64_t last = last_of_rows().size;
    groups_of_last_ = divided_up(last, neighbours_);
    groups_ = rows_ / last * groups_of_last_;
    work_ = rows_ * (axis.size * kSize + geometry_.k * kItemWork);
    const int threads = threads_for(work_);
    const int64_t wanted = divided_up(calls_for(work_, threads), rows_);
    const int64_t most = axis.size / std::max(kFewestOfPart, kFewestTimesK * geometry_.k);
    if (threads > 1 && rows_ < 2 * threads) parts_ = std::clamp<int64_t>(most, 1, wanted);
    if (parts_ > 1) neighbours_ = 1;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const values = static_cast<std::byte*>(outputs[0]);
    auto* const indices = static_cast<std::byte*>(outputs[1]);
    if (parts_ > 1) {
      run_parts(in, values, indices);
    } else {
      run_rows(in, values, indices);
    }
  }

 private:
  // Threads share rows.
  void run_rows(const std::byte* in, std::byte* values, std::byte* indices) const {
    const int threads = threads_for(work_);
    const int64_t calls = std::min(calls_for(work_, threads), groups_);
    const Dimension last = last_of_rows();
    const int64_t size = geometry_.axis.size;
    parallel_for(calls, threads, [&](int64_t call) {
      std::vector<Select> selections;
      selections.reserve(static_cast<size_t>(neighbours_));
      for (int64_t i = 0; i < neighbours_; ++i) selections.emplace_back(order_, geometry_.k, size);
      const int64_t end = share_begin(call + 1, calls, groups_);
      int64_t group = share_begin(call, calls, groups_);
      while (group < end && !is_cancelled()) {
        // Those of one run of the last dimension.
        const int64_t begin = group % groups_of_last_;
        const Place outer = place_of(geometry_.rows, group / groups_of_last_ * last.size);
        const int64_t stop = std::min(groups_of_last_, begin + end - group);
        for (int64_t i = begin; i < stop; ++i) {
          const int64_t row = i * neighbours_;
          Place place = last.at(row);
          place += outer;
          choose(selections.data(), std::min(neighbours_, last.size - row), place, in, values, indices);
        }
        group += stop - begin;
      }
    });
  }

  // Chooses from neighbouring rows from a place on.
  void choose(Select* selections, int64_t count, const Place& place, const std::byte* in, std::byte* values,
              std::byte* indices) const {
    std::array<const Item*, static_cast<size_t>(kMostNeighbours)> items;
    for (int64_t i = 0; i < count; ++i) selections[i].restart();
    show(in + place.in, selections, count, 0, geometry_.axis.size);
    for (int64_t i = 0; i < count; ++i) items[static_cast<size_t>(i)] = selections[i].ranked();
    write(items.data(), count, place, in, values, indices);
  }

  // Threads share parts of rows too, and then rows, of what was chosen in each part.
  void run_parts(const std::byte* in, std::byte* values, std::byte* indices) const {
    const int64_t k = geometry_.k;
    const int64_t size = geometry_.axis.size;
    const int threads = threads_for(work_);
    const auto all = static_cast<size_t>(rows_ * parts_);
    const auto chosen = std::make_unique_for_overwrite<Item[]>(all * static_cast<size_t>(k));
    std::vector<int64_t> counts(all);
    parallel_for(rows_ * parts_, threads, [&](int64_t number) {
      const int64_t first = share_begin(number % parts_, parts_, size);
      const int64_t last = share_begin(number % parts_ + 1, parts_, size);
      Select selection(order_, k, last - first);
      show(in + place_of(geometry_.rows, number / parts_).in, &selection, 1, first, last);
      const Item* const items = selection.chosen();
      std::copy_n(items, selection.size(), chosen.get() + number * k);
      counts[static_cast<size_t>(number)] = selection.size();
    });
    parallel_for(rows_, threads, [&](int64_t row) {
      Select selection(order_, k, parts_ * k);
      for (int64_t part = row * parts_; part < (row + 1) * parts_; ++part) {
        selection.add_items(chosen.get() + part * k, counts[static_cast<size_t>(part)]);
      }
      const Item* const items = selection.ranked();
      // Fewer where a cancellation left parts out.
      if (selection.size() == k) write(&items, 1, place_of(geometry_.rows, row), in, values, indices);
    });
  }

  // Shows neighbouring rows from one place of the axis to another, each to its selection.
  void show(const std::byte* in, Select* selections, int64_t count, int64_t first, int64_t last) const {
    const int64_t step = geometry_.axis.step.in;
    if (step == kSize) {
      for (int64_t i = 0; i < count; ++i) {
        const std::byte* const row = in + i * last_of_rows().step.in;
        selections[i].add(row + first * kSize, last - first, first);
      }
      return;
    }
    std::array<std::byte, static_cast<size_t>(kMostNeighbours * kBlockBytes)> block;
    const Loop rows{count, last_of_rows().step.in, kBlockBytes};
    for (; first < last; first += kBlock) {
      const int64_t some = std::min(last - first, kBlock);
      copy_block<Key>(in + first * step, rows, {some, step, kSize}, block.data());
      for (int64_t i = 0; i < count; ++i) {
        selections[i].add(block.data() + i * kBlockBytes, some, first);
      }
    }
  }

  void write(const Item* const* items, int64_t count, const Place& place, const std::byte* in,
             std::byte* values, std::byte* indices) const {
    if (geometry_.index_size == sizeof(uint32_t)) {
      write_as<uint32_t>(items, count, place, in, values, indices);
    } else {
      write_as<uint64_t>(items, count, place, in, values, indices);
    }
  }

  // Neighbouring rows in turn, as they may share lines.
  template <class Index>
  void write_as(const Item* const* items, int64_t count, const Place& place, const std::byte* in,
                std::byte* values, std::byte* indices) const {
    const Dimension axis = geometry_.axis;
    const Place next = last_of_rows().step;
    for (int64_t i = 0; i < geometry_.k; ++i) {
      Place at = axis.at(i);
      at += place;
      for (int64_t row = 0; row < count; ++row) {
        const int64_t index = Items::index(items[row][i]);
        const int64_t element = place.in + row * next.in + index * axis.step.in;
        store(values + at.values + row * next.values, load<Key>(in + element));
        store(indices + at.indices + row * next.indices, static_cast<Index>(index));
      }
    }
  }

  // One of one step where there is none.
  Dimension last_of_rows() const {
    return geometry_.rows.empty() ? Dimension{1, {0, 0, 0}} : geometry_.rows.back();
  }

  Geometry geometry_;
  Order order_;
  int64_t neighbours_ = 1;  // rows of a group
  int64_t rows_ = 1;
  int64_t groups_of_last_ = 1;  // along the last dimension
  int64_t groups_ = 1;
  int64_t parts_ = 1;  // of a row
  int64_t work_ = 0;
};

template <class Order>
std::unique_ptr<Plan> plan_of(Geometry geometry, Order order, std::string description) {
  using Key = typename Order::Key;
  if constexpr (sizeof(Key) <= sizeof(uint32_t)) {
    if (geometry.axis.size <= WordItems<Key>::kMostElements) {
      return std::make_unique<TopKPlan<Order, WordItems<Key>>>(std::move(geometry), order,
                                                               std::move(description));
    }
  }
  return std::make_unique<TopKPlan<Order, PairItems<Key>>>(std::move(geometry), order,
                                                           std::move(description));
}

template <class Key>
std::unique_ptr<Plan> plan_of_integers(Geometry geometry, bool is_signed, bool is_largest,
                                       std::string description) {
  const Key sign = is_signed ? Key{0} : std::numeric_limits<Key>::min();
  const auto mask = static_cast<Key>(is_largest ? sign : ~sign);
  return plan_of(std::move(geometry), IntegerOrder<Key>{mask}, std::move(description));
}

// Neighbouring dimensions that are one in every tensor become one.
void fold_rows(std::vector<Dimension>& rows) {
  size_t kept = 0;
  for (size_t d = 1; d < rows.size(); ++d) {
    const Place whole = rows[d].at(rows[d].size);
    const Place step = rows[kept].step;
    if (step.in == whole.in && step.values == whole.values && step.indices == whole.indices) {
      rows[kept] = {rows[kept].size * rows[d].size, rows[d].step};
    } else {
      rows[++kept] = rows[d];
    }
  }
  if (!rows.empty()) rows.resize(kept + 1);
}

Geometry geometry_of(const Request& request) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& values = tensor(request.outputs, 0);
  const Layout& indices = tensor(request.outputs, 1);
  const auto axis = static_cast<size_t>(request.attributes.integer("Axis"));
  const int64_t k = request.attributes.integer("K");
  require(axis < in.sizes.size() && values.sizes.size() == in.sizes.size() && indices.sizes == values.sizes,
          "the dimensions differ");
  require(values.type == in.type, "the types differ");
  require(indices.type == DataType::kUint32 || indices.type == DataType::kUint64, "no type of indices");
  require(k >= 1 && k <= in.sizes[axis] && values.sizes[axis] == k, "there are not so many elements");
  Geometry geometry{{}, {}, k, size_of(indices.type)};
  for (size_t d = 0; d < in.sizes.size(); ++d) {
    const Dimension dimension{in.sizes[d], {in.strides[d], values.strides[d], indices.strides[d]}};
    if (d == axis) {
      geometry.axis = dimension;
    } else {
      require(values.sizes[d] == in.sizes[d], "the sizes differ");
      if (dimension.size > 1) geometry.rows.push_back(dimension);
    }
  }
  // Neighbouring rows are next to each other in the input.
  std::ranges::stable_sort(geometry.rows, [](const Dimension& a, const Dimension& b) {
    return std::abs(a.step.in) > std::abs(b.step.in);
  });
  fold_rows(geometry.rows);
  return geometry;
}

std::unique_ptr<Plan> make(const Request& request, bool is_largest, std::string& reason) {
  const DataType type = tensor(request.inputs, 0).type;
  Geometry geometry = geometry_of(request);
  std::string description =
      "the " + std::string(is_largest ? "largest" : "smallest") + " of " + std::string(name_of(type));
  const auto integers = [&]<class Key>(bool is_signed) {
    return plan_of_integers<Key>(std::move(geometry), is_signed, is_largest, std::move(description));
  };
  const int16_t flip_half = is_largest ? 0 : -1;
  switch (type) {
    case DataType::kFloat32:
      return plan_of(std::move(geometry), SingleOrder{is_largest ? 0 : -1}, std::move(description));
    case DataType::kFloat16:
      return plan_of(std::move(geometry), HalfOrder{flip_half}, std::move(description));
    case DataType::kInt8:
    case DataType::kUint8:
      return integers.template operator()<int8_t>(type == DataType::kInt8);
    case DataType::kInt16:
    case DataType::kUint16:
      return integers.template operator()<int16_t>(type == DataType::kInt16);
    case DataType::kInt32:
    case DataType::kUint32:
      return integers.template operator()<int32_t>(type == DataType::kInt32);
    case DataType::kInt64:
    case DataType::kUint64:
      return integers.template operator()<int64_t>(type == DataType::kInt64);
    default:
      reason = "no order of " + std::string(name_of(type));
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Plan> make_top_k(const Request& request, std::string& reason) {
  return make(request, true, reason);
}

std::unique_ptr<Plan> make_top_k1(const Request& request, std::string& reason) {
  return make(request, request.attributes.integer("AxisDirection") == 1, reason);
}

ANYDML_ISA_END
