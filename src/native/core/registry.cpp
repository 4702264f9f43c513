#include "core/registry.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace anydml {
namespace {

#define ANYDML_TABLE(isa)                                                               \
  constexpr Kernel isa##_kernels[] = {                                                  \
      {"JOIN", isa::make_join},                                                         \
      {"ELEMENT_WISE", isa::make_element_wise},                                         \
      {"AVERAGE_POOLING", isa::make_average_pooling},                                   \
      {"BATCH_NORMALIZATION", isa::make_batch_normalization},                           \
      {"CONVOLUTION", isa::make_convolution},                                           \
      {"MAX_POOLING", isa::make_max_pooling},                                           \
      {"MAX_POOLING1", isa::make_max_pooling},                                          \
      {"MAX_POOLING2", isa::make_max_pooling},                                          \
      {"CUMULATIVE_SUMMATION", isa::make_cumulative_summation},                         \
      {"CUMULATIVE_PRODUCT", isa::make_cumulative_product},                             \
      {"QUANTIZED_LINEAR_AVERAGE_POOLING", isa::make_quantized_linear_average_pooling}, \
  };
ANYDML_TABLE(baseline)
#if defined(ANYDML_HAS_AVX2)
ANYDML_TABLE(avx2)
#endif
#if defined(ANYDML_HAS_AVX512)
ANYDML_TABLE(avx512)
#endif
#undef ANYDML_TABLE

struct InstructionSet {
  std::string_view name;
  bool (*is_there)();
  const Kernel* begin;
  const Kernel* end;
};

const InstructionSet kInstructionSets[] = {
#if defined(ANYDML_HAS_AVX512)
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
     },
     std::begin(avx512_kernels), std::end(avx512_kernels)},
#endif
#if defined(ANYDML_HAS_AVX2)
    {"avx2",
     [] {
       return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c");
     },
     std::begin(avx2_kernels), std::end(avx2_kernels)},
#endif
    {"baseline", [] { return true; }, std::begin(baseline_kernels), std::end(baseline_kernels)},
};

}  // namespace

const std::vector<std::string_view>& instruction_sets() {
  static const std::vector<std::string_view> kThere = [] {
    std::vector<std::string_view> there;
    for (const InstructionSet& set : kInstructionSets) {
      if (set.is_there()) there.push_back(set.name);
    }
    return there;
  }();
  return kThere;
}

std::string_view chosen_instruction_set(std::string& reason) {
  const auto& there = instruction_sets();
  const char* forced = std::getenv("ANYDML_CPU");
  if (forced == nullptr || *forced == '\0') return there.front();
  const auto found = std::ranges::find(there, std::string_view(forced));
  if (found != there.end()) return *found;
  reason = "ANYDML_CPU is " + std::string(forced) + ", but this machine has";
  for (const std::string_view each : there) reason += " " + std::string(each);
  return {};
}

std::unique_ptr<Plan> make_plan(std::string_view instruction_set, std::string_view name,
                                const Request& request, std::string& reason) {
  const auto* set = std::ranges::find(kInstructionSets, instruction_set, &InstructionSet::name);
  const auto* kernel = std::find_if(set->begin, set->end, [&](const Kernel& k) { return k.name == name; });
  if (kernel == set->end) {
    reason = "no kernel for " + std::string(name);
    return nullptr;
  }
  return kernel->make(request, reason);
}

}  // namespace anydml
