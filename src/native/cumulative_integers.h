// Scans of integers that lie next to each other in memory, in either direction. No order of combining changes
// them, so that neighbours in a vector are combined at once, and each element is read once. With p the
// tallies of a vector's elements among themselves and t the tally before it,
//   p'(i) = p(i - d) o p(i)  for d = 1, 2, ...,   y(i) = t o p(i),   t' = t o p(last).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cumulative_stage.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "memory.h"
#include "stream.h"
#include "vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T>
struct IntegerTotals {
  T all;
};

template <class T, class Operation, bool kExclusive, bool kDown>
class IntegerScan {
 public:
  using State = T;
  using Totals = IntegerTotals<T>;
  static T identity() { return static_cast<T>(Operation::kIdentity); }

  // `in` and `out` are where the elements lie lowest, and may be the same. Meanwhile memory brings what lies
  // at `coming`, and the stage's lines leave.
  ANYDML_APART static void scan(const std::byte* in, std::byte* out, int64_t size, T& total,
                                const std::byte* coming, Stage& stage) {
    T tally = total;
    int64_t i = 0;
    if constexpr (!kMultipliesSingly) {
      V before = broadcast(tally);
      for (; i + kPerLine <= size; i += kPerLine) {
        const int64_t at = element(size, i, kPerLine);
        prefetch_line(coming + at);
        for (int64_t k = 0; k < kPerLine; k += kLanes) {
          const int64_t offset = at + (kDown ? kPerLine - kLanes - k : k) * kSize;
          const V y = scan_vector(load_vector<V>(in + offset), before);
          store_vector(out + offset, y);
        }
        stage.send_line();
      }
      tally = before[0];
    } else {
      for (; i + kPerLine <= size; i += kPerLine) {
        prefetch_line(coming + element(size, i, kPerLine));
        for (int64_t k = i; k < i + kPerLine; k += 2) scan_pair(in, out, element(size, k), tally);
        stage.send_line();
      }
    }
    for (; i < size; ++i) {
      advance_one<T, Operation, kExclusive>(tally, in + element(size, i), out + element(size, i));
    }
    total = tally;
  }

  ANYDML_APART static void reduce(const std::byte* in, int64_t size, Totals& total) {
    V totals[2] = {identities(), identities()};
    int64_t i = 0;
    for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
      for (int64_t k = 0; k < 2; ++k) {
        totals[k] = Operation::combine(totals[k], load_vector<V>(in + (i + k * kLanes) * kSize));
      }
    }
    totals[0] = Operation::combine(totals[0], totals[1]);
    T all = identity();
    for (int k = 0; k < kLanes; ++k) all = Operation::combine(all, totals[0][k]);
    for (; i < size; ++i) all = Operation::combine(all, load<T>(in + i * kSize));
    total = {all};
  }

 private:
  using V = Vector<T>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int kLanes = kVectorBytes / kSize;
  static constexpr int64_t kPerLine = kLine / kSize;
  // Most processors multiply 64 bits at a time, and not in vectors.
  static constexpr bool kMultipliesSingly = kSize == 8 && std::is_same_v<Operation, Product>;

  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }

  // The second waits for the tally before the pair alone.
  static void scan_pair(const std::byte* in, std::byte* out, int64_t at, T& tally) {
    constexpr int64_t kStep = kDown ? -kSize : kSize;
    const T first = load<T>(in + at);
    T both = Operation::combine(first, load<T>(in + at + kStep));
    T next = Operation::combine(tally, first);
    // Compilers see no further than here, and so keep this order, and do not multiply in vectors.
    asm("" : "+r"(both));
    if constexpr (kDown) asm("" : "+r"(next));
    const T last = Operation::combine(tally, both);
    store(out + at, kExclusive ? tally : next);
    store(out + at + kStep, kExclusive ? next : last);
    tally = last;
  }

  ANYDML_INLINE static V scan_vector(V x, V& before) {
    constexpr auto kAll = std::make_integer_sequence<int, kLanes>{};
    x = Operation::combine(shifted<1>(x, kAll), x);
    if constexpr (kLanes > 4) x = Operation::combine(shifted<2>(x, kAll), x);
    x = Operation::combine(carried_over(x, kAll), x);
    const V y = Operation::combine(before, x);
    const V written = kExclusive ? moved_on(before, y, kAll) : y;
    before = Operation::combine(before, last_of(x, kAll));
    return written;
  }

  // The place in a vector of the i-th traversed of its elements; from kLanes on, of another vector's.
  static constexpr int place(int i) { return kDown && i < kLanes ? kLanes - 1 - i : i; }

  // Within halves, as processors shift no further at once.
  template <int kDistance, int... kPlace>
  ANYDML_INLINE static V shifted(V x, std::integer_sequence<int, kPlace...>) {
    constexpr auto from = [](int i) { return i % (kLanes / 2) < kDistance ? kLanes : place(i - kDistance); };
    return __builtin_shufflevector(x, identities(), from(place(kPlace))...);
  }
  // The first half's tally, to each of the second.
  template <int... kPlace>
  ANYDML_INLINE static V carried_over(V x, std::integer_sequence<int, kPlace...>) {
    constexpr auto from = [](int i) { return i < kLanes / 2 ? kLanes : place(kLanes / 2 - 1); };
    return __builtin_shufflevector(x, identities(), from(place(kPlace))...);
  }
  template <int... kPlace>
  ANYDML_INLINE static V last_of(V x, std::integer_sequence<int, kPlace...>) {
    constexpr auto last = [](int) { return place(kLanes - 1); };
    return __builtin_shufflevector(x, x, last(kPlace)...);
  }
  template <int... kPlace>
  ANYDML_INLINE static V moved_on(V before, V y, std::integer_sequence<int, kPlace...>) {
    constexpr auto from = [](int i) { return i == 0 ? kLanes : place(i - 1); };
    return __builtin_shufflevector(y, before, from(place(kPlace))...);
  }

  static V identities() { return broadcast(identity()); }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
