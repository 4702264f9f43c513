// Function multiversioning by one source for several instruction sets: a family's files are compiled once for
// each, with ANYDML_ISA its name, which is a namespace too.
//
// Everything that other libraries define is included before ANYDML_ISA_BEGIN, and so compiled for the
// baseline alone: the linker keeps one copy of an inline function, and it must be one that every machine can
// run.
//
// Vectors have one logical width, kVectorBytes, on every instruction set, so that the order of operations is
// the same, and so are the bits. Vectors whose lanes do not depend on each other may have any width.
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

// For the body of an inner loop: called for many types, a compiler would rather keep one copy of it.
#if defined(__GNUC__)
#define ANYDML_INLINE [[gnu::always_inline]] inline
#else
#define ANYDML_INLINE inline
#endif

// For an inner loop itself: called from several places, a compiler would rather make as many copies of it.
// Loops over registers that are loaded before an inner loop and stored after it carry a pragma to unroll
// them: compilers unroll by themselves only loops within another loop, and an array whose index is not a
// constant stays in memory.
#if defined(__clang__)
#define ANYDML_NOINLINE [[gnu::noinline]]
#elif defined(__GNUC__)
#define ANYDML_NOINLINE [[gnu::noinline, gnu::noclone]]
#else
#define ANYDML_NOINLINE
#endif

// Like ANYDML_INLINE, but a function that is called on x86's baseline, which is to be small: see kCompact
// below.
#if defined(__x86_64__) && !defined(ANYDML_ISA_AVX2) && !defined(ANYDML_ISA_AVX512)
#define ANYDML_INLINE_UNLESS_COMPACT ANYDML_NOINLINE inline
#else
#define ANYDML_INLINE_UNLESS_COMPACT ANYDML_INLINE
#endif

// Unrolls such a loop over registers, but not on x86's baseline, which is to be small: see kCompact below.
// Its accumulators then are in memory.
#if !defined(__GNUC__)
#define ANYDML_UNROLL(count)
#elif defined(__x86_64__) && !defined(ANYDML_ISA_AVX2) && !defined(ANYDML_ISA_AVX512)
#define ANYDML_UNROLL(count) ANYDML_PRAGMA(GCC unroll 1)
#else
#define ANYDML_UNROLL(count) ANYDML_PRAGMA(GCC unroll count)
#endif

#define ANYDML_ISA_BEGIN ANYDML_ISA_PUSH namespace anydml::ANYDML_ISA {
#define ANYDML_ISA_END \
  }                    \
  ANYDML_ISA_POP

ANYDML_ISA_BEGIN

// Whether few kernels serve for many, so that they compile in a fraction of the time. On x86 the baseline is
// there for machines without AVX2, on which results have to be right and may take longer. On ARM it is NEON,
// and has all kernels.
#if defined(__x86_64__) && !defined(ANYDML_ISA_AVX2) && !defined(ANYDML_ISA_AVX512)
inline constexpr bool kCompact = true;
#else
inline constexpr bool kCompact = false;
#endif

ANYDML_ISA_END
