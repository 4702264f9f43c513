#include "platform/cpu_features.h"

#include <cstdlib>
#include <string_view>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace anydml {
namespace {

// Whether ANYDML_CPU_WITHOUT, a list with commas between, names it.
bool is_left_out(std::string_view name) {
  const char* const value = std::getenv("ANYDML_CPU_WITHOUT");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    if (rest.substr(0, comma) == name) return true;
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return false;
}

#if defined(__x86_64__) && defined(__linux__)
bool may_use_tiles() {
  constexpr unsigned kTile = 1u << 24;
  constexpr unsigned kInt8 = 1u << 25;
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kTile) == 0 || (d & kInt8) == 0) return false;
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#else
bool may_use_tiles() { return false; }
#endif

}  // namespace

bool has_vnni() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512vnni") && !is_left_out("vnni");
#else
  return false;
#endif
}

bool has_amx() {
  static const bool found = may_use_tiles();
  return found && !is_left_out("amx");
}

}  // namespace anydml
