// QUANTIZE and DEQUANTIZE: linear quantisation by blocks, of 8 bits and of 4, tile by tile: what a tile of
// elements has for scales and zero points is spread out in the first cache, where one loop without a branch
// computes with them. Tiles begin at whole bytes, so that no two threads write halves of one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "quantize/loops.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/prefetch.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kTile = 512;  // elements; even, and whole blocks of conversions
static_assert(kTile % kConvertedAtOnce == 0);

// Adding and subtracting it rounds to the nearest integer, halves to the even one.
constexpr float kRounds = 0x1.8p23F;

struct Tile {
  float numbers[kTile];
  float scales[kTile + kSpreadAtOnce];
  float zeros[kTile + kSpreadAtOnce];
  std::byte codes[kTile];
  std::byte reals[kTile * sizeof(float)];
};

// The number of an integer type of 8 bits in a byte, or in a half of one.
template <class Code, bool kPacked>
ANYDML_INLINE float number_at(const std::byte* from, int64_t offset) {
  if constexpr (kPacked) {
    const int half = std::to_integer<int>(from[offset / 2]) >> (offset % 2 * 4) & 15;
    return static_cast<float>(std::is_signed_v<Code> ? (half ^ 8) - 8 : half);
  } else {
    return static_cast<float>(load<Code>(from + offset));
  }
}

template <class Code>
void unpack(const std::byte* from, int64_t count, std::byte* codes) {
  constexpr int kSign = std::is_signed_v<Code> ? 8 : 0;
  const int64_t pairs = count / 2;
  for (int64_t i = 0; i < pairs; ++i) {
    const auto both = load<uint8_t>(from + i);
    store(codes + 2 * i, static_cast<uint8_t>(((both & 15) ^ kSign) - kSign));
    store(codes + 2 * i + 1, static_cast<uint8_t>(((both >> 4) ^ kSign) - kSign));
  }
  if (count % 2 != 0) {
    store(codes + 2 * pairs, static_cast<uint8_t>(((load<uint8_t>(from + pairs) & 15) ^ kSign) - kSign));
  }
}

inline void pack(const std::byte* codes, int64_t count, std::byte* to) {
  const int64_t pairs = count / 2;
  for (int64_t i = 0; i < pairs; ++i) {
    const auto low = load<uint8_t>(codes + 2 * i);
    const auto high = load<uint8_t>(codes + 2 * i + 1);
    store(to + i, static_cast<uint8_t>((low & 15) | high << 4));
  }
  if (count % 2 != 0) store(to + pairs, static_cast<uint8_t>(load<uint8_t>(codes + 2 * pairs) & 15));
}

// clamp(round(x / scale) + zero point)
template <class Code>
void quantize(const std::byte* x, const Tile& tile, float lowest, float highest, int64_t count,
              std::byte* codes) {
  constexpr int64_t kItem = sizeof(float);
  for (int64_t i = 0; i < count; ++i) {
    const float quotient = load<float>(x + i * kItem) / tile.scales[i];
    const float zero = tile.zeros[i];
    const float low = lowest - zero;
    const float high = highest - zero;
    const float number = quotient == quotient ? quotient : 0.0F;
    const float raised = number > low ? number : low;
    const float inside = raised < high ? raised : high;
    const float whole = (inside + kRounds) - kRounds;
    store(codes + i, static_cast<Code>(static_cast<int32_t>(whole + zero)));
  }
}

// (x - zero point) * scale. The difference is exact, and the product in single precision what is rounded to
// half precision, as it is exact where the scale is of that.
template <class Code>
void dequantize(const std::byte* codes, const Tile& tile, int64_t count, std::byte* y) {
  constexpr int64_t kItem = sizeof(float);
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<float>(static_cast<int32_t>(load<Code>(codes + i)));
    store(y + i * kItem, (number - tile.zeros[i]) * tile.scales[i]);
  }
}

// Real numbers, `step` bytes apart, in single precision.
template <class Real>
void load_reals(const std::byte* from, int64_t step, int64_t count, float* to) {
  constexpr int64_t kItem = sizeof(Real);
  int64_t i = 0;
  if (std::is_same_v<Real, Half> && step == kItem) {
    const int64_t blocks = count / kConvertedAtOnce;
    widen_halves(from, reinterpret_cast<std::byte*>(to), blocks);
    i = blocks * kConvertedAtOnce;
  }
  for (; i < count; ++i) to[i] = widen<Real, float>(from + i * step);
}

template <class Real>
void store_reals(const std::byte* from, int64_t step, int64_t count, std::byte* to) {
  constexpr int64_t kItem = sizeof(Real);
  int64_t i = 0;
  if (std::is_same_v<Real, Half> && step == kItem) {
    const int64_t blocks = count / kConvertedAtOnce;
    narrow_to_halves(from, to, blocks);
    i = blocks * kConvertedAtOnce;
  }
  for (; i < count; ++i) narrow<Real, float>(to + i * step, load<float>(from + i * sizeof(float)));
}

struct Shape {
  std::vector<BlockLoop> rows;  // around the row
  BlockLoop row;
  int64_t elements;
  int64_t bytes;
  bool one_scale;  // for all elements
  bool one_zero;
  bool with_zero;
};

template <class Real, class Code, bool kPacked>
class QuantizePlan : public Plan {
 public:
  QuantizePlan(Shape shape, std::string description)
      : Plan(std::move(description)), shape_(std::move(shape)) {}

 protected:
  static constexpr float kLowest = !std::is_signed_v<Code> ? 0 : kPacked ? -8 : -128;
  static constexpr float kHighest = std::is_signed_v<Code> ? (kPacked ? 7 : 127) : (kPacked ? 15 : 255);

  struct Parameters {
    const std::byte* scales;
    const std::byte* zeros;
  };
  // Elements of a row: the place of their first one, and where they begin in the tile.
  struct Piece {
    const BlockCursor& row;
    int64_t place;
    int64_t begin;
    int64_t count;
  };

  // Calls body(tile, number of the tile's first element, elements, cursor and place of the first element) for
  // all tiles, on threads.
  template <class Body>
  void for_each_tile(const Parameters& parameters, const Body& body) const {
    const int threads = threads_for(shape_.bytes);
    const int64_t tiles = (shape_.elements + kTile - 1) / kTile;
    const int64_t calls = std::min(calls_for(shape_.bytes, threads), tiles);
    parallel_for(calls, threads, [&](int64_t call) {
      Tile tile;
      if (shape_.one_scale) std::fill_n(tile.scales, kTile, widen<Real, float>(parameters.scales));
      if (!shape_.with_zero) std::fill_n(tile.zeros, kTile, 0.0F);
      if (shape_.one_zero) std::fill_n(tile.zeros, kTile, number_at<Code, kPacked>(parameters.zeros, 0));
      const int64_t first = share_begin(call, calls, tiles);
      const int64_t last = share_begin(call + 1, calls, tiles);
      body(tile, first, last);
    });
  }

  // Calls body(piece) for each piece of a row that the next `count` elements have.
  template <class Body>
  void for_each_piece(BlockCursor& row, int64_t& place, int64_t count, const Body& body) const {
    for (int64_t begin = 0; begin < count;) {
      const int64_t size = std::min(count - begin, shape_.row.size - place);
      body(Piece{row, place, begin, size});
      begin += size;
      place += size;
      if (place == shape_.row.size) {
        place = 0;
        row.advance();
      }
    }
  }

  void spread_parameters(const Parameters& parameters, const Piece& piece, Tile& tile) const {
    if (!shape_.one_scale) {
      const std::byte* const from = parameters.scales + piece.row.scale();
      spread<sizeof(Real)>(shape_.row.scale, piece.place, piece.count, tile.scales + piece.begin,
                           [&](int64_t offset) { return widen<Real, float>(from + offset); });
    }
    if (shape_.with_zero && !shape_.one_zero) {
      const int64_t base = piece.row.zero();
      spread<1>(shape_.row.zero, piece.place, piece.count, tile.zeros + piece.begin,
                [&](int64_t offset) { return number_at<Code, kPacked>(parameters.zeros, base + offset); });
    }
  }

  bool has_whole_rows(int64_t count, int64_t place) const { return place + count <= shape_.row.size; }

  // Whether what lies so many bytes apart in each loop is one run, in the order of the elements.
  template <class Step>
  bool is_run(int64_t item, const Step& step) const {
    if (step(shape_.row) != item) return false;
    int64_t next = shape_.row.size * item;
    for (size_t d = shape_.rows.size(); d-- > 0; next *= shape_.rows[d].size) {
      if (step(shape_.rows[d]) != next) return false;
    }
    return true;
  }
  bool are_reals_a_run() const {
    return is_run(sizeof(Real), [](const BlockLoop& loop) { return loop.real; });
  }
  bool are_codes_a_run() const {
    return !kPacked && is_run(1, [](const BlockLoop& loop) { return loop.code; });
  }

  Shape shape_;
};

template <class Real, class Code, bool kPacked>
class Quantize final : public QuantizePlan<Real, Code, kPacked> {
  using Base = QuantizePlan<Real, Code, kPacked>;
  using typename Base::Piece;

 public:
  using Base::Base;

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const typename Base::Parameters parameters{
        static_cast<const std::byte*>(inputs[1]),
        this->shape_.with_zero ? static_cast<const std::byte*>(inputs[2]) : nullptr};
    auto* const codes = static_cast<std::byte*>(outputs[0]);
    const bool reals_are_a_run = this->are_reals_a_run();
    const bool codes_are_a_run = this->are_codes_a_run();
    // Of what does not stay in the caches, the next tile while one is computed.
    constexpr int64_t kTileReals = kTile * sizeof(float);
    const bool prefetches = std::is_same_v<Real, float> && reals_are_a_run &&
                            this->shape_.elements * static_cast<int64_t>(sizeof(float)) >= kStreamFrom;
    this->for_each_tile(parameters, [&](Tile& tile, int64_t first, int64_t last) {
      const BlockLoop& row = this->shape_.row;
      StagedWriter writer(codes_are_a_run && this->shape_.elements >= kStreamFrom);
      BlockCursor cursor(this->shape_.rows, first * kTile / row.size);
      int64_t place = first * kTile % row.size;
      for (int64_t number = first; number < last; ++number) {
        const int64_t count = std::min(kTile, this->shape_.elements - number * kTile);
        BlockCursor written = cursor;
        int64_t written_place = place;
        const bool is_one = this->has_whole_rows(count, place);
        // Elements that lie as they are computed with are not copied before.
        const bool as_it_is =
            std::is_same_v<Real, float> && (reals_are_a_run || (is_one && row.real == sizeof(float)));
        const bool at_once = codes_are_a_run || (is_one && !kPacked && row.code == 1);
        const std::byte* numbers = as_it_is ? x + cursor.real() + place * row.real
                                            : reinterpret_cast<const std::byte*>(tile.numbers);
        std::byte* to = at_once ? codes + cursor.code() + place : tile.codes;
        if (codes_are_a_run) to = writer.reserve(to, count);
        if (prefetches) {
          for (int64_t i = 0; i < kTileReals; i += kLine) prefetch_near(numbers + kTileReals + i);
        }
        this->for_each_piece(cursor, place, count, [&](const Piece& piece) {
          this->spread_parameters(parameters, piece, tile);
          if (as_it_is) return;
          load_reals<Real>(x + piece.row.real() + piece.place * row.real, row.real, piece.count,
                           tile.numbers + piece.begin);
        });
        quantize<Code>(numbers, tile, Base::kLowest, Base::kHighest, count, to);
        if (kPacked) {
          pack(tile.codes, count, codes + number * (kTile / 2));
        } else if (!at_once) {
          this->for_each_piece(written, written_place, count, [&](const Piece& piece) {
            std::byte* const at = codes + piece.row.code() + piece.place * row.code;
            for (int64_t i = 0; i < piece.count; ++i) at[i * row.code] = tile.codes[piece.begin + i];
          });
        }
      }
    });
  }
};

template <class Real, class Code, bool kPacked>
class Dequantize final : public QuantizePlan<Real, Code, kPacked> {
  using Base = QuantizePlan<Real, Code, kPacked>;
  using typename Base::Piece;

 public:
  using Base::Base;

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const typename Base::Parameters parameters{
        static_cast<const std::byte*>(inputs[1]),
        this->shape_.with_zero ? static_cast<const std::byte*>(inputs[2]) : nullptr};
    auto* const y = static_cast<std::byte*>(outputs[0]);
    const bool is_contiguous = this->are_reals_a_run();
    const bool codes_are_a_run = this->are_codes_a_run();
    this->for_each_tile(parameters, [&](Tile& tile, int64_t first, int64_t last) {
      const BlockLoop& row = this->shape_.row;
      constexpr int64_t kItem = sizeof(Real);
      StagedWriter writer(is_contiguous && this->shape_.elements * kItem >= kStreamFrom);
      BlockCursor cursor(this->shape_.rows, first * kTile / row.size);
      int64_t place = first * kTile % row.size;
      for (int64_t number = first; number < last; ++number) {
        const int64_t count = std::min(kTile, this->shape_.elements - number * kTile);
        BlockCursor written = cursor;
        int64_t written_place = place;
        const bool is_one = this->has_whole_rows(count, place);
        const bool as_it_is = codes_are_a_run || (is_one && !kPacked && row.code == 1);
        const bool at_once = is_contiguous || (is_one && row.real == kItem);
        const std::byte* const codes = as_it_is ? x + cursor.code() + place : tile.codes;
        std::byte* out = at_once ? y + cursor.real() + place * kItem : nullptr;
        if (is_contiguous) out = writer.reserve(out, count * kItem);
        if (kPacked) unpack<Code>(x + number * (kTile / 2), count, tile.codes);
        this->for_each_piece(cursor, place, count, [&](const Piece& piece) {
          this->spread_parameters(parameters, piece, tile);
          if (kPacked || as_it_is) return;
          const std::byte* const from = x + piece.row.code() + piece.place * row.code;
          for (int64_t i = 0; i < piece.count; ++i) tile.codes[piece.begin + i] = from[i * row.code];
        });
        const bool is_direct = at_once && std::is_same_v<Real, float>;
        dequantize<Code>(codes, tile, count, is_direct ? out : tile.reals);
        if (is_direct) continue;
        if (at_once) {
          store_reals<Real>(tile.reals, kItem, count, out);
          continue;
        }
        this->for_each_piece(written, written_place, count, [&](const Piece& piece) {
          store_reals<Real>(tile.reals + piece.begin * sizeof(float), row.real, piece.count,
                            y + piece.row.real() + piece.place * row.real);
        });
      }
    });
  }
};

// The strides of packed elements, in elements.
std::vector<int64_t> packed_steps(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> steps(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d > 0; --d) steps[d - 1] = steps[d] * sizes[d];
  return steps;
}

// One parameter's blocks along a dimension of `size` elements.
Blocks blocks_of(int64_t size, int64_t count, int64_t step) {
  require(count > 0 && size % count == 0, "blocks that do not divide a dimension");
  return count == 1 ? Blocks{} : Blocks{step, size / count};
}

Shape shape_of(const Request& request, bool is_quantize, bool is_packed) {
  const Layout& real = is_quantize ? tensor(request.inputs, 0) : tensor(request.outputs, 0);
  const Layout& code = is_quantize ? tensor(request.outputs, 0) : tensor(request.inputs, 0);
  const Layout& scale = tensor(request.inputs, 1);
  const bool with_zero = request.inputs.size() > 2;
  const std::vector<int64_t>& sizes = real.sizes;
  require(scale.sizes.size() == sizes.size(), "a scale of another rank");
  const std::vector<int64_t> code_steps = is_packed ? packed_steps(sizes) : code.strides;
  std::vector<int64_t> zero_sizes(sizes.size(), 1);
  std::vector<int64_t> zero_steps(sizes.size(), 0);
  if (with_zero) {
    const Layout& zero = tensor(request.inputs, 2);
    zero_sizes = request.attributes.integers("ZeroPointSizes");
    zero_steps = is_packed ? packed_steps(zero_sizes) : zero.strides;
  }
  require(code_steps.size() == sizes.size() && zero_sizes.size() == sizes.size() &&
              zero_steps.size() == sizes.size(),
          "tensors of different ranks");
  std::vector<BlockLoop> loops;
  Shape shape{{}, {}, 1, 0, true, with_zero, with_zero};
  for (size_t d = 0; d < sizes.size(); ++d) {
    loops.push_back({sizes[d], real.strides[d], code_steps[d],
                     blocks_of(sizes[d], scale.sizes[d], scale.strides[d]),
                     blocks_of(sizes[d], zero_sizes[d], zero_steps[d])});
    shape.elements *= sizes[d];
    shape.one_scale = shape.one_scale && loops.back().scale.step == 0;
    shape.one_zero = shape.one_zero && loops.back().zero.step == 0;
  }
  // Packed elements come in their own order, all others in that of the output.
  if (!is_packed) {
    std::ranges::stable_sort(loops, std::ranges::greater{}, [&](const BlockLoop& loop) {
      return std::abs(is_quantize ? loop.code : loop.real);
    });
  }
  shape.rows = merged(loops);
  shape.row = shape.rows.back();
  shape.rows.pop_back();
  shape.bytes = shape.elements * size_of(real.type) + shape.elements / (is_packed ? 2 : 1);
  return shape;
}

template <template <class, class, bool> class Kind, class Real>
std::unique_ptr<Plan> plan_of(DataType type, Shape shape, std::string words) {
  switch (type) {
    case DataType::kInt8:
      return std::make_unique<Kind<Real, int8_t, false>>(std::move(shape), std::move(words));
    case DataType::kUint8:
      return std::make_unique<Kind<Real, uint8_t, false>>(std::move(shape), std::move(words));
    case DataType::kInt4:
      return std::make_unique<Kind<Real, int8_t, true>>(std::move(shape), std::move(words));
    case DataType::kUint4:
      return std::make_unique<Kind<Real, uint8_t, true>>(std::move(shape), std::move(words));
    default:
      return nullptr;
  }
}

template <template <class, class, bool> class Kind>
std::unique_ptr<Plan> make(const Request& request, bool is_quantize, std::string& reason) {
  const auto type = static_cast<DataType>(request.attributes.integer("QuantizedDataType"));
  const DataType real = (is_quantize ? tensor(request.inputs, 0) : tensor(request.outputs, 0)).type;
  const bool is_packed = type == DataType::kInt4 || type == DataType::kUint4;
  const std::string words = "blocks of " + std::string(name_of(type)) + (is_quantize ? " from " : " to ") +
                            std::string(name_of(real));
  std::unique_ptr<Plan> plan;
  if (real == DataType::kFloat32)
    plan = plan_of<Kind, float>(type, shape_of(request, is_quantize, is_packed), words);
  if (real == DataType::kFloat16)
    plan = plan_of<Kind, Half>(type, shape_of(request, is_quantize, is_packed), words);
  if (plan == nullptr) reason = "no " + words;
  return plan;
}

}  // namespace

std::unique_ptr<Plan> make_quantize(const Request& request, std::string& reason) {
  return make<Quantize>(request, true, reason);
}

std::unique_ptr<Plan> make_dequantize(const Request& request, std::string& reason) {
  return make<Dequantize>(request, false, reason);
}

ANYDML_ISA_END
