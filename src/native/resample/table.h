// The tables of interpolation: along a dimension, each element of the output is a weighted sum of elements of
// the input that follow each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// A sparse matrix: row o has counts[o] weights from starts[o] on, of elements from first[o] on.
struct Table {
  std::vector<int64_t> first;  // never decreases
  std::vector<int64_t> counts;
  std::vector<int64_t> starts;
  std::vector<double> weights;

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  int64_t first_of(int64_t o) const { return first[static_cast<size_t>(o)]; }
  int64_t count_of(int64_t o) const { return counts[static_cast<size_t>(o)]; }
  const double* weights_of(int64_t o) const { return weights.data() + starts[static_cast<size_t>(o)]; }
};

// The numbers of the dimensions that have tables, in the order in which sums are taken, and these tables.
struct Tables {
  std::vector<size_t> axes;
  std::vector<Table> tables;
};

// From attributes in which all tables lie one behind the other; `sizes` are those of both tensors.
inline Tables read_tables(const Attributes& attributes, const std::vector<int64_t>& in_sizes,
                          const std::vector<int64_t>& out_sizes) {
  Tables read;
  const auto slice = [&](std::string_view name, int64_t begin, int64_t size) {
    const std::vector<int64_t>& all = attributes.integers(name);
    require(begin + size <= static_cast<int64_t>(all.size()), "the tables' sizes");
    return std::vector<int64_t>(all.begin() + begin, all.begin() + begin + size);
  };
  const std::vector<double>& weights = attributes.reals("Weights");
  const std::vector<int64_t>& ends = attributes.integers("WeightEnds");
  int64_t begin = 0;
  int64_t of_weights = 0;
  for (const int64_t axis : attributes.integers("Axes")) {
    const size_t number = read.axes.size();
    require(axis >= 0 && axis < static_cast<int64_t>(out_sizes.size()) &&
                (number == 0 || axis > static_cast<int64_t>(read.axes.back())),
            "the dimensions of tables");
    require(number < ends.size() && ends[number] >= of_weights &&
                ends[number] <= static_cast<int64_t>(weights.size()),
            "the numbers of weights");
    const int64_t size = out_sizes[static_cast<size_t>(axis)];
    Table table{slice("First", begin, size), slice("Counts", begin, size), slice("Starts", begin, size),
                std::vector<double>(weights.begin() + of_weights, weights.begin() + ends[number])};
    const int64_t count = ends[number] - of_weights;
    for (int64_t o = 0; o < size; ++o) {
      const int64_t taps = table.count_of(o);
      require(taps >= 0 && table.first_of(o) >= 0 &&
                  table.first_of(o) + taps <= in_sizes[static_cast<size_t>(axis)] &&
                  (o == 0 || table.first_of(o) >= table.first_of(o - 1)),
              "the elements of tables");
      const int64_t start = table.starts[static_cast<size_t>(o)];
      require(start >= 0 && start + taps <= count, "the weights of tables");
    }
    read.axes.push_back(static_cast<size_t>(axis));
    read.tables.push_back(std::move(table));
    begin += size;
    of_weights = ends[number];
  }
  return read;
}

// The elements that a table has weights for, in their order.
inline std::vector<int64_t> elements_of(const Table& table) {
  std::vector<int64_t> elements;
  int64_t next = 0;
  for (int64_t o = 0; o < table.size(); ++o) {
    const int64_t end = table.first_of(o) + table.count_of(o);
    for (next = std::max(next, table.first_of(o)); next < end; ++next) elements.push_back(next);
  }
  return elements;
}

// The table of a tensor that has those elements alone.
inline void compact(Table& table, const std::vector<int64_t>& elements) {
  auto place = elements.begin();
  for (int64_t o = 0; o < table.size(); ++o) {
    int64_t& first = table.first[static_cast<size_t>(o)];
    place = std::lower_bound(place, elements.end(), first);
    first = place - elements.begin();
  }
}

}  // namespace
ANYDML_ISA_END
