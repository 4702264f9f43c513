// What is done once for each operator that is compiled, and not at each dispatch.
#pragma once

// A call to it tells GCC that whatever leads there is seldom run: whole factories and constructors of plans
// are compiled for size, which takes less time as well.
#if defined(__GNUC__)
#define ANYDML_COLD [[gnu::cold, gnu::noinline]]
#else
#define ANYDML_COLD
#endif
