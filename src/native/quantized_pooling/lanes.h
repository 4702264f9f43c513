// Vectors of a few lanes, of one logical width on every machine: the compiler's own, or arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(__GNUC__)
// Nothing here is called from where other instruction sets are compiled.
#pragma GCC diagnostic ignored "-Wpsabi"

template <class T, int N>
struct VectorOf {
  typedef T Type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using Lanes = typename VectorOf<T, N>::Type;

template <class To, class From>
To convert(From lanes) {
  return __builtin_convertvector(lanes, To);
}
// The lanes at even places, then those at odd ones.
inline Lanes<uint8_t, 16> sort_even_odd(Lanes<uint8_t, 16> v) {
  return __builtin_shufflevector(v, v, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
}
template <class V>
V smaller(V a, V b) {
  return a < b ? a : b;
}
template <class V>
V larger(V a, V b) {
  return a > b ? a : b;
}
#else
template <class T, int N>
struct Lanes {
  using Element = T;
  T lane[N];

  T& operator[](int i) { return lane[i]; }
  T operator[](int i) const { return lane[i]; }
  template <class Operation>
  static Lanes zip(const Lanes& a, const Lanes& b, Operation operation) {
    Lanes result;
    for (int i = 0; i < N; ++i) result.lane[i] = static_cast<T>(operation(a.lane[i], b.lane[i]));
    return result;
  }
  static Lanes all(T value) {
    Lanes result;
    for (int i = 0; i < N; ++i) result.lane[i] = value;
    return result;
  }
  friend Lanes operator+(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](T x, T y) { return x + y; });
  }
  friend Lanes operator-(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](T x, T y) { return x - y; });
  }
  friend Lanes operator*(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](T x, T y) { return x * y; });
  }
  friend Lanes operator&(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](T x, T y) { return x & y; });
  }
  friend Lanes operator|(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](T x, T y) { return x | y; });
  }
  friend Lanes operator^(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](T x, T y) { return x ^ y; });
  }
  friend Lanes operator<<(const Lanes& a, int shift) {
    return zip(a, a, [shift](T x, T) { return x << shift; });
  }
  friend Lanes operator>>(const Lanes& a, int shift) {
    return zip(a, a, [shift](T x, T) { return x >> shift; });
  }
  Lanes& operator+=(const Lanes& other) { return *this = *this + other; }
  Lanes& operator-=(const Lanes& other) { return *this = *this - other; }
};

template <class To, class T, int N>
To convert(const Lanes<T, N>& lanes) {
  To to;
  for (int i = 0; i < N; ++i) to.lane[i] = static_cast<typename To::Element>(lanes.lane[i]);
  return to;
}
inline Lanes<uint8_t, 16> sort_even_odd(const Lanes<uint8_t, 16>& v) {
  Lanes<uint8_t, 16> sorted;
  for (int i = 0; i < 16; ++i) sorted[i] = v[i < 8 ? 2 * i : 2 * (i - 8) + 1];
  return sorted;
}
template <class T, int N>
Lanes<T, N> smaller(const Lanes<T, N>& a, const Lanes<T, N>& b) {
  return Lanes<T, N>::zip(a, b, [](T x, T y) { return x < y ? x : y; });
}
template <class T, int N>
Lanes<T, N> larger(const Lanes<T, N>& a, const Lanes<T, N>& b) {
  return Lanes<T, N>::zip(a, b, [](T x, T y) { return x > y ? x : y; });
}
#endif

template <class V>
V load_lanes(const void* from) {
  V lanes;
  std::memcpy(&lanes, from, sizeof(V));
  return lanes;
}

template <class V>
void store_lanes(void* to, V lanes) {
  std::memcpy(to, &lanes, sizeof(V));
}

template <class V, class T>
V all_lanes(T value) {
#if defined(__GNUC__)
  return V{} + value;
#else
  return V::all(value);
#endif
}

// The same bits as lanes of another type.
template <class To, class From>
To as(From lanes) {
  static_assert(sizeof(To) == sizeof(From));
  return load_lanes<To>(&lanes);
}

}  // namespace
ANYDML_ISA_END
