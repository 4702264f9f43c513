// RNN, LSTM and GRU: what enters the gates of the input is one product of matrices for many steps ahead, to
// which each step adds the product of the state before it.
//
// Threads share the units of a layer, and meet behind each step. Sums are two chains of fused multiply-adds,
// W_b and the input's elements in their order, and the state's elements and R_b.
#include "recurrent/recurrent_plan.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN
namespace {

LayerTensor tensor_of(const std::vector<Layout>& layouts, size_t i, DataType type) {
  if (i >= layouts.size() || !layouts[i].present) return {};
  const Layout& layout = layouts[i];
  require(layout.sizes.size() == 4 && layout.type == type, "a tensor's rank or type");
  LayerTensor found{static_cast<int64_t>(i), {}, {}};
  std::ranges::copy(layout.sizes, found.sizes.begin());
  std::ranges::copy(layout.strides, found.strides.begin());
  return found;
}

// The layer of a request whose tensors are in the order of the header.
RecurrentLayer layer_of(const Request& request, CellKind kind) {
  const Attributes& attributes = request.attributes;
  const Layout& x = tensor(request.inputs, 0);
  const Layout& r = tensor(request.inputs, 2);
  require(x.sizes.size() == 4 && r.sizes.size() == 4, "the rank of the input or of the recurrence");
  const auto input = [&](size_t i) { return tensor_of(request.inputs, i, x.type); };
  const auto output = [&](size_t i) { return tensor_of(request.outputs, i, x.type); };
  const bool is_lstm = kind == CellKind::kLstm;
  RecurrentLayer layer{.kind = kind,
                       .is_backward = attributes.flag("Backward"),
                       .directions = r.sizes[1],
                       .steps = x.sizes[1],
                       .batch = x.sizes[2],
                       .input = x.sizes[3],
                       .hidden = r.sizes[3],
                       .x = input(0),
                       .w = input(1),
                       .r = input(2),
                       .bias = input(3),
                       .initial = input(4),
                       .initial_cell = is_lstm ? input(5) : LayerTensor{},
                       .lengths = tensor_of(request.inputs, is_lstm ? 6 : 5, DataType::kUint32),
                       .peepholes = is_lstm ? input(7) : LayerTensor{},
                       .sequence = output(0),
                       .single = output(1),
                       .single_cell = is_lstm ? output(2) : LayerTensor{},
                       .activations = {},
                       .couples = attributes.flag("CoupleInputForget"),
                       .is_clipped = attributes.flag("UseClipThreshold"),
                       .limit = static_cast<float>(bits_as<double>(attributes.integer("ClipThreshold")))};
  require(layer.directions == 1 || layer.directions == 2, "the number of directions");
  const int64_t rows = arrangement_of(kind).gates * layer.hidden;
  const std::vector<int64_t> state{1, layer.directions, layer.batch, layer.hidden};
  const auto has = [](const std::vector<Layout>& layouts, const LayerTensor& place,
                      const std::vector<int64_t>& sizes) {
    return !place.is_there() || layouts[static_cast<size_t>(place.tensor)].sizes == sizes;
  };
  require(r.sizes[2] == rows && layer.w.is_there() &&
              has(request.inputs, layer.w, {1, layer.directions, rows, layer.input}) &&
              has(request.inputs, layer.bias, {1, 1, layer.directions, 2 * rows}) &&
              has(request.inputs, layer.initial, state) && has(request.inputs, layer.initial_cell, state) &&
              has(request.inputs, layer.lengths, {1, 1, 1, layer.batch}) &&
              has(request.inputs, layer.peepholes, {1, 1, layer.directions, 3 * layer.hidden}) &&
              has(request.outputs, layer.sequence, {layer.steps, state[1], layer.batch, layer.hidden}) &&
              has(request.outputs, layer.single, state) && has(request.outputs, layer.single_cell, state),
          "the sizes of a recurrent layer's tensors");
  for (int64_t i = 0; i < layer.directions * layer.activations_of_a_direction(); ++i)
    layer.activations.emplace_back(attributes.integers("Activation" + std::to_string(i)));
  return layer;
}

std::unique_ptr<Plan> plan_of(const Request& request, CellKind kind, const char* name, std::string& reason) {
  const DataType type = tensor(request.inputs, 0).type;
  std::string description = name;
  description.append(" of ").append(name_of(type)).append(", products of the input ahead of the steps");
  if (type == DataType::kFloat32)
    return std::make_unique<RecurrentPlan<float>>(layer_of(request, kind), description);
  if (type == DataType::kFloat16)
    return std::make_unique<RecurrentPlan<Half>>(layer_of(request, kind), description);
  reason = "no " + description;
  return nullptr;
}

}  // namespace

std::unique_ptr<Plan> make_gru(const Request& request, std::string& reason) {
  const bool is_linear = request.attributes.flag("LinearBeforeReset");
  return plan_of(request, is_linear ? CellKind::kLinearGru : CellKind::kGru, "GRU", reason);
}
std::unique_ptr<Plan> make_lstm(const Request& request, std::string& reason) {
  return plan_of(request, CellKind::kLstm, "LSTM", reason);
}
std::unique_ptr<Plan> make_rnn(const Request& request, std::string& reason) {
  return plan_of(request, CellKind::kRnn, "RNN", reason);
}

ANYDML_ISA_END
