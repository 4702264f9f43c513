// What masks and relative positions add to scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/operands.h"
#include "attention/packing.h"
#include "attention/rows.h"
#include "attention/tuning.h"
#include "attention/weights.h"
#include "attention/workspace.h"
#include "platform/isa.h"
#include "simd/bits_as.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
class Additions {
 public:
  explicit Additions(const Attention& attention) : a_(attention), n_(attention.sizes), packing_(attention) {}

  // What masks and relative positions add to the scores of a block of keys, for a panel of rows, or few.
  void add(const Block& block, const RowPanel& panel, int64_t key, int64_t count, const void* const* inputs,
           Workspace& space) const {
    Added& added = space.added;
    added.adds = Adds::kNothing;
    if (!a_.ends.is_there() && !a_.mask.is_there() && !a_.relative.is_there()) return;
    const auto filter = static_cast<float>(a_.filter);
    const auto is_same = [&](const Place& place) {
      return !place.is_there() || (place.strides[2] == 0 && (place.strides[1] == 0 || n_.shared() == 1));
    };
    added.key_bias.fill(0);
    added.key_mask.fill(0);
    if (a_.ends.is_there()) {
      const int64_t end = load<int32_t>(bytes_of(inputs, a_.ends) + a_.ends.at(block.sequence, 0, 0));
      const int64_t start =
          a_.starts.is_there()
              ? load<int32_t>(bytes_of(inputs, a_.starts) + a_.starts.at(block.sequence, 0, 0))
              : 0;
      for (int64_t j = 0; j < count; ++j) {
        const bool is_masked = key + j >= end || key + j < start;
        added.key_mask[static_cast<size_t>(j)] = is_masked ? filter : 0.0f;
      }
    }
    added.adds = is_same(a_.mask) && is_same(a_.relative) ? Adds::kByKey : Adds::kByScore;
    if (added.adds == Adds::kByScore && !block.is_few)
      return add_by_score(block, panel, key, count, inputs, space);
    const bool by_score = added.adds == Adds::kByScore;
    packing_.for_heads(block, panel, [&](int64_t first, int64_t rows, int64_t head, int64_t query) {
      for (int64_t r = first; r < (by_score ? first + rows : 1); ++r, ++query) {
        float* const bias = by_score ? added.bias.data() + r * kKeys : added.key_bias.data();
        float* const mask = by_score ? added.mask.data() + r * kKeys : added.key_mask.data();
        if (by_score) {
          std::fill_n(bias, kKeys, 0.0f);
          std::copy(added.key_mask.begin(), added.key_mask.end(), mask);
        }
        if (a_.relative.is_there()) {
          const int64_t step = a_.relative.strides[3];
          load_row<T>(
              bytes_of(inputs, a_.relative) + a_.relative.at(block.sequence, head, query) + key * step, step,
              count, bias);
        }
        if (a_.mask.is_there()) {
          const std::byte* const at =
              bytes_of(inputs, a_.mask) + a_.mask.at(block.sequence, head, query) + key * a_.mask.strides[3];
          for (int64_t j = 0; j < count; ++j) {
            mask[j] = load<int32_t>(at + j * a_.mask.strides[3]) == 0 ? filter : 0.0f;
          }
        }
      }
    });
  }

 private:
  void add_by_score(const Block& block, const RowPanel& panel, int64_t key, int64_t count,
                    const void* const* inputs, Workspace& space) const {
    Added& added = space.added;
    const int64_t scores = count * panel.width;
    if (a_.relative.is_there()) {
      // The scores come later.
      auto* const halves = reinterpret_cast<std::byte*>(space.weights.data());
      packing_.template gather<T>(block, panel, a_.relative, key, count, inputs, halves, added.bias.data());
    } else {
      std::fill_n(added.bias.data(), scores, 0.0f);
    }
    float* const mask = added.mask.data();
    if (a_.mask.is_there()) {
      packing_.template gather<float>(block, panel, a_.mask, key, count, inputs, nullptr, mask);
      const auto filter = static_cast<float>(a_.filter);
      for (int64_t i = 0; i < scores; ++i) mask[i] = bits_as<int32_t>(mask[i]) == 0 ? filter : 0.0f;
    } else {
      for (int64_t j = 0; j < count; ++j) {
        std::fill_n(mask + j * panel.width, panel.width, added.key_mask[static_cast<size_t>(j)]);
      }
    }
  }

  Attention a_;
  Sizes n_;
  Packing<T> packing_;
};

}  // namespace
ANYDML_ISA_END
