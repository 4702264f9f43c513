// The functions of pointwise programs for every number of single and of half precision, against the C
// library's in double precision, and in extended precision next to where rounding changes. It prints the
// largest error in units in the last place, how many results are not correctly rounded, and a digest of all
// results, which is the same on every machine.
//
// Arguments are the names of functions, all without; "--every N" takes every Nth number.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numbers>
#include <string_view>
#include <thread>
#include <vector>

#include "platform/isa.h"
#include "pointwise/error_function.h"
#include "pointwise/hyperbolic.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/single_atan2.h"
#include "pointwise/single_gelu.h"
#include "pointwise/single_hyperbolic.h"
#include "pointwise/single_log.h"
#include "pointwise/single_pow.h"
#include "pointwise/single_swish.h"
#include "pointwise/single_tanh.h"
#include "pointwise/single_trigonometry.h"
#include "pointwise/singles.h"
#include "pointwise/trigonometry.h"
#include "simd/half.h"

// Numbers that are computed at a time: as many as the first cache holds.
constexpr int64_t kBlock = 2048;

using Compute = void (*)(const std::byte* x, const std::byte* y, std::byte* out);

ANYDML_ISA_BEGIN

template <class V, class Element, class Function>
void compute(const std::byte* x, const std::byte* y, std::byte* out) {
  using T = std::conditional_t<std::is_same_v<V, Singles>, float, double>;
  for (int64_t i = 0; i < kBlock; i += sizeof(V) / sizeof(T)) {
    const int64_t at = i * static_cast<int64_t>(sizeof(Element));
    const auto a = load_numbers<Element, T, V>(x + at);
    const auto b = load_numbers<Element, T, V>(y + at);
    store_numbers<Element, T>(out + at, Function::of(a, b));
  }
}

#define ANYDML_FUNCTION(name, Numbers, expression)                                \
  struct name {                                                                   \
    using V = Numbers;                                                            \
    ANYDML_INLINE static V of(V x, [[maybe_unused]] V y) { return (expression); } \
    static constexpr Compute kSingles = compute<V, float, name>;                  \
    static constexpr Compute kHalves = compute<V, Half, name>;                    \
  };

ANYDML_FUNCTION(SingleExp, Singles, exp_of(x))
ANYDML_FUNCTION(SingleLog, Singles, log_of(x))
ANYDML_FUNCTION(SingleSigmoid, Singles, sigmoid_of(x))
ANYDML_FUNCTION(SingleTanh, Singles, tanh_of(x))
ANYDML_FUNCTION(SingleSoftplus, Singles, softplus_of(x))
ANYDML_FUNCTION(SingleElu, Singles, x >= 0.0f ? x : scaled_expm1_of(x, 1.0))
ANYDML_FUNCTION(SingleSin, Singles, sin_of(x))
ANYDML_FUNCTION(SingleCos, Singles, cos_of(x))
ANYDML_FUNCTION(SingleTan, Singles, tan_of(x))
ANYDML_FUNCTION(SingleAsin, Singles, asin_of(x))
ANYDML_FUNCTION(SingleAcos, Singles, acos_of(x))
ANYDML_FUNCTION(SingleAtan, Singles, atan_of(x))
ANYDML_FUNCTION(SingleSinh, Singles, sinh_of(x))
ANYDML_FUNCTION(SingleCosh, Singles, cosh_of(x))
ANYDML_FUNCTION(SingleAsinh, Singles, asinh_of(x))
ANYDML_FUNCTION(SingleAcosh, Singles, acosh_of(x))
ANYDML_FUNCTION(SingleErf, Singles, erf_of(x))
ANYDML_FUNCTION(SingleSwish, Singles, swish_of(x, 1.0f))
ANYDML_FUNCTION(SingleGelu, Singles, gelu_of(x))
ANYDML_FUNCTION(SingleAtan2, Singles, atan2_of(x, y))
ANYDML_FUNCTION(SingleCubeRoot, Singles, pow_of(x, singles(1.0f / 3)))
ANYDML_FUNCTION(SinglePow, Singles, pow_of(x, singles(-2.5f)))
ANYDML_FUNCTION(DoubleExp, Doubles, exp_of(x))
ANYDML_FUNCTION(DoubleLog, Doubles, log_of(x))
ANYDML_FUNCTION(DoubleSigmoid, Doubles, sigmoid_of(x))
ANYDML_FUNCTION(DoubleTanh, Doubles, tanh_of(x))
ANYDML_FUNCTION(DoubleSoftplus, Doubles, softplus_of(x))
ANYDML_FUNCTION(DoubleElu, Doubles, x >= 0.0 ? x : scaled_expm1_of(x, 1.0))
ANYDML_FUNCTION(Swish, Doubles, swish_of(x, 1.0))
ANYDML_FUNCTION(CubeRoot, Doubles, constant_pow_of(x, 1.0 / 3))
ANYDML_FUNCTION(Pow, Doubles, constant_pow_of(x, -2.5))
ANYDML_FUNCTION(Sin, Doubles, sin_of(x))
ANYDML_FUNCTION(Cos, Doubles, cos_of(x))
ANYDML_FUNCTION(Tan, Doubles, tan_of(x))
ANYDML_FUNCTION(Asin, Doubles, asin_of(x))
ANYDML_FUNCTION(Acos, Doubles, acos_of(x))
ANYDML_FUNCTION(Atan, Doubles, atan_of(x))
ANYDML_FUNCTION(Atan2, Doubles, atan2_of(x, y))
ANYDML_FUNCTION(Sinh, Doubles, sinh_of(x))
ANYDML_FUNCTION(Cosh, Doubles, cosh_of(x))
ANYDML_FUNCTION(Asinh, Doubles, asinh_of(x))
ANYDML_FUNCTION(Acosh, Doubles, acosh_of(x))
ANYDML_FUNCTION(Atanh, Doubles, atanh_of(x))
ANYDML_FUNCTION(Erf, Doubles, erf_of(x))
ANYDML_FUNCTION(Gelu, Doubles, gelu_of(x))

#undef ANYDML_FUNCTION

ANYDML_ISA_END

namespace {

using namespace anydml;
using namespace anydml::ANYDML_ISA;

enum class Parity { kNone, kOdd, kEven };

struct Function {
  std::string_view name;
  Compute singles;
  Compute halves;
  Parity parity;
  double (*close)(double x, double y);
  long double (*exact)(long double x, long double y);
};

#define ANYDML_CHECKED(Name, name, parity, expression)      \
  Function {                                                \
    name, Name::kSingles, Name::kHalves, Parity::parity,    \
        [](double x, [[maybe_unused]] double y) {           \
          using T = double;                                 \
          return T{expression};                             \
        },                                                  \
        [](long double x, [[maybe_unused]] long double y) { \
          using T = long double;                            \
          return T{expression};                             \
        }                                                   \
  }

const Function kFunctions[] = {
    ANYDML_CHECKED(SingleExp, "exp of singles", kNone, std::exp(x)),
    ANYDML_CHECKED(SingleLog, "log of singles", kNone, std::log(x)),
    ANYDML_CHECKED(SingleSigmoid, "sigmoid of singles", kNone, 1 / (1 + std::exp(-x))),
    ANYDML_CHECKED(SingleTanh, "tanh of singles", kOdd, std::tanh(x)),
    ANYDML_CHECKED(SingleSoftplus, "softplus of singles", kNone,
                   std::isnan(x) ? x : std::fmax(x, T{0}) + std::log1p(std::exp(-std::fabs(x)))),
    ANYDML_CHECKED(SingleElu, "elu of singles", kNone, x > 0 ? x : std::expm1(x)),
    ANYDML_CHECKED(SingleSin, "sin of singles", kOdd, std::sin(x)),
    ANYDML_CHECKED(SingleCos, "cos of singles", kEven, std::cos(x)),
    ANYDML_CHECKED(SingleTan, "tan of singles", kOdd, std::tan(x)),
    ANYDML_CHECKED(SingleAsin, "asin of singles", kOdd, std::asin(x)),
    ANYDML_CHECKED(SingleAcos, "acos of singles", kNone, std::acos(x)),
    ANYDML_CHECKED(SingleAtan, "atan of singles", kOdd, std::atan(x)),
    ANYDML_CHECKED(SingleSinh, "sinh of singles", kOdd, std::sinh(x)),
    ANYDML_CHECKED(SingleCosh, "cosh of singles", kEven, std::cosh(x)),
    ANYDML_CHECKED(SingleAsinh, "asinh of singles", kOdd, std::asinh(x)),
    ANYDML_CHECKED(SingleAcosh, "acosh of singles", kNone, std::acosh(x)),
    ANYDML_CHECKED(SingleErf, "erf of singles", kOdd, std::erf(x)),
    ANYDML_CHECKED(SingleSwish, "swish of singles", kNone, x / (1 + std::exp(-x))),
    ANYDML_CHECKED(SingleGelu, "gelu of singles", kNone,
                   x / 2 * std::erfc(x * -(std::numbers::sqrt2_v<T> / 2))),
    ANYDML_CHECKED(SingleAtan2, "atan2 of singles", kOdd, std::atan2(x, y)),
    ANYDML_CHECKED(SingleCubeRoot, "pow 1/3 of singles", kNone, std::pow(x, T{1.0f / 3})),
    ANYDML_CHECKED(SinglePow, "pow -2.5 of singles", kNone, std::pow(x, T{-2.5})),
    ANYDML_CHECKED(DoubleExp, "exp", kNone, std::exp(x)),
    ANYDML_CHECKED(DoubleLog, "log", kNone, std::log(x)),
    ANYDML_CHECKED(DoubleSigmoid, "sigmoid", kNone, 1 / (1 + std::exp(-x))),
    ANYDML_CHECKED(DoubleTanh, "tanh", kOdd, std::tanh(x)),
    ANYDML_CHECKED(DoubleSoftplus, "softplus", kNone,
                   std::isnan(x) ? x : std::fmax(x, T{0}) + std::log1p(std::exp(-std::fabs(x)))),
    ANYDML_CHECKED(DoubleElu, "elu", kNone, x > 0 ? x : std::expm1(x)),
    ANYDML_CHECKED(Swish, "swish", kNone, x / (1 + std::exp(-x))),
    ANYDML_CHECKED(CubeRoot, "pow 1/3", kNone, std::pow(x, T{1.0 / 3})),
    ANYDML_CHECKED(Pow, "pow -2.5", kNone, std::pow(x, T{-2.5})),
    ANYDML_CHECKED(Sin, "sin", kOdd, std::sin(x)),
    ANYDML_CHECKED(Cos, "cos", kEven, std::cos(x)),
    ANYDML_CHECKED(Tan, "tan", kOdd, std::tan(x)),
    ANYDML_CHECKED(Asin, "asin", kOdd, std::asin(x)),
    ANYDML_CHECKED(Acos, "acos", kNone, std::acos(x)),
    ANYDML_CHECKED(Atan, "atan", kOdd, std::atan(x)),
    ANYDML_CHECKED(Atan2, "atan2", kOdd, std::atan2(x, y)),
    ANYDML_CHECKED(Sinh, "sinh", kOdd, std::sinh(x)),
    ANYDML_CHECKED(Cosh, "cosh", kEven, std::cosh(x)),
    ANYDML_CHECKED(Asinh, "asinh", kOdd, std::asinh(x)),
    ANYDML_CHECKED(Acosh, "acosh", kNone, std::acosh(x)),
    ANYDML_CHECKED(Atanh, "atanh", kOdd, std::atanh(x)),
    ANYDML_CHECKED(Erf, "erf", kOdd, std::erf(x)),
    // Half of an odd multiple of the least single lies next to a tie, which is all that the C library sees.
    ANYDML_CHECKED(Gelu, "gelu", kNone, x / 2 * std::erfc(x * -(std::numbers::sqrt2_v<T> / 2))),
};

#undef ANYDML_CHECKED

// Singles, and halves, as the comparison needs them.
struct Single {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr int kLeastExponent = -126;
  static constexpr double kOverflow = 0x1.ffffffp+127;
  static float number(Bits bits) { return std::bit_cast<float>(bits); }
  static Bits rounded(double value) { return std::bit_cast<Bits>(static_cast<float>(value)); }
  static Bits rounded(long double value) { return std::bit_cast<Bits>(static_cast<float>(value)); }
};
struct HalfPrecision {
  using Bits = uint16_t;
  static constexpr int kMantissa = 10;
  static constexpr int kLeastExponent = -14;
  static constexpr double kOverflow = 65520;
  static float number(Bits bits) { return static_cast<float>(std::bit_cast<Half>(bits)); }
  static Bits rounded(long double value) {
    // To the nearest multiple of the unit, by the current rounding mode.
    const long double magnitude = std::fabs(value);
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int unit = std::max(exponent - 1, kLeastExponent) - kMantissa;
    const long double whole = std::ldexp(std::nearbyint(std::ldexp(magnitude, -unit)), unit);
    const float single = std::isfinite(value) && whole > 65504 ? std::numeric_limits<float>::infinity()
                                                               : static_cast<float>(whole);
    return std::bit_cast<Bits>(Half(std::signbit(value) ? -single : single));
  }
};

struct Finding {
  double error = 0;  // the largest, in units in the last place
  double at = 0;
  uint64_t wrong = 0;  // results that are not correctly rounded
  uint64_t numbers = 0;
  uint64_t digest = 0xcbf29ce484222325;

  // FNV-1a, word by word
  void add_to_digest(uint64_t bits) { digest = (digest ^ bits) * 0x100000001b3; }
};

template <class Type>
void compare(Finding& finding, const Function& function, typename Type::Bits result, double x, double y,
             double close, double sign) {
  using Bits = typename Type::Bits;
  // The C library's doubles are far closer than this.
  constexpr double kDoubt = 0x1p-44;
  const Bits bits =
      std::isnan(Type::number(result)) ? Type::rounded(std::numeric_limits<double>::quiet_NaN()) : result;
  ++finding.numbers;
  finding.add_to_digest(bits);
  if (std::isnan(close)) {
    finding.wrong += !std::isnan(Type::number(result));
    return;
  }
  Bits nearest = Type::rounded(sign * (close * (1 - kDoubt)));
  if (nearest != Type::rounded(sign * (close * (1 + kDoubt)))) {
    nearest = Type::rounded(static_cast<long double>(sign) * function.exact(x, y));
  }
  finding.wrong += bits != nearest;
  if (std::fabs(close) >= Type::kOverflow) {
    if (bits != nearest) finding.error = std::numeric_limits<double>::infinity();
    return;
  }
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(close) >> 52 & 0x7ff) - 1023;
  const int unit = std::max(exponent, Type::kLeastExponent) - Type::kMantissa;
  const double per_unit = std::bit_cast<double>(static_cast<uint64_t>(1023 - unit) << 52);
  const double error = std::fabs(Type::number(result) - sign * close) * per_unit;
  if (!(error <= finding.error)) {
    finding.error = error;
    finding.at = sign * x;
  }
}

// The second operand of what has one: bits that look random.
uint32_t other(uint32_t bits) {
  bits *= 0x9e3779b1;
  bits = (bits ^ bits >> 15) * 0x85ebca77;
  return bits ^ bits >> 13;
}

// Checks the numbers first + i * every, i < kBlock, and their negatives.
template <class Type>
void check_block(Finding& finding, const Function& function, uint64_t first, uint64_t every) {
  using Bits = typename Type::Bits;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Compute compute = sizeof(Bits) == 4 ? function.singles : function.halves;
  std::array<std::array<Bits, kBlock>, 2> x;
  std::array<Bits, kBlock> y;
  std::array<std::array<Bits, kBlock>, 2> results;
  for (size_t i = 0; i < kBlock; ++i) {
    x[0][i] = static_cast<Bits>(first + i * every) & static_cast<Bits>(~kSign);
    x[1][i] = x[0][i] | kSign;
    y[i] = static_cast<Bits>(other(x[0][i]));
  }
  const auto* const others = reinterpret_cast<const std::byte*>(y.data());
  for (size_t k = 0; k < 2; ++k) {
    compute(reinterpret_cast<const std::byte*>(x[k].data()), others,
            reinterpret_cast<std::byte*>(results[k].data()));
  }
  for (size_t i = 0; i < kBlock; ++i) {
    const double a = Type::number(x[0][i]);
    const double b = Type::number(y[i]);
    const double close = function.close(a, b);
    compare<Type>(finding, function, results[0][i], a, b, close, 1);
    if (function.parity == Parity::kNone) {
      compare<Type>(finding, function, results[1][i], -a, b, function.close(-a, b), 1);
    } else {
      compare<Type>(finding, function, results[1][i], a, b, close, function.parity == Parity::kOdd ? -1 : 1);
    }
  }
}

// Blocks that a thread takes at a time; a digest goes over the digests of all parts, in their order.
constexpr uint64_t kPart = 256;

template <class Type>
Finding check(const Function& function, uint64_t every) {
  const uint64_t numbers = uint64_t{1} << (8 * sizeof(typename Type::Bits) - 1);
  const uint64_t blocks = std::max<uint64_t>(numbers / every / kBlock, 1);
  const uint64_t parts = (blocks + kPart - 1) / kPart;
  std::vector<Finding> findings(parts);
  std::atomic<uint64_t> next{0};
  // A file or a pipe wants no line that is written again and again.
  const bool tells = isatty(fileno(stderr)) != 0;
  const auto work = [&] {
    for (uint64_t part = next++; part < parts; part = next++) {
      for (uint64_t block = part * kPart; block < std::min(blocks, (part + 1) * kPart); ++block) {
        check_block<Type>(findings[part], function, block * kBlock * every, every);
      }
      if (!tells) continue;
      std::fprintf(stderr, "\r%-20s %3d%%", function.name.data(), static_cast<int>(part * 100 / parts));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (tells) std::fprintf(stderr, "\r%-30s\r", "");
  Finding whole;
  for (const Finding& each : findings) {
    if (each.error > whole.error) {
      whole.error = each.error;
      whole.at = each.at;
    }
    whole.wrong += each.wrong;
    whole.numbers += each.numbers;
    whole.add_to_digest(each.digest);
  }
  return whole;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string_view> names;
  uint64_t every = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--every" && i + 1 < argc) {
      every = std::strtoull(argv[++i], nullptr, 10);
    } else {
      names.emplace_back(argv[i]);
    }
  }
  std::printf("%-20s %8s %16s %14s %12s %-16s %-16s\n", "function", "units", "at", "singles wrong",
              "halves wrong", "singles' digest", "halves' digest");
  for (const Function& function : kFunctions) {
    if (!names.empty() && std::find(names.begin(), names.end(), function.name) == names.end()) continue;
    const Finding singles = check<Single>(function, every);
    const Finding halves = check<HalfPrecision>(function, 1);
    std::printf("%-20s %8.4f %16.8g %14" PRIu64 " %12" PRIu64 " %016" PRIx64 " %016" PRIx64 "\n",
                function.name.data(), singles.error, singles.at, singles.wrong, halves.wrong, singles.digest,
                halves.digest);
    std::fflush(stdout);
  }
}
