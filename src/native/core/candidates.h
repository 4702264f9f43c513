// Kernel selection by an ordered list of candidates: the first that does not decline is chosen.
//
// Every candidate that declines says why, and explain() shows it, so that a slow kernel is never a mystery.
#pragma once

#include <cstddef>
#include <string>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

template <class Algorithm, class Facts>
struct Candidate {
  Algorithm algorithm;
  const char* name;
  std::string (*decline)(const Facts& facts);  // why it declines; empty where it does not
};

template <class Algorithm>
struct Choice {
  Algorithm algorithm;
  std::string name;      // of the algorithm
  std::string declined;  // "; declined: NAME (why), ...", or empty
};

// The last candidate must not decline.
template <class Algorithm, class Facts, size_t kCount>
Choice<Algorithm> choose(const Candidate<Algorithm, Facts> (&candidates)[kCount], const Facts& facts) {
  std::string declined;
  for (size_t i = 0; i + 1 < kCount; ++i) {
    const auto& [algorithm, name, decline] = candidates[i];
    const std::string why = decline(facts);
    if (why.empty()) return {algorithm, name, declined};
    declined += (declined.empty() ? "; declined: " : ", ") + std::string(name) + " (" + why + ")";
  }
  return {candidates[kCount - 1].algorithm, candidates[kCount - 1].name, declined};
}

ANYDML_ISA_END
