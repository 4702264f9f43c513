// What is multiplied, and how sums become outputs: of products of matrices and of convolutions alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "integer/pack.h"
#include "integer/tuning.h"
#include "platform/isa.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// A scale, a zero point or a bias: one for all, with a step of 0, or one for each row or column. Absent
// where there is no such input.
struct Parameter {
  int64_t input = -1;
  int64_t step = 0;  // in bytes
  DataType type = DataType::kUnknown;

  const std::byte* at(const void* const* inputs, int64_t index) const {
    if (input < 0 || inputs[input] == nullptr) return nullptr;
    return static_cast<const std::byte*>(inputs[input]) + index * step;
  }
  int64_t integer(const void* const* inputs, int64_t index) const {
    const std::byte* const from = at(inputs, index);
    if (from == nullptr) return 0;
    switch (type) {
      case DataType::kInt8:
        return load<int8_t>(from);
      case DataType::kUint8:
        return load<uint8_t>(from);
      case DataType::kInt16:
        return load<int16_t>(from);
      case DataType::kUint16:
        return load<uint16_t>(from);
      case DataType::kInt32:
        return load<int32_t>(from);
      default:
        return load<uint32_t>(from);
    }
  }
  double real(const void* const* inputs, int64_t index) const {
    const std::byte* const from = at(inputs, index);
    if (from == nullptr) return 1;
    return type == DataType::kFloat16 ? static_cast<float>(load<Half>(from)) : load<float>(from);
  }
};

// A dimension along which products do not depend on each other: a batch, or groups of channels.
struct Outer {
  int64_t size;
  int64_t a, b, bias, out;  // steps in bytes
  int64_t rows;             // how many rows of parameters it goes on by
};

// out = A x B: each sum, of a row of A and a column of B, becomes an output by the type of that.
struct Problem {
  size_t a = 0, b = 0;  // the inputs
  DataType a_type = DataType::kUnknown, b_type = DataType::kUnknown;
  std::vector<Outer> outer = {};
  int64_t rows = 1;
  int64_t a_row = 0;  // step in bytes
  Depth depth = {};   // its places are the columns
  Parameter a_zero = {}, b_zero = {}, out_zero = {};
  Parameter a_scale = {}, b_scale = {}, out_scale = {};
  Parameter row_bias = {};     // integers, added to sums
  Parameter column_bias = {};  // real numbers, added to outputs; it lies along the columns
  int64_t bias_row = 0;        // from row to row
  DataType out_type = DataType::kUnknown;
  int64_t out_row = 0, out_height = 0, out_width = 0;

  int64_t columns() const { return depth.height.places * depth.width.places; }
  // Of all sums, as a floating-point number: tensors that are broadcast may have any size.
  double products() const {
    double all = static_cast<double>(rows) * static_cast<double>(columns());
    for (const Outer& each : outer) all *= static_cast<double>(each.size);
    return all * static_cast<double>(depth.count());
  }
  // What takes as long, in bytes that could be moved meanwhile: what is read once and written, products, and
  // what outputs of other types than the sums' take to be rounded.
  double work(double products_per_byte) const {
    const auto row = static_cast<double>(rows);
    const double outputs = row * static_cast<double>(columns());
    const double elements = static_cast<double>(depth.channels) * static_cast<double>(depth.height.size) *
                            static_cast<double>(depth.width.size);
    const bool are_sums = out_type == DataType::kInt32;
    double all = row * static_cast<double>(depth.count()) * static_cast<double>(size_of(a_type)) +
                 elements * static_cast<double>(size_of(b_type)) +
                 outputs * static_cast<double>(size_of(out_type) + (are_sums ? 0 : kBytesPerRounding));
    for (const Outer& each : outer) all *= static_cast<double>(each.size);
    return products() / products_per_byte + all;
  }
};

}  // namespace
ANYDML_ISA_END
