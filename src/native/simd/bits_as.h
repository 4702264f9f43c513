// A bit cast that is compiled for the instruction set of its caller, as std::bit_cast is not.
#pragma once

#include <cstring>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

template <class To, class From>
ANYDML_INLINE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

ANYDML_ISA_END
