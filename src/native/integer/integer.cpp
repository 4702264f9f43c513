// Products of matrices and convolutions of integers, from descs.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "integer/byte_convolution.h"
#include "integer/byte_product.h"
#include "integer/problem.h"
#include "integer/product.h"
#include "integer/window_product.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// A parameter that has its values along a dimension.
Parameter parameter(const Request& request, size_t input, size_t dimension) {
  if (input >= request.inputs.size() || !request.inputs[input].present) return {};
  const Layout& layout = request.inputs[input];
  require(dimension < layout.sizes.size(), "a scale or a zero point lacks a dimension");
  const int64_t step = layout.sizes[dimension] > 1 ? layout.strides[dimension] : 0;
  return {static_cast<int64_t>(input), step, layout.type};
}

void require_parameter(const Request& request, const Parameter& parameter, size_t dimension, int64_t count) {
  if (parameter.input < 0) return;
  const auto& sizes = request.inputs[static_cast<size_t>(parameter.input)].sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    require(sizes[d] == 1 || (d == dimension && sizes[d] == count),
            "a scale or a zero point has other sizes");
  }
}

bool is_byte(DataType type) { return size_of(type) == 1; }

std::unique_ptr<Plan> plan_of(Problem problem, const char* what, bool is_convolution, std::string& reason) {
  const bool of_bytes = is_byte(problem.a_type) && is_byte(problem.b_type);
  const std::string of = std::string(name_of(problem.a_type)) + " by " + std::string(name_of(problem.b_type));
  const bool is_known = reader_of<int64_t, true>(problem.a_type) && reader_of<int64_t, true>(problem.b_type);
  if (!is_known) {
    reason = "no products of " + of;
    return nullptr;
  }
  std::string description =
      std::string(what) + " of " + of + ", sums of " + (of_bytes ? "32" : "64") + " bits";
  if (of_bytes && is_convolution && WindowProductPlan::is_taken(problem)) {
    return std::make_unique<WindowProductPlan>(std::move(problem), description + ", tap by tap");
  }
#if defined(ANYDML_BYTE_TILES)
  if (of_bytes && is_convolution && ByteConvolutionPlan::is_taken(problem)) {
    description += has_amx() ? ", by tiles of bytes as they lie" : ", by dot products of bytes as they lie";
    return std::make_unique<ByteConvolutionPlan>(problem, std::move(description));
  }
  if (of_bytes && ByteProductPlan::is_taken(problem)) {
    description += has_amx() ? ", by tiles of bytes" : ", by dot products of bytes";
    return std::make_unique<ByteProductPlan>(std::move(problem), std::move(description));
  }
#endif
  if (of_bytes) return std::make_unique<ProductPlan<Bytes>>(std::move(problem), std::move(description));
  return std::make_unique<ProductPlan<Words>>(std::move(problem), std::move(description));
}

// Where an operator has its operands, scales and zero points, by the number of the input; -1 for none.
struct Inputs {
  int a, a_scale, a_zero, b, b_scale, b_zero, bias, out_scale, out_zero;
};

constexpr size_t place(int input) { return static_cast<size_t>(input); }

std::unique_ptr<Plan> multiplied(const Request& request, const Inputs& at, std::string& reason) {
  const Layout& a = tensor(request.inputs, place(at.a));
  const Layout& b = tensor(request.inputs, place(at.b));
  const Layout& out = tensor(request.outputs, 0);
  const size_t rank = out.sizes.size();
  require(rank >= 2 && a.sizes.size() == rank && b.sizes.size() == rank, "the dimensions differ");
  const size_t row = rank - 2;
  const size_t column = rank - 1;
  require(a.sizes[row] == out.sizes[row] && b.sizes[column] == out.sizes[column] &&
              a.sizes[column] == b.sizes[row],
          "the sizes of the matrices differ");
  Problem problem = {
      .a = place(at.a), .b = place(at.b), .a_type = a.type, .b_type = b.type, .out_type = out.type};
  problem.rows = out.sizes[row];
  problem.a_row = a.strides[row];
  problem.depth = {.channels = a.sizes[column],
                   .a_step = a.strides[column],
                   .b_step = b.strides[row],
                   .a_rows = 0,
                   .a_columns = 0,
                   .height = {},
                   .width = {}};
  problem.depth.width = {.size = out.sizes[column], .step = b.strides[column], .places = out.sizes[column]};
  problem.out_row = out.strides[row];
  problem.out_height = 0;
  problem.out_width = out.strides[column];
  const auto of = [&](int input, size_t dimension) {
    const Parameter found = parameter(request, place(input), dimension);
    require_parameter(request, found, dimension, out.sizes[dimension]);
    return found;
  };
  problem.a_scale = of(at.a_scale, row);
  problem.a_zero = of(at.a_zero, row);
  problem.b_scale = of(at.b_scale, column);
  problem.b_zero = of(at.b_zero, column);
  problem.out_scale = of(at.out_scale, row);
  problem.out_zero = of(at.out_zero, row);
  const Layout* const bias =
      at.bias >= 0 && request.inputs[place(at.bias)].present ? &request.inputs[place(at.bias)] : nullptr;
  if (bias != nullptr) {
    require(bias->sizes == out.sizes && bias->type == out.type, "the bias and the output differ");
    problem.column_bias = {at.bias, bias->strides[column], bias->type};
    problem.bias_row = bias->strides[row];
  }
  for (size_t d = 0; d < row; ++d) {
    require(a.sizes[d] == out.sizes[d] && b.sizes[d] == out.sizes[d], "the sizes of the batch differ");
    problem.outer.push_back({.size = out.sizes[d],
                             .a = a.strides[d],
                             .b = b.strides[d],
                             .bias = bias == nullptr ? 0 : bias->strides[d],
                             .out = out.strides[d],
                             .rows = 0});
  }
  return plan_of(std::move(problem), "product of matrices", false, reason);
}

Spatial spatial(const Request& request, const Layout& x, const Layout& w, const Layout& out,
                size_t dimension) {
  const size_t i = dimension - 2;
  const Spatial found = {.size = x.sizes[dimension],
                         .step = x.strides[dimension],
                         .taps = w.sizes[dimension],
                         .places = out.sizes[dimension],
                         .stride = request.attributes.integers("Strides")[i],
                         .dilation = request.attributes.integers("Dilations")[i],
                         .padding = request.attributes.integers("StartPadding")[i]};
  require(found.stride >= 1 && found.dilation >= 1, "strides and dilations are at least 1");
  return found;
}

// One dimension of places instead of two, for filters of one tap whose places follow each other everywhere.
void fold_places(Problem& problem) {
  Spatial& height = problem.depth.height;
  Spatial& width = problem.depth.width;
  const auto is_plain = [](const Spatial& each) {
    return each.taps == 1 && each.stride == 1 && each.padding == 0 && each.places == each.size;
  };
  const bool follow =
      height.step == width.size * width.step && problem.out_height == width.places * problem.out_width;
  if (!is_plain(height) || !is_plain(width) || !follow) return;
  width.size *= height.size;
  width.places = width.size;
  height = {};
}

// Rows are output channels, columns places: so what is one for each channel is one for each row.
std::unique_ptr<Plan> convolved(const Request& request, const Inputs& at, std::string& reason) {
  const Layout& w = tensor(request.inputs, place(at.a));
  const Layout& x = tensor(request.inputs, place(at.b));
  const Layout& out = tensor(request.outputs, 0);
  const size_t rank = out.sizes.size();
  require((rank == 3 || rank == 4) && x.sizes.size() == rank && w.sizes.size() == rank,
          "the dimensions differ");
  const int64_t groups = request.attributes.integer("GroupCount");
  require(groups >= 1 && w.sizes[0] % groups == 0 && w.sizes[1] * groups == x.sizes[1] &&
              out.sizes[1] == w.sizes[0] && out.sizes[0] == x.sizes[0],
          "the channels differ");
  Problem problem = {
      .a = place(at.a), .b = place(at.b), .a_type = w.type, .b_type = x.type, .out_type = out.type};
  problem.rows = w.sizes[0] / groups;
  problem.a_row = w.strides[0];
  problem.depth = {.channels = w.sizes[1],
                   .a_step = w.strides[1],
                   .b_step = x.strides[1],
                   .a_rows = rank == 4 ? w.strides[2] : 0,
                   .a_columns = w.strides[rank - 1],
                   .height = rank == 4 ? spatial(request, x, w, out, 2) : Spatial{},
                   .width = spatial(request, x, w, out, rank - 1)};
  problem.out_row = out.strides[1];
  problem.out_height = rank == 4 ? out.strides[2] : 0;
  problem.out_width = out.strides[rank - 1];
  fold_places(problem);
  const auto of = [&](int input, int64_t count) {
    const Parameter found = parameter(request, place(input), 1);
    require_parameter(request, found, 1, count);
    return found;
  };
  problem.a_scale = of(at.a_scale, w.sizes[0]);
  problem.a_zero = of(at.a_zero, w.sizes[0]);
  problem.b_scale = of(at.b_scale, 1);
  problem.b_zero = of(at.b_zero, 1);
  problem.out_scale = of(at.out_scale, 1);
  problem.out_zero = of(at.out_zero, 1);
  problem.row_bias = of(at.bias, w.sizes[0]);
  problem.outer = {
      {.size = x.sizes[0], .a = 0, .b = x.strides[0], .bias = 0, .out = out.strides[0], .rows = 0},
      {.size = groups,
       .a = problem.rows * w.strides[0],
       .b = w.sizes[1] * x.strides[1],
       .bias = 0,
       .out = problem.rows * out.strides[1],
       .rows = problem.rows}};
  return plan_of(std::move(problem), "convolution", true, reason);
}

}  // namespace

std::unique_ptr<Plan> make_matrix_multiply_integer(const Request& request, std::string& reason) {
  return multiplied(request, {0, -1, 1, 2, -1, 3, -1, -1, -1}, reason);
}

std::unique_ptr<Plan> make_quantized_linear_matrix_multiply(const Request& request, std::string& reason) {
  return multiplied(request, {0, 1, 2, 3, 4, 5, -1, 6, 7}, reason);
}

std::unique_ptr<Plan> make_matrix_multiply_integer_to_float(const Request& request, std::string& reason) {
  return multiplied(request, {0, 1, 2, 3, 4, 5, 6, -1, -1}, reason);
}

std::unique_ptr<Plan> make_convolution_integer(const Request& request, std::string& reason) {
  return convolved(request, {2, -1, 3, 0, -1, 1, -1, -1, -1}, reason);
}

std::unique_ptr<Plan> make_quantized_linear_convolution(const Request& request, std::string& reason) {
  return convolved(request, {3, 4, 5, 0, 1, 2, 6, 7, 8}, reason);
}

ANYDML_ISA_END
