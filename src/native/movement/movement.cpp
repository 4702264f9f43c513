// Movement: copies of elements, whatever they mean, from one place to another.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/candidates.h"
#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "movement/nest_copy.h"
#include "movement/policy.h"
#include "movement/run_copy.h"
#include "movement/segment_copy.h"
#include "movement/tile_copy.h"
#include "movement/tuning.h"
#include "movement/view.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

using Constant = std::array<std::byte, 8>;

// A copy, and where it begins, in bytes.
struct Placed {
  std::unique_ptr<Copy> copy;
  int64_t in;
  int64_t out;
  bool is_constant;
  size_t output;
};

class MovementPlan final : public Plan {
 public:
  MovementPlan(std::vector<Placed> copies, bool has_input, const Constant& constant, std::string description)
      : Plan(std::move(description)), copies_(std::move(copies)), has_input_(has_input), constant_(constant) {
    for (const Placed& each : copies_) {
      bytes_ += each.copy->bytes();
      takes_turns_ |= copies_.size() > 1 && each.copy->shares_lines();
    }
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = has_input_ ? static_cast<const std::byte*>(inputs[0]) : nullptr;
    // Elements that stay where they are.
    if (in != nullptr && in == outputs[0]) return;
    const int threads = threads_for(2 * bytes_);
    int64_t calls = calls_for(2 * bytes_, threads);
    if (takes_turns_) calls = std::max(calls, bytes_ / kTurnBytes);
    parallel_for(calls, threads, [&](int64_t call) {
      for (const Placed& each : copies_) {
        const int64_t parts = each.copy->parts();
        const int64_t first = share_begin(call, calls, parts);
        const int64_t last = share_begin(call + 1, calls, parts);
        if (first == last) continue;
        each.copy->run(first, last, each.is_constant ? constant_.data() : in + each.in,
                       static_cast<std::byte*>(outputs[each.output]) + each.out, bytes_ >= kStreamFrom);
      }
    });
  }

 private:
  std::vector<Placed> copies_;
  bool has_input_;
  Constant constant_;
  int64_t bytes_ = 0;
  bool takes_turns_ = false;
};

// `end` is where the input ends, from its first element on.
Placed placed(const View& view, int64_t element, const Constant& constant, int64_t end) {
  if (!std::ranges::all_of(view, &SegmentedDimension::is_plain)) {
    return {std::make_unique<SegmentCopy>(view, element, constant.data(), end), 0, 0, false, 0};
  }
  Placed placed{};
  placed.is_constant = std::ranges::any_of(view, &SegmentedDimension::is_constant);
  std::vector<Loop> loops;
  for (const SegmentedDimension& dimension : view) {
    const Segment& only = dimension.only();
    Loop loop{only.size, placed.is_constant ? 0 : only.in_step, dimension.out_step};
    if (!placed.is_constant) placed.in += only.in;
    // The output's steps lead upwards.
    if (loop.out < 0 && loop.size > 1) {
      placed.in += (loop.size - 1) * loop.in;
      placed.out += (loop.size - 1) * loop.out;
      loop = {loop.size, -loop.in, -loop.out};
    }
    loops.push_back(loop);
  }
  MovementFacts facts{fold(std::move(loops)), element};
  if (!facts.loops.empty() && facts.loops.back().in == element && facts.loops.back().out == element) {
    facts.unit *= take_innermost(facts.loops).size;
  }
  const auto [algorithm, name, declined] = choose(kMovementCandidates, facts);
  const std::string words = name + declined;
  if (algorithm == MovementAlgorithm::kLongRuns) {
    placed.copy = std::make_unique<RunCopy>(std::move(facts), words);
  } else if (algorithm == MovementAlgorithm::kTiles) {
    placed.copy = std::make_unique<TileCopy>(std::move(facts), words);
  } else {
    placed.copy = std::make_unique<NestCopy>(std::move(facts), algorithm, words);
  }
  return placed;
}

}  // namespace

std::unique_ptr<Plan> make_movement(const Request& request, std::string& reason) {
  const int64_t element = size_of(tensor(request.outputs, 0).type);
  const std::string type(name_of(request.outputs[0].type));
  if (element == 0) {
    reason = "no movement of " + type + ", whose elements are not whole bytes";
    return nullptr;
  }
  Constant constant{};
  if (request.attributes.has("Constant")) {
    const int64_t bits = request.attributes.integer("Constant");
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(constant.data(), &bits, sizeof(bits));
  }
  const Layout* const in = request.inputs.empty() ? nullptr : &tensor(request.inputs, 0);
  const int64_t end = in == nullptr ? 0 : static_cast<int64_t>(reach_of(*in).high) + element;
  std::vector<Placed> copies;
  std::vector<double> elements(request.outputs.size());
  for (ViewReader views(request.attributes.integers("Views")); !views.is_at_end();) {
    const PlacedView each = views.next();
    require(each.output < elements.size(), "a view of no output");
    const Layout& out = tensor(request.outputs, each.output);
    require(size_of(out.type) == element, "the types of outputs differ");
    require(in == nullptr || size_of(in->type) == element, "the types of input and output differ");
    check_view(each, in, out);
    elements[each.output] += elements_of(each.view);
    copies.push_back(placed(each.view, element, constant, end));
    copies.back().out += each.out;
    copies.back().output = each.output;
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    double expected = 1;
    for (const int64_t size : request.outputs[i].sizes) expected *= static_cast<double>(size);
    require(elements[i] == expected, "views are not of all of an output");
  }
  std::string description = "movement of " + type + ", " + copies[0].copy->name();
  const size_t outputs = elements.size();
  if (outputs > 1) description += ", outputs: " + std::to_string(outputs);
  if (copies.size() > outputs) description += ", parts: " + std::to_string(copies.size());
  return std::make_unique<MovementPlan>(std::move(copies), in != nullptr, constant, description);
}

ANYDML_ISA_END
