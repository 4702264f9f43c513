// Memory of singles that begins at a whole cache line, so that no vector of a panel crosses two.
#pragma once

#include <cstdint>
#include <memory>

#include "dense/tuning.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Singles at a whole line, uninitialised.
class Singles64 {
 public:
  explicit Singles64(int64_t size)
      : size_(size), memory_(new float[static_cast<size_t>(size + kLineSingles)]) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    first_ = memory_.get() + (-address % (kLineSingles * sizeof(float))) / sizeof(float);
  }
  float* data() const { return first_; }
  int64_t size() const { return size_; }

 private:
  int64_t size_;
  std::unique_ptr<float[]> memory_;
  float* first_;
};

ANYDML_ISA_END
