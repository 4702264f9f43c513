// The tensors of a normalisation, and buffers of runs of them as double precision.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "normalization/geometry.h"
#include "normalization/runs.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

inline constexpr size_t kMostInputs = 5;

// The tensors of a plan, inputs first.
struct Operands {
  size_t inputs = 0;
  size_t outputs = 0;
  std::array<bool, kMostTensors> is_present{};
  std::array<Load, kMostInputs> loads{};  // null for what is no input, or absent
  Store store = nullptr;                  // all outputs have one type
  int64_t item = 0;

  Operands(const std::vector<Layout>& in, const std::vector<Layout>& out)
      : inputs(in.size()),
        outputs(out.size()),
        store(store_of(tensor(out, 0).type)),
        item(size_of(out[0].type)) {
    require(inputs <= kMostInputs && inputs + outputs <= kMostTensors, "too many tensors");
    for (size_t k = 0; k < inputs; ++k) {
      is_present[k] = in[k].present;
      if (is_present[k]) loads[k] = load_of(in[k].type);
      require(!is_present[k] || loads[k] != nullptr, "an input is of no float type");
    }
    for (size_t k = 0; k < outputs; ++k) is_present[inputs + k] = out[k].present;
    require(store != nullptr, "an output is of no float type");
  }

  // Those that are read or written element by element, in bytes.
  int64_t bytes(int64_t elements) const {
    const auto count = std::count(is_present.begin(), is_present.end(), true);
    return elements * item * static_cast<int64_t>(count);
  }
};

// Buffers of runs, which know what they hold: what is read again, or is the same for many runs, stays.
class Buffers {
 public:
  explicit Buffers(const Operands& operands) : operands_(operands) {
    for (size_t k = 0; k < kMostInputs; ++k) pointers_[k] = runs_[k];
  }

  void load(size_t input, const std::byte* from, int64_t step, int64_t count) {
    Held& held = held_[input];
    if (held.from == from && held.step == step && held.count >= count) return;
    operands_.loads[input](from, step, count, runs_[input]);
    held = {from, step, count};
  }

  const double* const* runs() const { return pointers_.data(); }

 private:
  struct Held {
    const std::byte* from = nullptr;
    int64_t step = 0;
    int64_t count = 0;
  };

  const Operands& operands_;
  std::array<Held, kMostInputs> held_{};
  std::array<const double*, kMostInputs> pointers_{};
  alignas(64) double runs_[kMostInputs][kRun];
};

ANYDML_ISA_END
