// The kernels of reductions, compiled apart from the plans, as they take most of the time.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/layout.h"
#include "platform/isa.h"
#include "reduce/accumulate.h"
#include "reduce/finish.h"
#include "reduce/indices.h"
#include "reduce/kernel.h"
#include "reduce/operations.h"
#include "reduce/short_lines.h"
#include "reduce/tuning.h"

ANYDML_ISA_BEGIN
namespace {

using FinishFunction = void (*)(const ReduceParameters&, const Strip&, int64_t, std::byte*, int64_t);

using PlanesFunction = void (*)(const ReduceParameters&, const Strip&, const Planes&);

// Rows that fit vectors of 16 bytes are not read in longer ones.
template <class Op, PlanesFunction kWide, PlanesFunction kNarrow>
void by_width(const ReduceParameters& parameters, const Strip& strip, const Planes& planes) {
  constexpr int64_t kLanes = sizeof(typename Op::Narrow::V) / sizeof(typename Op::Number);
  (planes.columns <= kLanes ? kNarrow : kWide)(parameters, strip, planes);
}

template <class Op>
constexpr PlanesFunction planes_of() {
  if constexpr (Op::kSizes[2] != 0) {
    return nullptr;
  } else if constexpr (requires { typename Op::Narrow; }) {
    return by_width<Op, reduce_planes<Op>, reduce_planes<typename Op::Narrow>>;
  } else {
    return reduce_planes<Op>;
  }
}

// Of sums, and of the largest.
template <class Op>
constexpr auto accumulate_lines_of_kernel() -> decltype(ReduceKernel::accumulate_lines) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (requires { requires Op::kHasShortLines; }) return accumulate_lines<Op>;
#endif
  return nullptr;
}

template <class Op>
constexpr ReduceKernel kernel_of(FinishFunction finish) {
  return {.element_size = sizeof(typename Op::Element),
          .sizes = {Op::kSizes[0], Op::kSizes[1], Op::kSizes[2]},
          .start = start<Op>,
          .fill = fill<Op>,
          .accumulate = accumulate<Op>,
          .accumulate_lines = accumulate_lines_of_kernel<Op>(),
          .rows_at_once = Op::kSettledAfter == 0 ? tuning::kRowsAtOnce : tuning::kRowsOfProducts,
          .reduce_planes = planes_of<Op>(),
          .reduce_lines = reduce_lines<Op>,
          .combine = combine<Op>,
          .finish = finish};
}

template <class T, class A, Term kTerm>
const ReduceKernel* sum_of() {
  using Op = Sum<T, A, kTerm>;
  if constexpr (std::is_floating_point_v<A>) {
    static constexpr ReduceKernel kKernel = kernel_of<Op>(finish_sum<Op>);
    return &kKernel;
  } else {
    static constexpr ReduceKernel kKernel = kernel_of<Op>(finish_values<Op>);
    return &kKernel;
  }
}

template <class T, class A>
const ReduceKernel* sum_of(Term term) {
  switch (term) {
    case Term::kMagnitude:
      return sum_of<T, A, Term::kMagnitude>();
    case Term::kSquare:
      return sum_of<T, A, Term::kSquare>();
    default:
      return sum_of<T, A, Term::kValue>();
  }
}

template <class Op>
const ReduceKernel* largest_of() {
  static constexpr ReduceKernel kKernel = [] {
    ReduceKernel kernel = kernel_of<Op>(finish_values<Op>);
    kernel.is_equal = is_equal<Op>;
    kernel.find = find<Op>;
    if constexpr (Op::kHasNan) {
      kernel.next_least = next_least<Op>;
      kernel.set_nan = set_nan<Op>;
    }
    return kernel;
  }();
  return &kKernel;
}

// Of lines the largest are those of another kernel.
template <class Op, class OfLines = Op>
const ReduceKernel* largest_index_of() {
  using A = typename Op::Number;
  constexpr int64_t kMost = sizeof(A) == 1 ? 1 << 7 : sizeof(A) == 2 ? 1 << 15 : int64_t{1} << 31;
  static constexpr ReduceKernel kKernel = {
      .element_size = sizeof(typename Op::Element),
      .sizes = {sizeof(A), sizeof(int64_t), 0},
      .start = start_indices<Op>,
      .fill = fill<Op>,
      .accumulate = accumulate_indices<Op>,
      .rows_at_once = sizeof(A) == 1 ? 2 * tuning::kRowsAtOnce : tuning::kRowsAtOnce,
      .reduce_planes = by_width<Op, index_planes<Op>, index_planes<typename Op::Narrow>>,
      .combine = combine_indices<A>,
      .finish = finish_indices,
      .next_least = Op::kHasNan ? next_least<Op> : nullptr,
      .is_equal = is_equal<Op>,
      .find = find<Op>,
      .find_in_lines = find_in_lines<OfLines>,
      .most_rows = kMost,
      .join_rows = join_rows<A>,
      .join_phases = join_phases<A>,
      .finish_numbers = finish_numbers<A>,
  };
  return &kKernel;
}

// Of signed integers and FLOAT32.
#define ANYDML_OF_ORDERED(make, type)         \
  case DataType::kFloat32:                    \
    return make<Largest<float, float>>();     \
  case DataType::kInt8:                       \
  case DataType::kUint8:                      \
    return make<Largest<int8_t, int8_t>>();   \
  case DataType::kInt16:                      \
  case DataType::kUint16:                     \
    return make<Largest<int16_t, int16_t>>(); \
  case DataType::kInt32:                      \
  case DataType::kUint32:                     \
    return make<Largest<int32_t, int32_t>>(); \
  case DataType::kInt64:                      \
  case DataType::kUint64:                     \
    return make<Largest<int64_t, int64_t>>(); \
  default:                                    \
    return nullptr;

}  // namespace

const ReduceKernel* sum_kernel(DataType type, Term term) {
  // Unsigned integers are their magnitudes.
  const bool is_unsigned = type == DataType::kUint32 || type == DataType::kUint64;
  const Term taken = is_unsigned && term == Term::kMagnitude ? Term::kValue : term;
  switch (type) {
    case DataType::kFloat32:
      return sum_of<float, double>(taken);
    case DataType::kFloat16:
      return sum_of<Half, float>(taken);
    case DataType::kInt32:
    case DataType::kUint32:
      return sum_of<uint32_t, uint32_t>(taken);
    case DataType::kInt64:
    case DataType::kUint64:
      return sum_of<uint64_t, uint64_t>(taken);
    default:
      return nullptr;
  }
}

const ReduceKernel* product_kernel(DataType type) {
  static constexpr ReduceKernel kSingles =
      kernel_of<FloatProduct<float>>(finish_product<FloatProduct<float>>);
  static constexpr ReduceKernel kHalves = kernel_of<FloatProduct<Half>>(finish_product<FloatProduct<Half>>);
  using Product32 = IntegerProduct<uint32_t>;
  using Product64 = IntegerProduct<uint64_t>;
  static constexpr ReduceKernel kIntegers32 = kernel_of<Product32>(finish_values<Product32>);
  static constexpr ReduceKernel kIntegers64 = kernel_of<Product64>(finish_values<Product64>);
  switch (type) {
    case DataType::kFloat32:
      return &kSingles;
    case DataType::kFloat16:
      return &kHalves;
    case DataType::kInt32:
    case DataType::kUint32:
      return &kIntegers32;
    case DataType::kInt64:
    case DataType::kUint64:
      return &kIntegers64;
    default:
      return nullptr;
  }
}

const ReduceKernel* exponential_sum_kernel(DataType type) {
  using Singles = ExponentialSum<float>;
  using Halves = ExponentialSum<Half>;
  static constexpr ReduceKernel kSingles = kernel_of<Singles>(finish_exponentials<Singles>);
  static constexpr ReduceKernel kHalves = kernel_of<Halves>(finish_exponentials<Halves>);
  return type == DataType::kFloat32 ? &kSingles : type == DataType::kFloat16 ? &kHalves : nullptr;
}

const ReduceKernel* largest_kernel(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return largest_of<LargestHalf<false>>();
      ANYDML_OF_ORDERED(largest_of, type)
  }
}

const ReduceKernel* largest_index_kernel(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return largest_index_of<LargestHalf<true>, LargestHalf<false>>();
      ANYDML_OF_ORDERED(largest_index_of, type)
  }
}

ANYDML_ISA_END
