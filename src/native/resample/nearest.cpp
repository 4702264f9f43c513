// Interpolation by the nearest element: a gather of units, which are what lies together in both tensors, by a
// list of elements for each dimension. Short units are shuffled, 16 bytes of the output at a time, out of 16
// bytes of the input.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__GNUC__)
#include <arm_neon.h>
#endif

ANYDML_ISA_BEGIN
namespace {

constexpr size_t kMostTables = 8;
constexpr int64_t kShuffled = 16;           // bytes
constexpr int64_t kLongestUnit = 64 << 10;  // of which larger ones are parts
constexpr int64_t kPartBytes = 16 << 10;    // of a row of the output

#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
constexpr bool kShuffles = true;
ANYDML_INLINE void shuffle(const std::byte* from, const uint8_t* places, std::byte* to) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m128i order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(places));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(bytes, order));
}
#elif defined(__aarch64__) && defined(__GNUC__)
constexpr bool kShuffles = true;
ANYDML_INLINE void shuffle(const std::byte* from, const uint8_t* places, std::byte* to) {
  const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(from));
  vst1q_u8(reinterpret_cast<uint8_t*>(to), vqtbl1q_u8(bytes, vld1q_u8(places)));
}
#else
constexpr bool kShuffles = false;
ANYDML_INLINE void shuffle(const std::byte* from, const uint8_t* places, std::byte* to) {
  for (int64_t i = 0; i < kShuffled; ++i) to[i] = from[places[i]];
}
#endif

using Places = std::array<uint8_t, kShuffled>;

// 16 bytes of a row of the output: where they begin there, and in the input.
struct Block {
  int64_t to;
  int64_t from;
  int64_t places;
};

// A row of packed units as blocks. The last one overlaps the one before it where the row is not a multiple of
// them. Empty where a block is made of more than 16 bytes.
struct Blocks {
  std::vector<Block> blocks;
  std::vector<Places> places;
};

Blocks blocks_of_row(const std::vector<int64_t>& elements, int64_t unit, int64_t in_bytes) {
  Blocks row;
  const int64_t out_bytes = static_cast<int64_t>(elements.size()) * unit;
  if (!kShuffles || unit >= kShuffled || in_bytes < kShuffled || out_bytes < kShuffled) return row;
  const auto source = [&](int64_t j) { return elements[static_cast<size_t>(j / unit)] * unit + j % unit; };
  std::unordered_map<std::string, int64_t> known;
  for (int64_t j = 0; j < out_bytes; j += kShuffled) {
    const int64_t to = std::min(j, out_bytes - kShuffled);
    int64_t first = INT64_MAX;
    int64_t last = 0;
    for (int64_t i = 0; i < kShuffled; ++i) {
      first = std::min(first, source(to + i));
      last = std::max(last, source(to + i));
    }
    first = std::min(first, in_bytes - kShuffled);
    if (last - first >= kShuffled) return {};
    Places places;
    for (int64_t i = 0; i < kShuffled; ++i) {
      places[static_cast<size_t>(i)] = static_cast<uint8_t>(source(to + i) - first);
    }
    const auto [found, is_new] =
        known.emplace(std::string(places.begin(), places.end()), static_cast<int64_t>(row.places.size()));
    if (is_new) row.places.push_back(places);
    row.blocks.push_back({to, first, found->second});
  }
  return row;
}

template <int64_t kUnit>
void copy_units(const int64_t* offsets, int64_t count, int64_t, const std::byte* in, std::byte* out,
                int64_t step) {
  for (int64_t i = 0; i < count; ++i) copy_known<kUnit>(out + i * step, in + offsets[i]);
}

void copy_long_units(const int64_t* offsets, int64_t count, int64_t unit, const std::byte* in, std::byte* out,
                     int64_t step) {
  for (int64_t i = 0; i < count; ++i) copy_short(out + i * step, in + offsets[i], unit);
}

using CopyUnits = void (*)(const int64_t* offsets, int64_t count, int64_t unit, const std::byte* in,
                           std::byte* out, int64_t step);

// Of short units a copy of each length.
CopyUnits choose_copy(int64_t unit) {
  static constexpr auto kShort = []<int64_t... kLess>(std::integer_sequence<int64_t, kLess...>) {
    return std::array<CopyUnits, sizeof...(kLess)>{copy_units<kLess + 1>...};
  }(std::make_integer_sequence<int64_t, kShuffled - 1>{});
  return unit < kShuffled ? kShort[static_cast<size_t>(unit - 1)] : copy_long_units;
}

// Another dimension with a list of elements: its loop, and where each element is in the input.
struct Listed {
  size_t loop;
  std::vector<int64_t> offsets;
};

struct Rows {
  std::vector<Loop> loops;
  std::vector<Listed> listed;
  std::vector<int64_t> offsets;  // of the units of a row
  int64_t step;                  // from one unit of the output to the next
  int64_t unit;
  size_t unit_loop;  // over parts of long units
  int64_t part;
};

class NearestPlan final : public Plan {
 public:
  NearestPlan(Rows rows, Blocks blocks, int64_t bytes, std::string description)
      : Plan(std::move(description)), rows_(std::move(rows)), blocks_(std::move(blocks)), bytes_(bytes) {
    const auto units = static_cast<int64_t>(rows_.offsets.size());
    const auto blocks_of_row = static_cast<int64_t>(blocks_.blocks.size());
    steps_ = blocks_of_row == 0 ? units : blocks_of_row;
    const int64_t step_bytes = blocks_of_row == 0 ? rows_.part : kShuffled;
    // The last two blocks overlap, and are of one part: no other thread writes what this one does.
    per_row_ = std::max<int64_t>(1, steps_ / std::max<int64_t>(2, kPartBytes / step_bytes));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(rows_.loops) * per_row_;
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      LoopCursor cursor(rows_.loops, number / per_row_);
      for (int64_t of_row = number % per_row_; number < end; ++number) {
        const std::byte* from = in + cursor.in();
        for (const Listed& each : rows_.listed) {
          from += each.offsets[static_cast<size_t>(cursor.index(each.loop))];
        }
        const int64_t unit = std::min(rows_.part, rows_.unit - cursor.index(rows_.unit_loop) * rows_.part);
        copy(share_begin(of_row, per_row_, steps_), share_begin(of_row + 1, per_row_, steps_), unit, from,
             out + cursor.out());
        if (++of_row == per_row_) {
          of_row = 0;
          cursor.advance();
        }
      }
    });
  }

 private:
  void copy(int64_t begin, int64_t end, int64_t unit, const std::byte* in, std::byte* out) const {
    if (blocks_.blocks.empty()) {
      return choose_copy(unit)(rows_.offsets.data() + begin, end - begin, unit, in, out + begin * rows_.step,
                               rows_.step);
    }
    const Block* const blocks = blocks_.blocks.data();
    const Places* const places = blocks_.places.data();
    for (int64_t b = begin; b < end; ++b) {
      shuffle(in + blocks[b].from, places[blocks[b].places].data(), out + blocks[b].to);
    }
  }

  Rows rows_;
  Blocks blocks_;
  int64_t steps_;
  int64_t per_row_;
  int64_t bytes_;
};

}  // namespace

std::unique_ptr<Plan> make_resample_nearest(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  const int64_t item = size_of(out.type);
  if (in.type != out.type || item == 0) {
    reason = "no copies of " + std::string(name_of(in.type));
    return nullptr;
  }
  const size_t rank = out.sizes.size();
  require(in.sizes.size() == rank, "tensors of as many dimensions");
  const std::vector<int64_t>& axes = request.attributes.integers("Axes");
  const std::vector<int64_t>& first = request.attributes.integers("First");
  require(!axes.empty() && axes.size() <= kMostTables, "dimensions with lists");

  struct Dimension {
    Loop loop;
    std::vector<int64_t> elements;  // empty where they are all of the input's, in their order
  };
  std::vector<Loop> plain;
  std::vector<Dimension> dimensions;
  int64_t elements = 1;
  auto begin = first.begin();
  for (size_t d = 0; d < rank; ++d) {
    elements *= out.sizes[d];
    const Loop loop{out.sizes[d], in.strides[d], out.strides[d]};
    if (std::ranges::count(axes, static_cast<int64_t>(d)) == 0) {
      require(in.sizes[d] == out.sizes[d], "sizes of dimensions without lists");
      plain.push_back(loop);
      continue;
    }
    require(first.end() - begin >= out.sizes[d], "the lists' sizes");
    dimensions.push_back({loop, {begin, begin + out.sizes[d]}});
    begin += out.sizes[d];
    for (const int64_t element : dimensions.back().elements) {
      require(element >= 0 && element < in.sizes[d], "the elements of lists");
    }
  }
  // What is contiguous in both tensors is moved together.
  plain = fold(std::move(plain));
  int64_t unit = item;
  if (!plain.empty() && plain.back().in == item && plain.back().out == item) {
    unit *= take_innermost(plain).size;
  }
  for (const Loop& loop : plain) dimensions.push_back({loop, {}});
  std::ranges::stable_sort(dimensions, [](const Dimension& a, const Dimension& b) {
    return std::abs(a.loop.out) > std::abs(b.loop.out);
  });
  Dimension row = std::move(dimensions.back());
  dimensions.pop_back();
  if (row.elements.empty()) {
    for (int64_t i = 0; i < row.loop.size; ++i) row.elements.push_back(i);
  }

  Rows rows{{}, {}, {}, row.loop.out, unit, 0, std::min(unit, kLongestUnit)};
  for (const int64_t element : row.elements) rows.offsets.push_back(element * row.loop.in);
  for (const Dimension& each : dimensions) {
    Loop loop = each.loop;
    if (!each.elements.empty()) {
      Listed listed{rows.loops.size(), {}};
      for (const int64_t element : each.elements) listed.offsets.push_back(element * loop.in);
      rows.listed.push_back(std::move(listed));
      loop.in = 0;
    }
    rows.loops.push_back(loop);
  }
  rows.unit_loop = rows.loops.size();
  rows.loops.push_back({divided_up(unit, rows.part), rows.part, rows.part});
  Blocks blocks;
  if (row.loop.in == unit && row.loop.out == unit) {
    const int64_t last = *std::ranges::max_element(row.elements);
    blocks = blocks_of_row(row.elements, unit, (last + 1) * unit);
  }
  std::string description = "units of " + std::to_string(unit) + " B by lists";
  if (!blocks.blocks.empty()) description += ", shuffled";
  return std::make_unique<NearestPlan>(std::move(rows), std::move(blocks), 2 * elements * item,
                                       std::move(description));
}

ANYDML_ISA_END
