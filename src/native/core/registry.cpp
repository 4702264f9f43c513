#include "core/registry.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace anydml {
namespace {

#if defined(ANYDML_HAS_AVX512)
#define ANYDML_AVX512(factory) avx512::factory
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
#define ANYDML_AVX512(factory) nullptr
bool has_avx512() { return false; }
#endif

#if defined(ANYDML_HAS_AVX2)
#define ANYDML_AVX2(factory) avx2::factory
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
#else
#define ANYDML_AVX2(factory) nullptr
bool has_avx2() { return false; }
#endif

#if defined(ANYDML_HAS_BASELINE) || !(defined(ANYDML_HAS_AVX2) || defined(ANYDML_HAS_AVX512))
#define ANYDML_BASELINE(factory) baseline::factory
constexpr bool kHasBaseline = true;
#else
#define ANYDML_BASELINE(factory) nullptr
constexpr bool kHasBaseline = false;
#endif

struct InstructionSet {
  std::string_view name;
  bool (*is_available)();
};

// Best first.
constexpr InstructionSet kInstructionSets[] = {
    {"avx512", has_avx512},
    {"avx2", has_avx2},
    {"baseline", [] { return kHasBaseline; }},
};

struct Kernel {
  std::string_view name;
  Factory factories[std::size(kInstructionSets)];  // null for an instruction set that is not compiled in
};

#define ANYDML_KERNEL(name, factory) \
  {#name, {ANYDML_AVX512(factory), ANYDML_AVX2(factory), ANYDML_BASELINE(factory)}},
constexpr Kernel kKernels[] = {
#include "core/kernels.inc"
};
#undef ANYDML_KERNEL

}  // namespace

const std::vector<std::string_view>& kernel_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Kernel& kernel : kKernels) names.push_back(kernel.name);
    return names;
  }();
  return kNames;
}

const std::vector<std::string_view>& instruction_sets() {
  static const std::vector<std::string_view> kAvailable = [] {
    std::vector<std::string_view> available;
    for (const InstructionSet& set : kInstructionSets) {
      if (set.is_available()) available.push_back(set.name);
    }
    return available;
  }();
  return kAvailable;
}

std::string_view chosen_instruction_set(std::string& reason) {
  const auto& available = instruction_sets();
  if (available.empty()) {
    reason = "the kernels were compiled for another processor than this machine's";
    return {};
  }
  const char* forced = std::getenv("ANYDML_CPU");
  if (forced == nullptr || *forced == '\0') return available.front();
  const auto found = std::ranges::find(available, std::string_view(forced));
  if (found != available.end()) return *found;
  reason = "ANYDML_CPU is " + std::string(forced) + ", but this machine has";
  for (const std::string_view each : available) reason += " " + std::string(each);
  return {};
}

std::unique_ptr<Plan> make_plan(std::string_view instruction_set, std::string_view name,
                                const Request& request, std::string& reason) {
  const auto* const set = std::ranges::find(kInstructionSets, instruction_set, &InstructionSet::name);
  const auto* const kernel = std::ranges::find(kKernels, name, &Kernel::name);
  if (kernel == std::end(kKernels)) {
    reason = "no kernel for " + std::string(name);
    return nullptr;
  }
  return kernel->factories[set - std::begin(kInstructionSets)](request, reason);
}

}  // namespace anydml
