// Cases of what moves elements.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "case.h"

namespace {

// A dimension of an output as one segment of the input: its size, the output's step, and the first element
// and the step of the input, all in elements.
struct Dimension {
  int64_t size;
  int64_t out_step;
  int64_t start;
  int64_t step;
};

Case move(DataType type, std::vector<int64_t> input, std::vector<int64_t> output,
          const std::vector<Dimension>& dimensions) {
  const int64_t item = anydml::size_of(type);
  std::vector<int64_t> words = {0, 0, static_cast<int64_t>(dimensions.size())};
  for (const Dimension& each : dimensions) {
    const std::array<int64_t, 9> dimension = {
        each.out_step * item, 1, 1, 0, 1, each.size, 0, each.start * item, each.step * item};
    words.insert(words.end(), dimension.begin(), dimension.end());
  }
  return {"MOVEMENT",
          {{packed(type, std::move(input))},
           {packed(type, std::move(output))},
           attributes({{"Views", std::move(words)}})}};
}

Case transpose(DataType type, int64_t rows, int64_t columns) {
  return move(type, {rows, columns}, {columns, rows}, {{columns, rows, 0, 1}, {rows, 1, 0, columns}});
}

// A border of a constant, 2 elements wide, around images.
Case pad(DataType type, int64_t images, int64_t height, int64_t width) {
  const int64_t item = anydml::size_of(type);
  std::vector<int64_t> words = {
      0, 0, 3, (height + 4) * (width + 4) * item, 1, 1, 0, 1, images, 0, 0, height * width * item};
  for (const auto& [size, step, out_step] :
       {std::array{height, width, width + 4}, std::array{width, int64_t{1}, int64_t{1}}}) {
    const std::array<int64_t, 17> dimension = {out_step * item, 1, 1, 0, 3, 2, 1, 0, 0, size, 0, 0,
                                               step * item,     2, 1, 0, 0};
    words.insert(words.end(), dimension.begin(), dimension.end());
  }
  return {"MOVEMENT",
          {{packed(type, {images, height, width})},
           {packed(type, {images, height + 4, width + 4})},
           attributes({{"Views", std::move(words)}, {"Constant", {7}}})}};
}

Case cast(DataType from, DataType to, std::vector<int64_t> sizes) {
  return {"CAST", {{packed(from, sizes)}, {packed(to, sizes)}, attributes({})}};
}

// Rows of a table, by indices of which most are not in it: those are taken for 0.
Case gather(DataType type, DataType indices, int64_t rows, int64_t row, int64_t count) {
  const int64_t item = anydml::size_of(type);
  return {"GATHER",
          {{packed(type, {rows, row}), packed(indices, {count})},
           {packed(type, {count, row})},
           attributes({{"Before", {}},
                       {"Indices", {count, anydml::size_of(indices), row * item}},
                       {"After", {row, item, item}},
                       {"Axis", {rows, row * item}}})}};
}

// Rows of a table, most of them reversed whole, as they are not as long as their lengths say.
Case reverse(DataType type, int64_t rows, int64_t row) {
  return {"REVERSE_SUBSEQUENCES",
          {{packed(type, {rows, row}), packed(DataType::kUint32, {rows, 1})},
           {packed(type, {rows, row})},
           attributes({{"Axis", {1}}})}};
}

// Elements of a table's columns, by indices of which most are not in it; and likewise set in a copy of it.
Case gather_or_scatter(bool sets, DataType type, int64_t rows, int64_t columns, int64_t count) {
  const int64_t item = anydml::size_of(type);
  const int64_t index = anydml::size_of(DataType::kInt32);
  std::vector<int64_t> words = {0, 0, 2};
  for (const auto& [size, step] : {std::array{rows, columns}, std::array{columns, int64_t{1}}}) {
    words.insert(words.end(), {step * item, 1, 1, 0, 1, size, 0, 0, step * item});
  }
  const Layout table = packed(type, {rows, columns});
  const Layout elements = packed(type, {count, columns});
  std::vector<Layout> inputs = {table, packed(DataType::kInt32, {count, columns})};
  if (sets) inputs.push_back(elements);
  return {sets ? "SCATTER_ND" : "GATHER_ND",
          {inputs,
           {sets ? table : elements},
           attributes({{"Views", std::move(words)},
                       {"Points", {count, columns * index, 0, columns * item, columns, index, item, item}},
                       {"Free", {0, 1}},
                       {"Axes", {rows, columns * item}},
                       {"CoordinateStep", {0}},
                       {"Slice", {}}})}};
}

Case sequence(DataType type, int64_t size, int64_t start, int64_t delta) {
  return {"FILL_VALUE_SEQUENCE",
          {{}, {packed(type, {size})}, attributes({{"Start", {start}}, {"Delta", {delta}}})}};
}

Case random_generator(int64_t size) {
  return {"RANDOM_GENERATOR",
          {{packed(DataType::kUint32, {6})},
           {packed(DataType::kUint32, {size}), packed(DataType::kUint32, {6})},
           {}}};
}

// Of bytes and words at random, of which few are 0.
Case nonzero(DataType type, std::vector<int64_t> sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  const auto columns = static_cast<int64_t>(sizes.size());
  return {"NONZERO_COORDINATES",
          {{packed(type, std::move(sizes))},
           {packed(DataType::kUint32, {1}), packed(DataType::kUint32, {elements, columns})},
           {}}};
}

Case top_k(DataType type, std::vector<int64_t> sizes, int64_t axis, int64_t k, int64_t decreasing) {
  std::vector<int64_t> chosen = sizes;
  chosen[static_cast<size_t>(axis)] = k;
  return {"TOP_K1",
          {{packed(type, std::move(sizes))},
           {packed(type, chosen), packed(DataType::kUint32, chosen)},
           attributes({{"Axis", {axis}}, {"K", {k}}, {"AxisDirection", {decreasing}}})}};
}

Case band(DataType type, int64_t height, int64_t width, int64_t begin, int64_t end) {
  return {"DIAGONAL_MATRIX",
          {{packed(type, {height, width})},
           {packed(type, {height, width})},
           attributes({{"Begin", {begin}}, {"End", {end}}, {"Value", {7}}})}};
}

// Of windows of `size` in both dimensions, padded so that there is a block for each element; or into them.
Case fold(DataType type, int64_t channels, int64_t height, int64_t width, int64_t size,
          bool unfolds = false) {
  const std::vector<int64_t> ones{1, 1};
  const Layout blocks = packed(type, {1, channels * size * size, height * width});
  const Layout image = packed(type, {1, channels, height, width});
  return {unfolds ? "UNFOLD" : "FOLD",
          {{unfolds ? image : blocks},
           {unfolds ? blocks : image},
           attributes({{"WindowSizes", {size, size}},
                       {"Strides", ones},
                       {"Dilations", ones},
                       {"StartPadding", {size / 2, size / 2}},
                       {"EndPadding", {(size - 1) / 2, (size - 1) / 2}}})}};
}

}  // namespace
