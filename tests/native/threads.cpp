// A stress test of the kernels' threads, and digests of their outputs: runs every kernel on several threads,
// each plan from two callers at once, on every instruction set that the machine has. ThreadSanitizer watches
// the runs, whose outputs have to have the same bits; the digests are compared with another processor's.
//
// For the sanitizer it is built without OpenMP, whose runtime that does not know, so that OMP_NUM_THREADS
// alone sets the number of threads.
#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "cases/case.h"
#include "cases/movement.h"
#include "cases/pointwise.h"
#include "cases/run.h"
#include "cases/windows.h"
#include "core/layout.h"
#include "core/registry.h"
#include "simd/half.h"

namespace {

Case product(DataType type, int64_t rows, int64_t depth, int64_t columns, bool is_transposed) {
  std::vector<anydml::NamedAttribute> named = {{"TransA", std::vector<int64_t>{is_transposed}},
                                               {"TransB", std::vector<int64_t>{is_transposed}},
                                               {"Alpha", std::vector<double>{0.75}},
                                               {"Beta", std::vector<double>{-2}}};
  const auto matrix = [&](int64_t height, int64_t width) {
    if (is_transposed) std::swap(height, width);
    return packed(type, {2, height, width});
  };
  return {"GEMM",
          {{matrix(rows, depth), matrix(depth, columns), packed(type, {2, rows, columns})},
           {packed(type, {2, rows, columns})},
           anydml::Attributes(std::move(named))}};
}

// Regions of the first image, and of every fifth none; their corners are near 1, and so about 2000 times as
// much, which an image of that size has in its last 60 elements. Its channels are one.
Case regions(const char* name, DataType type, int64_t count, int64_t channels, int64_t pooled,
             const std::vector<std::pair<std::string, int64_t>>& members) {
  constexpr int64_t kSize = 2030;
  const int64_t item = anydml::size_of(type);
  const Layout image{type, {1, channels, kSize, kSize}, {kSize * kSize * item, 0, kSize * item, item}, true};
  const Layout out = packed(type, {count, channels, pooled, pooled});
  if (name == std::string("ROI_POOLING")) {
    return {name,
            {{image, packed(type, {1, 1, count, 5})},
             {out},
             std::vector<anydml::NamedAttribute>{{"SpatialScale", std::vector<double>{2000}},
                                                 {"PooledSize", std::vector<int64_t>{pooled, pooled}}}}};
  }
  std::vector<anydml::NamedAttribute> attributes;
  for (const auto& [member, value] : members) attributes.emplace_back(member, std::vector<int64_t>{value});
  for (const auto& [member, value] :
       {std::pair{"SpatialScaleX", 2000.0}, {"SpatialScaleY", 2000.0}, {"OutOfBoundsInputValue", 0.5}}) {
    attributes.emplace_back(member, std::vector<double>{value});
  }
  const Layout corners = packed(type, {count, 4});
  const Layout images = packed(DataType::kUint32, {count});
  if (name == std::string("ROI_ALIGN")) return {name, {{image, corners, images}, {out}, attributes}};
  for (const auto& [member, value] : {std::pair{"InputPixelOffset", 0.5}, {"OutputPixelOffset", -0.5}}) {
    attributes.emplace_back(member, std::vector<double>{value});
  }
  attributes.emplace_back("AlignRegionsToCorners", std::vector<int64_t>{0});
  const Layout whole = packed(type, {1, channels, kSize, kSize});
  return {name, {{image, out, corners, images}, {whole, corners}, attributes}};
}

// Of two query heads for each of keys and values, all of them packed.
Case attention(DataType type, int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t size) {
  const int64_t item = anydml::size_of(type);
  const Layout query = packed(type, {batch, queries, 2 * heads * size});
  const Layout key = packed(type, {batch, keys, heads * size});
  const auto place = [&](int64_t tensor, const Layout& layout) -> std::vector<int64_t> {
    return {tensor, 0, layout.strides[0], size * item, layout.strides[1], item};
  };
  return {"ATTENTION",
          {{query, key, key},
           {query},
           attributes({{"Sizes", {batch, queries, keys, 0, 2 * heads, heads, size, size}},
                       {"PresentLengths", {0, 0}},
                       {"Scale", {std::bit_cast<int64_t>(0.125)}},
                       {"MaskFilterValue", {0}},
                       {"Query", place(0, query)},
                       {"Key", place(1, key)},
                       {"Value", place(2, key)},
                       {"Output", place(0, query)}})}};
}

// All tensors that there may be, and activations of what is scaled to where they are not flat.
Case recurrent(const char* name, DataType type, int64_t steps, int64_t batch, int64_t input, int64_t hidden,
               int64_t directions, int64_t linear) {
  const bool is_lstm = name == std::string("LSTM");
  const int64_t gates = is_lstm ? 4 : name == std::string("GRU") ? 3 : 1;
  const Layout state = packed(type, {1, directions, batch, hidden});
  Request request{
      {packed(type, {1, steps, batch, input}), packed(type, {1, directions, gates * hidden, input}),
       packed(type, {1, directions, gates * hidden, hidden}),
       packed(type, {1, 1, directions, 2 * gates * hidden}), state},
      {packed(type, {steps, directions, batch, hidden}), state},
      {}};
  if (is_lstm) request.inputs.push_back(state);
  request.inputs.push_back(packed(DataType::kUint32, {1, 1, 1, batch}));
  if (is_lstm) request.inputs.push_back(packed(type, {1, 1, directions, 3 * hidden}));
  if (is_lstm) request.outputs.push_back(state);
  std::vector<std::pair<std::string, std::vector<int64_t>>> members{
      {"Backward", {directions == 1}},
      {"ClipThreshold", {std::bit_cast<int64_t>(400.0)}},
      {"UseClipThreshold", {is_lstm}},
      {"CoupleInputForget", {0}},
      {"LinearBeforeReset", {linear}}};
  const auto single = static_cast<int64_t>(DataType::kFloat32);
  const double slope = 2.0 / static_cast<double>(input + hidden);
  const int64_t activations = directions * (gates == 1 ? 1 : gates - 1);
  for (int64_t i = 0; i < activations; ++i) {
    const auto function = static_cast<int64_t>(i % 2 == 0 ? Opcode::SIGMOID : Opcode::TANH);
    members.emplace_back("Activation" + std::to_string(i),
                         std::vector<int64_t>{static_cast<int64_t>(Opcode::LINEAR), single, 0, 0, 0,
                                              std::bit_cast<int64_t>(slope), std::bit_cast<int64_t>(-1.0), 0,
                                              function, single, 1, 1, 1, 0, 0, 0});
  }
  request.attributes = attributes(members);
  return {name, std::move(request)};
}

// Along the axes, of `taps` elements each from every output's place on, by weights of which no sum is exact;
// the nearest ones where `taps` is 0.
Case resample(DataType type, std::vector<int64_t> input, std::vector<int64_t> output,
              const std::vector<int64_t>& axes, int64_t taps) {
  std::vector<int64_t> first, counts, starts, ends;
  std::vector<double> weights;
  for (const int64_t axis : axes) {
    const int64_t size = input[static_cast<size_t>(axis)];
    const int64_t count = output[static_cast<size_t>(axis)];
    const auto begin = static_cast<int64_t>(weights.size());
    for (int64_t o = 0; o < count; ++o) {
      first.push_back(o * size / count);
      counts.push_back(std::min(taps, size - first.back()));
      starts.push_back(static_cast<int64_t>(weights.size()) - begin);
      for (int64_t t = 0; t < counts.back(); ++t) {
        weights.push_back(1.0 / static_cast<double>(counts.back() + (o + t) % 3));
      }
    }
    ends.push_back(static_cast<int64_t>(weights.size()));
  }
  Request request{{packed(type, std::move(input))}, {packed(type, std::move(output))}, {}};
  if (taps == 0) {
    request.attributes = attributes({{"Axes", axes}, {"First", first}});
    return {"RESAMPLE_NEAREST", std::move(request)};
  }
  request.attributes =
      std::vector<anydml::NamedAttribute>{{"Axes", axes},     {"First", first},     {"Counts", counts},
                                          {"Starts", starts}, {"Weights", weights}, {"WeightEnds", ends}};
  return {"RESAMPLE", std::move(request)};
}

Case value_scale(DataType type, int64_t height, int64_t width) {
  const Layout layout = packed(type, {2, 3, height, width});
  return {"VALUE_SCALE_2D",
          {{layout},
           {layout},
           std::vector<anydml::NamedAttribute>{{"Scale", std::vector<double>{1.25}},
                                               {"Bias", std::vector<double>{0.1, -3, 1000}}}}};
}

anydml::Attributes with_epsilon(const std::vector<std::pair<std::string, std::vector<int64_t>>>& named) {
  std::vector<anydml::NamedAttribute> all(named.begin(), named.end());
  for (const char* name : {"Alpha", "Beta", "Bias", "LearningRate", "Beta1", "Beta2", "Epsilon"}) {
    all.emplace_back(name, std::vector<double>{0.75});
  }
  return all;
}

// Normalisations of groups along axes, and their gradients.
void add_normalizations(std::vector<Case>& all, DataType type, const std::vector<int64_t>& sizes,
                        const std::vector<int64_t>& axes) {
  std::vector<int64_t> kept = sizes;
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  const Layout x = packed(type, sizes);
  const Layout each = packed(type, kept);
  for (const char* name : {"ACTIVATION_SOFTMAX1", "ACTIVATION_LOG_SOFTMAX1", "ACTIVATION_HARDMAX1"}) {
    all.push_back({name, {{x}, {x}, attributes({{"Axes", axes}})}});
  }
  all.push_back(
      {"MEAN_VARIANCE_NORMALIZATION2",
       {{x, each, each}, {x}, with_epsilon({{"Axes", axes}, {"UseMean", {1}}, {"UseVariance", {1}}})}});
  all.push_back({"BATCH_NORMALIZATION_TRAINING", {{x, each, each, x}, {x, each, each}, with_epsilon({})}});
  all.push_back({"BATCH_NORMALIZATION_TRAINING", {{x, each, each}, {x, each, each}, with_epsilon({})}});
  all.push_back(
      {"BATCH_NORMALIZATION_TRAINING_GRAD", {{x, x, each, each, each}, {x, each, each}, with_epsilon({})}});
}

void add_of_images(std::vector<Case>& all, DataType type, const std::vector<int64_t>& sizes) {
  const Layout x = packed(type, sizes);
  for (const int64_t across : {0, 1}) {
    const anydml::Attributes around = with_epsilon({{"CrossChannel", {across}}, {"LocalSize", {5}}});
    all.push_back({"LOCAL_RESPONSE_NORMALIZATION", {{x}, {x}, around}});
    all.push_back({"LOCAL_RESPONSE_NORMALIZATION_GRAD", {{x, x}, {x}, around}});
  }
  for (const int64_t p : {1, 2})
    all.push_back({"LP_NORMALIZATION", {{x}, {x}, with_epsilon({{"Axis", {1}}, {"P", {p}}})}});
  const Layout channel = packed(type, {1, sizes[1], 1, 1});
  all.push_back({"BATCH_NORMALIZATION", {{x, channel, channel, channel, channel}, {x}, with_epsilon({})}});
  const Layout step = packed(DataType::kUint32, {1, 1, 1, 1});
  all.push_back({"ADAM_OPTIMIZER", {{x, x, x, x, step}, {x, x, x}, with_epsilon({})}});
}

// One product of matrices with one scale and zero point for all, as integers, quantised or as floats.
Case integer_product(const char* name, DataType left, DataType right, DataType output, int64_t rows,
                     int64_t products, int64_t columns, int64_t batch = 1) {
  const Layout a = packed(left, {batch, rows, products});
  const Layout b = packed(right, {batch, products, columns});
  const Layout out = packed(output, {batch, rows, columns});
  const Layout scale = packed(DataType::kFloat32, {1, 1, 1});
  const Layout a_zero = packed(left, {1, 1, 1});
  const Layout b_zero = packed(right, {1, 1, 1});
  if (output == DataType::kInt32) return {name, {{a, a_zero, b, b_zero}, {out}, attributes({})}};
  const bool is_real = output == DataType::kFloat32;
  std::vector<Layout> inputs = {a, scale, a_zero, b, scale, b_zero};
  inputs.push_back(is_real ? out : scale);
  if (!is_real) inputs.push_back(packed(output, {1, 1, 1}));
  return {name, {std::move(inputs), {out}, attributes({})}};
}

// Of windows of 3 by 3, padded so that there is a place for each element.
Case integer_convolution(bool is_quantized, int64_t channels, int64_t outputs, int64_t groups, int64_t size) {
  const std::vector<int64_t> ones{1, 1};
  const DataType byte = DataType::kUint8;
  const Layout x = packed(byte, {2, channels, size, size});
  const Layout w = packed(DataType::kInt8, {outputs, channels / groups, 3, 3});
  const Layout scale = packed(DataType::kFloat32, {1, 1, 1, 1});
  const Layout zero = packed(byte, {1, 1, 1, 1});
  const Layout filter_zero = packed(DataType::kInt8, {1, outputs, 1, 1});
  std::vector<Layout> inputs = {x, zero, w, filter_zero};
  if (is_quantized) {
    inputs = {x,
              scale,
              zero,
              w,
              packed(DataType::kFloat32, {1, outputs, 1, 1}),
              filter_zero,
              packed(DataType::kInt32, {1, outputs, 1, 1}),
              scale,
              zero};
  }
  const Layout out = packed(is_quantized ? byte : DataType::kInt32, {2, outputs, size, size});
  return {is_quantized ? "QUANTIZED_LINEAR_CONVOLUTION" : "CONVOLUTION_INTEGER",
          {std::move(inputs),
           {out},
           attributes({{"Strides", ones},
                       {"Dilations", ones},
                       {"StartPadding", ones},
                       {"EndPadding", ones},
                       {"GroupCount", {groups}}})}};
}

// Of windows of 3 along each of `spatial` dimensions, padded by 1; two places apart, or transposed.
Case convolution(DataType type, int64_t channels, int64_t results, int64_t groups, int64_t spatial,
                 int64_t size, bool is_forward, bool lies_last = false) {
  const auto count = static_cast<size_t>(spatial);
  const std::vector<int64_t> ones(count, 1);
  std::vector<int64_t> x{2, channels}, w{is_forward ? results : channels}, y{2, results}, bias{1, results};
  w.push_back((is_forward ? channels : results) / groups);
  for (size_t d = 0; d < count; ++d) {
    x.push_back(size);
    w.push_back(3);
    y.push_back(is_forward ? (size + 1) / 2 : 2 * size - 1);
    bias.push_back(1);
  }
  Layout in = packed(type, std::move(x));
  Layout out = packed(type, std::move(y));
  for (Layout* each : {&in, &out}) {
    if (!lies_last) continue;
    int64_t step = anydml::size_of(type);
    each->strides[1] = step;
    step *= each->sizes[1];
    for (size_t d = each->sizes.size() - 1; d > 1; --d) {
      each->strides[d] = step;
      step *= each->sizes[d];
    }
  }
  return {"CONVOLUTION",
          {{std::move(in), packed(type, std::move(w)), packed(type, std::move(bias))},
           {std::move(out)},
           attributes({{"Mode", {1}},
                       {"Direction", {is_forward ? 0 : 1}},
                       {"Strides", std::vector<int64_t>(count, 2)},
                       {"Dilations", ones},
                       {"StartPadding", ones},
                       {"EndPadding", ones},
                       {"OutputPadding", std::vector<int64_t>(count, 0)},
                       {"GroupCount", {groups}}})}};
}

Case dynamic_quantize(DataType type, DataType output, std::vector<int64_t> sizes) {
  const std::vector<int64_t> ones(sizes.size(), 1);
  return {"DYNAMIC_QUANTIZE_LINEAR",
          {{packed(type, sizes)},
           {packed(output, sizes), packed(DataType::kFloat32, ones), packed(output, ones)},
           attributes({})}};
}

// Of a matrix, with a scale and a zero point for each block of 7 rows and of 11 columns; 4 bits as bytes.
Case quantized(bool from_reals, DataType real, DataType code, int64_t rows, int64_t columns) {
  const std::vector<int64_t> blocks = {rows / 7, columns / 11};
  const auto of_codes = [&](const std::vector<int64_t>& sizes) {
    const bool is_packed = anydml::size_of(code) == 0;
    return is_packed ? packed(DataType::kUint8, {(sizes[0] * sizes[1] + 1) / 2}) : packed(code, sizes);
  };
  Layout ends[] = {packed(real, {rows, columns}), of_codes({rows, columns})};
  if (!from_reals) std::swap(ends[0], ends[1]);
  return {from_reals ? "QUANTIZE" : "DEQUANTIZE",
          {{ends[0], packed(real, blocks), of_codes(blocks)},
           {ends[1]},
           attributes({{"QuantizedDataType", {static_cast<int64_t>(code)}}, {"ZeroPointSizes", blocks}})}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* name : {"CUMULATIVE_SUMMATION", "CUMULATIVE_PRODUCT"}) {
    for (const DataType type :
         {DataType::kFloat32, DataType::kFloat16, DataType::kInt32, DataType::kUint64}) {
      all.push_back(scan(name, type, {1, 900'000}, 1, 0, 0));  // a row that threads share
      all.push_back(scan(name, type, {500, 700}, 1, 1, 1));
      all.push_back(scan(name, type, {20'000, 9}, 1, 0, 0));
      all.push_back(scan(name, type, {400, 901}, 0, 0, 1));
      all.push_back(scan(name, type, {30, 300, 31}, 1, 1, 0));
      all.push_back(scan(name, type, {30, 1021, 3}, 1, 0, 0));
      all.push_back(scan(name, type, {90'001, 5}, 0, 1, 1));
      all.push_back(scan(name, type, {109'226, 3}, 0, 0, 0));
      all.push_back(scan(name, type, {500, 9001}, 0, 1, 0));     // non-temporal stores
      all.push_back(scan(name, type, {500, 560, 31}, 1, 0, 1));  // the same, of packed columns
      all.push_back(carried_scan(name, type, {1, 900'000}, 1, 0));
      all.push_back(carried_scan(name, type, {700, 501}, 1, 1));
      all.push_back(carried_scan(name, type, {90'001, 5}, 0, 1));
      all.push_back(carried_scan(name, type, {3, 400, 901}, 1, 0));
    }
  }
  all.push_back(join(DataType::kFloat32, {{300, 500}, {300, 300}}, {300, 800}, 1));
  all.push_back(join(DataType::kUint8, {{200'000, 1}, {200'000, 2}, {200'000, 1}}, {200'000, 4}, 1));
  all.push_back(join(DataType::kFloat16, {{50'000, 3}, {50'000, 5}}, {50'000, 8}, 1));
  all.push_back(join(DataType::kUint64, {{500, 100}, {700, 100}}, {1200, 100}, 0));
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const std::pair<std::string, std::vector<int64_t>> counts{"IncludePadding", {1}};
    for (const char* name : {"AVERAGE_POOLING1", "LP_POOLING1", "MAX_POOLING2", "AVERAGE_POOLING_GRAD"}) {
      const std::pair<std::string, std::vector<int64_t>> p{"P", {3}};
      const auto& more = std::string_view(name) == "LP_POOLING1" ? p : counts;
      all.push_back(pool_floats(name, type, {2, 8, 120, 121}, {2, 8, 60, 61}, {3, 2, 1}, {more}));
      all.push_back(pool_floats(name, type, {1, 3, 9, 50, 50}, {1, 3, 9, 50, 50}, {3, 1, 1}, {more}));
      all.push_back(pool_floats(name, type, {8, 64, 30, 30}, {8, 64, 1, 1}, {30}, {more}));
      all.push_back(pool_floats(name, type, {8, 64, 13, 14}, {8, 64, 7, 7}, {3, 2, 1}, {more}));
      all.push_back(
          with_channels_last(pool_floats(name, type, {3, 77, 61, 60}, {3, 77, 31, 30}, {3, 2, 1}, {more})));
    }
    all.push_back(
        pool_floats("LP_POOLING1", type, {1, 2, 90, 900}, {1, 2, 78, 888}, {3, 1, 0, 6}, {{"P", {2}}}));
    all.push_back(pool_floats("MAX_POOLING_GRAD", type, {2, 8, 120, 120}, {2, 8, 60, 60}, {2, 2}));
    all.push_back(pool_floats("MAX_POOLING_GRAD", type, {1, 4, 150, 150}, {1, 4, 150, 150}, {5, 1, 4, 2}));
    all.push_back(with_channels_last(
        pool_floats("MAX_POOLING_GRAD", type, {3, 77, 61, 60}, {3, 77, 31, 30}, {3, 2, 1})));
    all.push_back(pool_floats("MAX_POOLING_GRAD", type, {80, 64, 14, 14}, {80, 64, 1, 1}, {14}));
    all.push_back(unpool(type, {2, 8, 100, 100}, {2, 8, 200, 200}));
  }
  for (const DataType type : {DataType::kUint8, DataType::kInt8}) {
    all.push_back(pool(type, {2, 8, 120, 120}, {2, 8, 60, 60}, {.size = 2, .stride = 2}));
    all.push_back(pool(type, {2, 8, 120, 120}, {2, 8, 60, 60}, {.size = 3, .stride = 2, .padding = 1}));
    all.push_back(pool(type, {2, 8, 120, 120}, {2, 8, 120, 120}, {.size = 3, .padding = 1}));
    all.push_back(pool(type, {2, 8, 120, 120}, {2, 8, 120, 120}, {.size = 3, .padding = 1}, true));
    all.push_back(pool(type, {2, 8, 120, 120}, {2, 8, 120, 120}, {.size = 3, .padding = 2, .dilation = 2}));
    all.push_back(pool(type, {2, 8, 90, 90}, {2, 8, 90, 90}, {.size = 7, .padding = 3}));
    all.push_back(pool(type, {1, 4, 9, 50, 50}, {1, 4, 9, 50, 50}, {.size = 3, .padding = 1}));
    all.push_back(pool(type, {1, 2, 320, 340}, {1, 2, 67, 87}, {.size = 260, .padding = 3}));
    all.push_back(pool(type, {1, 1, 50, 52, 54}, {1, 1, 6, 8, 10}, {.size = 45}));
    all.push_back(pool(type, {1, 1, 90, 9000}, {1, 1, 13, 8923}, {.size = 12, .dilation = 7}));
  }
  // Blocks of rows, of columns and of products; few rows; and sums beyond 32 bits.
  const std::array<int64_t, 3> products[] = {{400, 600, 300}, {3, 900, 5001}, {601, 70, 33}, {5, 70'001, 40}};
  for (const auto& [rows, count, columns] : products) {
    for (const DataType byte : {DataType::kUint8, DataType::kInt8}) {
      all.push_back(integer_product("MATRIX_MULTIPLY_INTEGER", byte, DataType::kInt8, DataType::kInt32, rows,
                                    count, columns));
      all.push_back(integer_product("QUANTIZED_LINEAR_MATRIX_MULTIPLY", DataType::kUint8, byte, byte, rows,
                                    count, columns));
    }
    for (const DataType type : {DataType::kInt8, DataType::kInt16, DataType::kUint32})
      all.push_back(integer_product("MATRIX_MULTIPLY_INTEGER_TO_FLOAT", type, type, DataType::kFloat32, rows,
                                    count, columns));
  }
  // Many small products, some of which a call has.
  all.push_back(integer_product("MATRIX_MULTIPLY_INTEGER", DataType::kUint8, DataType::kInt8,
                                DataType::kInt32, 17, 33, 50, 701));
  for (const bool is_quantized : {false, true}) {
    all.push_back(integer_convolution(is_quantized, 40, 70, 1, 60));
    all.push_back(integer_convolution(is_quantized, 64, 64, 64, 60));
    all.push_back(integer_convolution(is_quantized, 6, 300, 3, 31));
  }
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const bool is_forward : {false, true}) {
      all.push_back(convolution(type, 40, 70, 1, 2, 45, is_forward));
      all.push_back(convolution(type, 40, 70, 1, 2, 45, is_forward, true));
      all.push_back(convolution(type, 300, 14, 2, 1, 900, is_forward));
      all.push_back(convolution(type, 48, 48, 48, 2, 45, is_forward));
      all.push_back(convolution(type, 6, 9, 3, 3, 17, is_forward));
    }
    for (const DataType byte : {DataType::kUint8, DataType::kInt8})
      all.push_back(dynamic_quantize(type, byte, {301, 2003}));
  }
  using enum Opcode;
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    all.push_back(attention(type, 2, 70, 150, 3, 40));
    all.push_back(attention(type, 1, 1, 999, 4, 70));
    all.push_back(attention(type, 1, 500, 130, 2, 64));
    all.push_back(recurrent("RNN", type, 7, 3, 70, 301, 1, 0));
    all.push_back(recurrent("LSTM", type, 40, 1, 70, 190, 1, 0));
    all.push_back(recurrent("LSTM", type, 5, 13, 30, 131, 2, 0));
    for (const int64_t linear : {0, 1}) all.push_back(recurrent("GRU", type, 9, 4, 130, 131, 2, linear));
    all.push_back(element_wise(type, {300, 1001}, 1, {{POW, 0, 0}, {LOG, 1, 1}}));
    const Instruction spread = {LINEAR, 0, 0, 640, -640};  // from -10 to 10
    for (const Opcode opcode :
         {RELU, HARD_SIGMOID, HARD_SWISH, LEAKY_RELU, SHRINK, RECIP, SOFTSIGN, EXP, SIGMOID, TANH, SOFTPLUS,
          ELU, SCALED_ELU, SCALED_TANH, SCALED_SOFTPLUS, ROUND_EVEN, ROUND_AWAY, FLOOR, CEIL})
      all.push_back(element_wise(type, {300, 1001}, 1, {spread, {opcode, 1, 1, 0.75, 1.25}}));
    all.push_back(element_wise(type, {300, 1001}, 2, {spread, {MAX, 2, 1}, {RELU, 3, 3}}));
    for (const Opcode opcode : {REMAINDER, MODULUS_FLOOR, DIFFERENCE_SQUARE})
      all.push_back(element_wise(type, {300, 1001}, 2, {spread, {opcode, 2, 1}}));
    // Non-temporal stores
    all.push_back(element_wise(type, {9'000'001}, 3, {{MULTIPLY, 0, 1}, {ADD, 3, 2}, {CLIP, 4, 4, -2, 2}}));
    all.push_back(element_wise(type, {300, 1001}, 2,
                               {spread, {LESS_THAN, 2, 1, 0, 0, 2, DataType::kUint8}, {IF, 3, 1, 0, 0, 2}}));
  }
  const Instruction doubles = {COPY, 0, 0, 0, 0, 0, DataType::kFloat64};
  const Instruction singles = {COPY, 1, 1, 0, 0, 1, DataType::kFloat32};
  for (const DataType type : {DataType::kUint8, DataType::kInt8}) {
    all.push_back(element_wise(type, {300, 1001}, 1,
                               {doubles,
                                singles,
                                {ADD, 2, 2, 0, 0, 2, DataType::kFloat32},
                                {DEQUANTIZE_LINEAR, 0, 2, 0, 0, 0, DataType::kFloat32},
                                {QUANTIZE_LINEAR, 4, 3, 0, 0, 0}}));
  }
  all.push_back(quantized_sum({300, 1001}, DataType::kUint8, DataType::kInt8, DataType::kUint8));
  all.push_back(element_wise(DataType::kInt64, {300, 1001}, 2, {{INTEGER_POW, 0, 1}, {REMAINDER, 2, 1}}));
  for (const DataType type : {DataType::kInt16, DataType::kUint16, DataType::kInt8, DataType::kUint8}) {
    for (const Opcode opcode : {DIVIDE, REMAINDER, MODULUS_FLOOR})
      all.push_back(element_wise(type, {300, 1001}, 2, {{opcode, 0, 1}}));
  }
  for (const DataType type : {DataType::kInt64, DataType::kUint32, DataType::kInt16, DataType::kUint8})
    all.push_back(element_wise(type, {300, 1001}, 1,
                               {doubles, {COPY, 1, 1, 0, 0, 1}, {BIT_COUNT, 2, 2, 0, 0, 2, DataType::kUint8}},
                               DataType::kUint8));
  for (const DataType type : {DataType::kUint8, DataType::kFloat16, DataType::kFloat32, DataType::kUint64}) {
    all.push_back(transpose(type, 701, 1003));
    all.push_back(transpose(type, 300'001, 3));
    all.push_back(transpose(type, 3, 300'001));
    all.push_back(transpose(type, 5003, 4001));  // non-temporal stores
    all.push_back(move(type, {2000, 640}, {2000, 500}, {{2000, 500, 7, 640}, {500, 1, 0, 1}}));
    all.push_back(move(type, {2000, 640}, {2000, 320}, {{2000, 320, 639, 640}, {320, 1, 0, -2}}));
    all.push_back(move(type, {200'001}, {200'001, 5}, {{200'001, 5, 0, 1}, {5, 1, 0, 0}}));
    all.push_back(move(type, {40'000, 2, 3, 4}, {40'000, 4, 3, 2},
                       {{40'000, 24, 0, 24}, {4, 6, 0, 1}, {3, 2, 0, 4}, {2, 1, 0, 12}}));
    all.push_back(pad(type, 3000, 8, 9));
    all.push_back(pad(type, 2, 700, 900));
    all.push_back(gather(type, DataType::kInt32, 100, 77, 20'000));
    all.push_back(reverse(type, 5000, 77));
    all.push_back(reverse(type, 3, 300'001));
    // Stripes of columns, columns of threads' own, and points that are sorted.
    for (const bool sets : {false, true}) {
      all.push_back(gather_or_scatter(sets, type, 3001, 301, 2999));
      all.push_back(gather_or_scatter(sets, type, 50, 9001, 70));
      all.push_back(gather_or_scatter(sets, type, 100, 3, 150'000));
    }
    all.push_back(sequence(type, 700'001, std::bit_cast<int64_t>(0.5), std::bit_cast<int64_t>(0.1)));
    all.push_back(band(type, 500, 701, -20, 300));
    all.push_back(band(type, 701, 500, 20, -30));
    all.push_back(fold(type, 3, 150, 170, 3));
    all.push_back(fold(type, 1, 3, 5000, 4));
    all.push_back(fold(type, 2, 50, 60, 9, true));
    all.push_back(fold(type, 1, 3, 5000, 4, true));
    all.push_back(fold(type, 700, 9, 11, 3, true));
    if (type != DataType::kFloat32 && type != DataType::kFloat16) continue;
    all.push_back(value_scale(type, 301, 403));
    all.push_back(regions("ROI_POOLING", type, 40, 30, 7, {}));
    for (const int64_t function : {2, 7}) {  // AVERAGE and MAX
      for (const int64_t mode : {0, 1}) {
        const std::vector<std::pair<std::string, int64_t>> members = {{"ReductionFunction", function},
                                                                      {"InterpolationMode", mode},
                                                                      {"MinimumSamplesPerOutput", 1},
                                                                      {"MaximumSamplesPerOutput", 3}};
        all.push_back(regions("ROI_ALIGN", type, 40, 30, 7, members));
        all.push_back(regions("ROI_ALIGN_GRAD", type, 40, 3, 7, members));
      }
    }
  }
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kUint8, DataType::kInt8}) {
    for (const int64_t taps : {0, 1, 2, 7}) {
      all.push_back(resample(type, {3, 200, 300}, {3, 331, 501}, {1, 2}, taps));
      all.push_back(resample(type, {3, 200, 300}, {3, 67, 101}, {1, 2}, taps));
      all.push_back(resample(type, {300, 200, 3}, {331, 303, 3}, {0, 1}, taps));   // narrow pixels
      all.push_back(resample(type, {90, 50, 301}, {101, 30, 301}, {0, 1}, taps));  // wide ones
      all.push_back(resample(type, {40, 50, 60}, {43, 41, 101}, {0, 1, 2}, taps));
      all.push_back(resample(type, {300'001}, {700'001}, {0}, taps));
    }
    all.push_back(resample(type, {5, 30'001}, {7, 3}, {0, 1}, 9000));  // sums in parts
  }
  for (const DataType to : {DataType::kFloat32, DataType::kFloat16, DataType::kFloat64, DataType::kUint8,
                            DataType::kInt16, DataType::kUint32, DataType::kInt64, DataType::kUint64}) {
    for (const DataType from : {DataType::kFloat32, DataType::kFloat16, DataType::kInt8, DataType::kUint16,
                                DataType::kInt32, DataType::kInt64, DataType::kUint64}) {
      if (from != to) all.push_back(cast(from, to, {300, 1001}));
    }
  }
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const bool is_transposed : {false, true}) {
      all.push_back(product(type, 300, 1025, 333, is_transposed));
      all.push_back(product(type, 5, 700, 1000, is_transposed));
      all.push_back(product(type, 1, 700, 1000, is_transposed));
      all.push_back(product(type, 3, 1030, 999, is_transposed));
    }
  }
  for (const DataType type : {DataType::kInt8, DataType::kFloat16, DataType::kFloat32}) {
    all.push_back(nonzero(type, {700'001}));
    all.push_back(nonzero(type, {501, 1003}));
    all.push_back(nonzero(type, {100'001, 3}));
    all.push_back(nonzero(type, {40, 3, 50, 70}));
    all.push_back(nonzero(type, {10, 20, 3, 20, 30}));
  }
  for (const DataType type : {DataType::kUint8, DataType::kFloat16, DataType::kFloat32, DataType::kInt64}) {
    all.push_back(top_k(type, {700'001}, 0, 100, 1));
    all.push_back(top_k(type, {3, 300'001}, 1, 3000, 0));
    all.push_back(top_k(type, {701, 1003}, 1, 9, 1));
    all.push_back(top_k(type, {701, 1003}, 0, 300, 0));
    all.push_back(top_k(type, {30, 64, 301}, 1, 1, 0));
    all.push_back(top_k(type, {70'001, 10}, 1, 10, 1));
  }
  for (const DataType real : {DataType::kFloat32, DataType::kFloat16}) {
    for (const DataType code : {DataType::kUint8, DataType::kInt8, DataType::kUint4, DataType::kInt4}) {
      for (const bool from_reals : {false, true}) {
        all.push_back(quantized(from_reals, real, code, 7 * 101, 11 * 91));
        all.push_back(quantized(from_reals, real, code, 7 * 30'001, 11));
      }
    }
  }
  all.push_back(quantized(false, DataType::kFloat32, DataType::kInt4, 7 * 701, 11 * 91));  // non-temporal
  all.push_back(random_generator(700'001));
  all.push_back(random_generator(9'000'001));                                // non-temporal stores
  all.push_back(cast(DataType::kFloat32, DataType::kFloat64, {4'000'001}));  // non-temporal stores
  all.push_back(pool(DataType::kUint8, {4, 200, 30, 30}, {4, 200, 1, 1}, {.size = 30}));
  // Rows, long and short, columns, narrow columns, what is transposed; whole, in chunks and in strips.
  const std::pair<std::vector<int64_t>, std::vector<int64_t>> reductions[] = {
      {{700'001}, {0}},           {{300, 2001}, {1}},   {{300, 2001}, {0}},       {{70'001, 3}, {0}},
      {{70'001, 3}, {1}},         {{21'001, 17}, {0}},  {{21'001, 17}, {1}},      {{9, 40'001}, {0}},
      {{50, 7, 2003}, {1}},       {{3001, 7, 9}, {1}},  {{20, 30, 1001}, {0, 2}}, {{31, 401, 21}, {0, 2}},
      {{20, 30, 49}, {0, 2}},     {{301, 61, 31}, {1}}, {{501, 200, 3}, {1}},     {{20'001, 5, 7}, {0, 2}},
      {{101, 16, 17, 18}, {1, 3}}};
  for (const auto& [sizes, axes] : reductions) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16})
      for (const Function function : {kAverage, kL2, kLogSumExp, kLargest, kProduct, kSum})
        all.push_back(reduce(function, type, sizes, axes));
    all.push_back(reduce(kSum, DataType::kInt64, sizes, axes));
    all.push_back(reduce(kLargest, DataType::kUint8, sizes, axes));
    for (const DataType type : {DataType::kFloat32, DataType::kInt8, DataType::kUint16})
      for (const int64_t decreasing : {0, 1}) all.push_back(argmax(type, sizes, axes, decreasing));
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16})
      add_normalizations(all, type, sizes, axes);
  }
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16})
    add_of_images(all, type, {3, 20, 50, 70});
  return all;
}

}  // namespace

int main() {
  int failures = 0;
  const auto& sets = anydml::instruction_sets();
  std::vector<Bytes> inputs;
  Bytes expected, output;
  for (const Case& each : cases()) {
    fill_inputs(each, inputs);
    bool has_run = false;
    for (const std::string_view set : sets) {
      if (!run_twice(set, each, inputs, output)) {
        ++failures;
      } else if (!has_run) {
        std::swap(expected, output);
        has_run = true;
      } else if (output != expected) {
        std::printf("%s: %s and %s differ\n", title(each).c_str(), std::string(sets.front()).c_str(),
                    std::string(set).c_str());
        ++failures;
      }
    }
    if (has_run)
      std::printf("%016" PRIx64 " %s\n", digest_of(expected.data(), expected.size()), title(each).c_str());
  }
  for (const std::string_view set : sets) std::fprintf(stderr, "%s ", std::string(set).c_str());
  std::fprintf(stderr, "on %zu cases, %d failed\n", cases().size(), failures);
  return failures != 0;
}
