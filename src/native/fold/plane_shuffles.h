// Small planes by shuffles of bytes: each 16 bytes of a plane of the output are put together of some 16 bytes
// of the input's plane, by a list that is the same for all planes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "movement/row_shuffles.h"
#include "platform/isa.h"
#include "simd/vector.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

class PlaneShuffles {
 public:
  static constexpr int64_t kZero = INT64_MIN;  // no place of the input
  static constexpr int64_t kMostBytes = 16 << 10;

  PlaneShuffles() = default;

  // `from` has for each byte of a plane where it comes from, or kZero.
  explicit PlaneShuffles([[maybe_unused]] const std::vector<int64_t>& from) {
#if defined(ANYDML_SHUFFLES_BYTES)
    const auto size = static_cast<int64_t>(from.size());
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    for (const int64_t place : from) {
      if (place != kZero) low = std::min(low, place);
      high = std::max(high, place);
    }
    // Nothing is read outside of what the plane has.
    if (size < kBlock || size > kMostBytes || high == kZero || high - low + 1 < kBlock) return;
    for (int64_t begin = 0; begin < size; begin += kPieceBytesAtOnce) {
      const int64_t end = std::min(size, begin + kPieceBytesAtOnce);
      // A last piece of few bytes begins earlier.
      Piece piece{std::min(begin, std::max<int64_t>(end - kBlock, 0)), end, {}};
      std::array<std::vector<Source>, kMostSources> by_count;
      for (int64_t at = piece.begin; at < end; at += kBlock) {
        const int64_t block = std::min(at, end - kBlock);
        const std::vector<Source> sources = sources_of(from, block, piece.begin, low, high);
        if (sources.size() > by_count.size()) {
          pieces_.clear();
          return;
        }
        std::vector<Source>& all = by_count[sources.size() - 1];
        all.insert(all.end(), sources.begin(), sources.end());
      }
      for (size_t i = 0; i < by_count.size(); ++i) {
        piece.blocks[i] = static_cast<int64_t>(by_count[i].size() / (i + 1));
        sources_.insert(sources_.end(), by_count[i].begin(), by_count[i].end());
      }
      pieces_.push_back(piece);
    }
#endif
  }

  bool is_empty() const { return pieces_.empty(); }

  void copy([[maybe_unused]] const std::byte* in, [[maybe_unused]] std::byte* out,
            [[maybe_unused]] StagedWriter& writer) const {
#if defined(ANYDML_SHUFFLES_BYTES)
    const Source* source = sources_.data();
    for (const Piece& piece : pieces_) {
      std::byte* const to = writer.reserve(out + piece.begin, piece.end - piece.begin);
      for (int64_t i = 0; i < piece.blocks[0]; ++i, ++source)
        store_vector(to + source->out, read(*source, in));
      for (int64_t i = 0; i < piece.blocks[1]; ++i, source += 2) {
        store_vector(to + source->out, read(source[0], in) | read(source[1], in));
      }
      for (int64_t count = 3; count <= kMostSources; ++count) {
        for (int64_t i = 0; i < piece.blocks[static_cast<size_t>(count - 1)]; ++i, source += count) {
          ByteVector bytes = read(source[0], in) | read(source[1], in);
          for (int64_t k = 2; k < count; ++k) bytes |= read(source[k], in);
          store_vector(to + source->out, bytes);
        }
      }
    }
#endif
  }

 private:
  static constexpr int64_t kBlock = 16;
  static constexpr int64_t kMostSources = 6;
  static constexpr int64_t kPieceBytesAtOnce = 4 << 10;

  // Bytes that are read from a place of the input, and where the block that they are part of is in a piece.
  struct Source {
    std::array<uint8_t, 16> numbers;
    int64_t in;
    int64_t out;
  };
  // The bytes [begin, end) of a plane, and how many blocks of them have one source, two and so on.
  struct Piece {
    int64_t begin;
    int64_t end;
    std::array<int64_t, kMostSources> blocks;
  };

#if defined(ANYDML_SHUFFLES_BYTES)
  static std::vector<Source> sources_of(const std::vector<int64_t>& from, int64_t block, int64_t begin,
                                        int64_t low, int64_t high) {
    std::vector<Source> sources;
    const auto place = [&](int64_t i) { return from[static_cast<size_t>(block + i)]; };
    std::array<bool, kBlock> is_done{};
    for (;;) {
      int64_t first = INT64_MAX;
      for (int64_t i = 0; i < kBlock; ++i) {
        if (place(i) != kZero && !is_done[static_cast<size_t>(i)]) first = std::min(first, place(i));
      }
      const bool is_last = first == INT64_MAX;
      if (is_last && !sources.empty()) return sources;
      Source source{{}, is_last ? low : std::min(first, high + 1 - kBlock), block - begin};
      for (size_t i = 0; i < kBlock; ++i) {
        const int64_t number = place(static_cast<int64_t>(i)) - source.in;
        const bool is_read =
            place(static_cast<int64_t>(i)) != kZero && !is_done[i] && 0 <= number && number < kBlock;
        source.numbers[i] = is_read ? static_cast<uint8_t>(number) : uint8_t{0x80};
        is_done[i] |= is_read;
      }
      sources.push_back(source);
    }
  }

  ANYDML_INLINE static ByteVector read(const Source& source, const std::byte* in) {
    const auto* const numbers = reinterpret_cast<const std::byte*>(source.numbers.data());
    return bytes_of(load_vector<ByteVector>(in + source.in), load_vector<ByteVector>(numbers));
  }
#endif

  std::vector<Source> sources_;
  std::vector<Piece> pieces_;
};

}  // namespace
ANYDML_ISA_END
