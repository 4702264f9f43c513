// Vectors of any number of lanes, in the words of simd/vector.h; arrays where the compiler has no vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "simd/bits_as.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(ANYDML_VECTORS)
template <class To, class From>
To convert(From lanes) {
  return __builtin_convertvector(lanes, To);
}
// Deinterleaves: the lanes at even places, then those at odd ones.
inline Vector<uint8_t, 16> deinterleave(Vector<uint8_t, 16> v) {
  return __builtin_shufflevector(v, v, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
}
template <class V>
V lane_min(V a, V b) {
  return a < b ? a : b;
}
template <class V>
V lane_max(V a, V b) {
  return a > b ? a : b;
}
#else
template <class T, int N>
struct Vector {
  using Element = T;
  T lane[N];

  T& operator[](int i) { return lane[i]; }
  T operator[](int i) const { return lane[i]; }
  template <class Operation>
  static Vector zip(const Vector& a, const Vector& b, Operation operation) {
    Vector result;
    for (int i = 0; i < N; ++i) result.lane[i] = static_cast<T>(operation(a.lane[i], b.lane[i]));
    return result;
  }
  static Vector all(T value) {
    Vector result;
    for (int i = 0; i < N; ++i) result.lane[i] = value;
    return result;
  }
  friend Vector operator+(const Vector& a, const Vector& b) {
    return zip(a, b, [](T x, T y) { return x + y; });
  }
  friend Vector operator-(const Vector& a, const Vector& b) {
    return zip(a, b, [](T x, T y) { return x - y; });
  }
  friend Vector operator*(const Vector& a, const Vector& b) {
    return zip(a, b, [](T x, T y) { return x * y; });
  }
  friend Vector operator&(const Vector& a, const Vector& b) {
    return zip(a, b, [](T x, T y) { return x & y; });
  }
  friend Vector operator|(const Vector& a, const Vector& b) {
    return zip(a, b, [](T x, T y) { return x | y; });
  }
  friend Vector operator^(const Vector& a, const Vector& b) {
    return zip(a, b, [](T x, T y) { return x ^ y; });
  }
  friend Vector operator<<(const Vector& a, int shift) {
    return zip(a, a, [shift](T x, T) { return x << shift; });
  }
  friend Vector operator>>(const Vector& a, int shift) {
    return zip(a, a, [shift](T x, T) { return x >> shift; });
  }
  Vector& operator+=(const Vector& other) { return *this = *this + other; }
  Vector& operator-=(const Vector& other) { return *this = *this - other; }
};

template <class To, class T, int N>
To convert(const Vector<T, N>& lanes) {
  To to;
  for (int i = 0; i < N; ++i) to.lane[i] = static_cast<typename To::Element>(lanes.lane[i]);
  return to;
}
inline Vector<uint8_t, 16> deinterleave(const Vector<uint8_t, 16>& v) {
  Vector<uint8_t, 16> sorted;
  for (int i = 0; i < 16; ++i) sorted[i] = v[i < 8 ? 2 * i : 2 * (i - 8) + 1];
  return sorted;
}
template <class T, int N>
Vector<T, N> lane_min(const Vector<T, N>& a, const Vector<T, N>& b) {
  return Vector<T, N>::zip(a, b, [](T x, T y) { return x < y ? x : y; });
}
template <class T, int N>
Vector<T, N> lane_max(const Vector<T, N>& a, const Vector<T, N>& b) {
  return Vector<T, N>::zip(a, b, [](T x, T y) { return x > y ? x : y; });
}
#endif

// As load_vector() and store_vector() for bytes.
template <class V, class T>
V load_vector(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <class T, class V>
void store_vector(T* to, V v) {
  std::memcpy(to, &v, sizeof(V));
}

// As broadcast(), to a vector of any width.
template <class V, class T>
V broadcast_to(T value) {
#if defined(ANYDML_VECTORS)
  return V{} + value;
#else
  return V::all(value);
#endif
}

}  // namespace
ANYDML_ISA_END
