// Bytes of 0 or 1 as the bits of a word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kFlags = 64;  // of a word

// The first one is the lowest bit. A product moves the lowest bits of 8 bytes into the highest byte.
inline uint64_t word_of(const uint8_t* flags) {
  uint64_t word = 0;
  for (int i = 0; i < 8; ++i) {
    const auto eight = load<uint64_t>(reinterpret_cast<const std::byte*>(flags + 8 * i));
    word |= eight * 0x0102040810204080 >> 56 << 8 * i;
  }
  return word;
}

ANYDML_ISA_END
