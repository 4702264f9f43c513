// A cache of freed blocks for each thread: a few, and bounded, so that a thread that rests holds little.
#include "platform/scratch.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace anydml {
namespace {

constexpr auto kLine = std::align_val_t{64};
// What a thread keeps: a call has one or two blocks at a time, and calls others that have one.
constexpr size_t kMostBlocks = 3;
constexpr int64_t kMostBytes = 4 << 20;

void free_block(Scratch::Block& block) {
  ::operator delete(block.first, kLine);
  block = {};
}

class KeptBlocks {
 public:
  KeptBlocks() = default;
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;
  ~KeptBlocks() {
    for (Scratch::Block& block : blocks_) free_block(block);
  }

  // The smallest one that is large enough; none has the size 0.
  Scratch::Block take(int64_t bytes) {
    Scratch::Block* found = nullptr;
    for (Scratch::Block& block : blocks_) {
      if (block.size >= bytes && (found == nullptr || block.size < found->size)) found = &block;
    }
    return found == nullptr ? Scratch::Block{} : std::exchange(*found, {});
  }

  // Keeps it in the place of smaller ones, as far as there is no room beside them.
  void keep(Scratch::Block block) {
    int64_t all = block.size;
    for (const Scratch::Block& each : blocks_) all += each.size;
    while (block.size <= kMostBytes) {
      const auto empty =
          std::find_if(blocks_.begin(), blocks_.end(), [](const auto& each) { return each.size == 0; });
      if (empty != blocks_.end() && all <= kMostBytes) {
        *empty = block;
        return;
      }
      // Of those that there are.
      const auto smallest =
          std::min_element(blocks_.begin(), blocks_.end(), [](const auto& x, const auto& y) {
            return std::pair(x.size == 0, x.size) < std::pair(y.size == 0, y.size);
          });
      if (smallest->size >= block.size) break;
      all -= smallest->size;
      free_block(*smallest);
    }
    free_block(block);
  }

 private:
  std::array<Scratch::Block, kMostBlocks> blocks_;
};

thread_local KeptBlocks kept;

}  // namespace

Scratch::Scratch(int64_t bytes) {
  if (bytes == 0) return;
  block_ = kept.take(bytes);
  if (block_.size == 0)
    block_ = {static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kLine)), bytes};
}

Scratch::~Scratch() {
  if (block_.size != 0) kept.keep(block_);
}

}  // namespace anydml
