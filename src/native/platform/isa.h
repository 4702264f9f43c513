// One source, several instruction sets: a family's file is compiled once for each, with ANYDML_ISA its name.
//
// Everything that other libraries define is included before ANYDML_ISA_BEGIN, and so compiled for the
// baseline alone: the linker keeps one copy of an inline function, and it must be one that every machine can
// run.
//
// Vectors have one logical width, kVectorBytes, on every instruction set, so that the order of operations is
// the same, and so are the bits; but for those whose lanes know nothing of each other.
#pragma once

#if defined(__GNUC__)
#define ANYDML_PRAGMA(text) _Pragma(#text)
#if defined(ANYDML_ISA_AVX512)
#define ANYDML_ISA avx512
#define ANYDML_ISA_PUSH           \
  ANYDML_PRAGMA(GCC push_options) \
  ANYDML_PRAGMA(GCC target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))
#define ANYDML_ISA_POP ANYDML_PRAGMA(GCC pop_options)
#elif defined(ANYDML_ISA_AVX2)
#define ANYDML_ISA avx2
#define ANYDML_ISA_PUSH ANYDML_PRAGMA(GCC push_options) ANYDML_PRAGMA(GCC target("avx2,fma,f16c,bmi2"))
#define ANYDML_ISA_POP ANYDML_PRAGMA(GCC pop_options)
#endif
#endif

#ifndef ANYDML_ISA
#define ANYDML_ISA baseline
#define ANYDML_ISA_PUSH
#define ANYDML_ISA_POP
#endif

// For what an inner loop is made of: called for many types, a compiler would rather keep one copy of it.
#if defined(__GNUC__)
#define ANYDML_INLINE [[gnu::always_inline]] inline
#else
#define ANYDML_INLINE inline
#endif

// For an inner loop itself: called from several places, a compiler would rather make as many copies of it.
// What is loaded before that loop and stored after it is told to unroll: compilers unroll by themselves what
// is within another loop alone, and an array whose index is not known stays in memory.
#if defined(__clang__)
#define ANYDML_NOINLINE [[gnu::noinline]]
#elif defined(__GNUC__)
#define ANYDML_NOINLINE [[gnu::noinline, gnu::noclone]]
#else
#define ANYDML_NOINLINE
#endif

#define ANYDML_ISA_BEGIN ANYDML_ISA_PUSH namespace anydml::ANYDML_ISA {
#define ANYDML_ISA_END \
  }                    \
  ANYDML_ISA_POP
