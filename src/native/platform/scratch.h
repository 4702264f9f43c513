// Memory for the time of a call, which a thread keeps for its next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace anydml {

// So many bytes from a whole line of the caches on, uninitialised. A block that is given back to malloc is
// given back to the system, where it is at the heap's end or large: its pages are then mapped, and made 0, at
// each call anew, which took a quarter of the time of a small convolution's copies and kernel.
class Scratch {
 public:
  struct Block {
    std::byte* first = nullptr;
    int64_t size = 0;
  };

  explicit Scratch(int64_t bytes);
  Scratch(Scratch&& from) noexcept : block_(std::exchange(from.block_, {})) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  // Null if it has none.
  std::byte* bytes() const { return block_.first; }
  float* floats() const { return reinterpret_cast<float*>(block_.first); }

 private:
  Block block_;
};

}  // namespace anydml
