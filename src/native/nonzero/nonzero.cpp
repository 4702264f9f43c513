// NONZERO_COORDINATES: the coordinates of what is not 0, in row-major order.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "nonzero/flags.h"
#include "nonzero/rows.h"
#include "platform/isa.h"
#include "platform/parallel.h"

ANYDML_ISA_BEGIN
namespace {

// Elements that a call has at least: what it costs to begin somewhere is little beside them.
constexpr int64_t kFewestElements = 4 << 10;

// Where elements lie, which are counted in row-major order: in loops around runs at a constant step.
struct Source {
  std::vector<Loop> outer;
  Loop run;
};

// Neighbouring dimensions that are one run become one; their order stays.
Source source_of(const Layout& input) {
  std::vector<Loop> loops;
  for (size_t d = 0; d < input.sizes.size(); ++d) {
    const Loop loop{input.sizes[d], input.strides[d], 0};
    if (loop.size == 1) continue;
    if (!loops.empty() && loops.back().in == loop.in * loop.size) {
      loops.back() = {loops.back().size * loop.size, loop.in, 0};
    } else {
      loops.push_back(loop);
    }
  }
  Loop run{1, 0, 0};
  if (!loops.empty()) {
    run = loops.back();
    loops.pop_back();
  }
  return {std::move(loops), run};
}

// Elements whose words are found at a time: these stay in the first cache.
constexpr int64_t kBlock = 16 << 10;
using Words = std::array<uint64_t, kBlock / kFlags>;

// The words of the elements [first, last), of 64 each but for the last: bit i is that of the word's element
// i.
using Find = void (*)(const Source& source, uint64_t mask, const std::byte* in, int64_t first, int64_t last,
                      uint64_t* words);

template <class T>
void find(const Source& source, uint64_t bits, const std::byte* in, int64_t first, int64_t last,
          uint64_t* words) {
  const auto mask = static_cast<T>(bits);
  const Loop run = source.run;
  LoopCursor at(source.outer, first / run.size);
  int64_t place = first % run.size;
  while (first < last) {
    const std::byte* from = in + at.in() + place * run.in;
    const int64_t whole = std::min(run.size - place, last - first) / kFlags * kFlags;
    if (run.in == sizeof(T)) {
      for (int64_t i = 0; i < whole; i += kFlags) {
        *words++ = word_at<T>(from + i * static_cast<int64_t>(sizeof(T)), mask);
      }
    } else {
      uint8_t flags[kFlags];
      for (int64_t i = 0; i < whole; i += kFlags) {
        flag_elements<T>(from + i * run.in, run.in, kFlags, mask, flags);
        *words++ = word_of(flags);
      }
    }
    first += whole;
    place += whole;
    // What is left of the run, and as much of those behind it as a word has room for.
    uint8_t flags[kFlags] = {};
    int64_t filled = 0;
    const int64_t room = std::min(kFlags, last - first);
    while (filled < room) {
      if (place == run.size) {
        at.advance();
        place = 0;
      }
      const int64_t piece = std::min(run.size - place, room - filled);
      flag_elements<T>(in + at.in() + place * run.in, run.in, piece, mask, flags + filled);
      filled += piece;
      place += piece;
    }
    if (filled > 0) *words++ = word_of(flags);
    first += filled;
    if (place == run.size) {
      at.advance();
      place = 0;
    }
  }
}

Find find_for(int64_t item) {
  switch (item) {
    case 1:
      return find<uint8_t>;
    case 2:
      return find<uint16_t>;
    case 4:
      return find<uint32_t>;
    default:
      return nullptr;
  }
}

// Elements [begin, end), and where their rows are written.
struct Part {
  int64_t begin;
  int64_t end;
  std::byte* row;
};

// What finds the words of a part's elements, one block of them after the other.
struct Reading {
  const Source& source;
  Find find;
  uint64_t mask;
  const std::byte* in;

  // Calls body(first element of the block, its words, how many these are).
  template <class Body>
  void for_blocks(const Part& part, const Body& body) const {
    Words words;
    for (int64_t first = part.begin; first < part.end; first += kBlock) {
      const int64_t last = std::min(first + kBlock, part.end);
      find(source, mask, in, first, last, words.data());
      body(first, words.data(), (last - first + kFlags - 1) / kFlags);
    }
  }
};

int64_t count(const Reading& reading, const Part& part) {
  int64_t found = 0;
  reading.for_blocks(part, [&](int64_t, const uint64_t* words, int64_t size) {
    for (int64_t i = 0; i < size; ++i) found += std::popcount(words[i]);
  });
  return found;
}

// The rows of the elements that are not 0, written one behind the other.
using Write = void (*)(const Reading& reading, const Part& part, const Table& table);

template <int kColumns>
void write_rows(const Reading& reading, const Part& part, const Table& table) {
  Rows<kColumns> rows(table, part.begin, part.row);
  reading.for_blocks(part, [&](int64_t first, const uint64_t* words, int64_t size) {
    for (int64_t i = 0; i < size; ++i) rows.write(first + i * kFlags, words[i]);
  });
}

// For 0 columns any rows, else packed ones of so many.
Write write_for(int64_t columns) {
  constexpr Write kWrites[] = {write_rows<0>, write_rows<1>, write_rows<2>, write_rows<3>, write_rows<4>};
  return kWrites[columns < static_cast<int64_t>(std::size(kWrites)) ? columns : 0];
}

class NonzeroPlan final : public Plan {
 public:
  NonzeroPlan(Source source, int64_t item, uint64_t mask, Table table, Find find, Write write,
              std::string description)
      : Plan(std::move(description)),
        source_(std::move(source)),
        table_(std::move(table)),
        find_(find),
        write_(write),
        mask_(mask),
        elements_(steps_of(source_.outer) * source_.run.size),
        read_(elements_ * item) {
    const int64_t most = read_ + elements_ * table_.row_bytes();
    const int64_t parts = std::max<int64_t>(elements_ / kFewestElements, 1);
    parts_ = std::min(calls_for(most, threads_for(most)), parts);
  }

  // Parts are counted, then each is written behind those before it. Each has room for its elements behind as
  // many as are before, whatever an input holds that changes meanwhile.
  void run(const void* const* inputs, void* const* outputs) const override {
    const Reading reading{source_, find_, mask_, static_cast<const std::byte*>(inputs[0])};
    auto* const rows = static_cast<std::byte*>(outputs[1]);
    std::vector<int64_t> begins(static_cast<size_t>(parts_) + 1);
    parallel_for(parts_, threads_for(read_), [&](int64_t part) {
      begins[static_cast<size_t>(part) + 1] = count(reading, {begin_of(part), begin_of(part + 1), nullptr});
    });
    for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    const int64_t found = begins.back();
    parallel_for(parts_, threads_for(read_ + found * table_.row_bytes()), [&](int64_t part) {
      const int64_t begin = begins[static_cast<size_t>(part)];
      if (begin == begins[static_cast<size_t>(part) + 1]) return;
      write_(reading, {begin_of(part), begin_of(part + 1), rows + begin * table_.row_step}, table_);
    });
    store(static_cast<std::byte*>(outputs[0]), static_cast<uint32_t>(found));
  }

 private:
  int64_t begin_of(int64_t part) const { return share_begin(part, parts_, elements_); }

  Source source_;
  Table table_;
  Find find_;
  Write write_;
  uint64_t mask_;
  int64_t elements_;
  int64_t read_;  // bytes
  int64_t parts_;
};

}  // namespace

std::unique_ptr<Plan> make_nonzero_coordinates(const Request& request, std::string& reason) {
  const Layout& input = tensor(request.inputs, 0);
  const Layout& count = tensor(request.outputs, 0);
  const Layout& rows = tensor(request.outputs, 1);
  const size_t rank = rows.sizes.size();
  require(rank >= 2 && rows.type == DataType::kUint32 && count.type == DataType::kUint32,
          "there are no rows of coordinates");
  const auto columns = static_cast<size_t>(rows.sizes[rank - 1]);
  require(columns <= input.sizes.size(), "there are more columns than dimensions");
  const std::vector<int64_t> sizes(input.sizes.end() - static_cast<int64_t>(columns), input.sizes.end());
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  Source source = source_of(input);
  require(elements == steps_of(source.outer) * source.run.size, "there are fewer columns than dimensions");
  require(rows.sizes[rank - 2] >= elements && elements < int64_t{1} << 32, "there are too few rows");
  const int64_t item = size_of(input.type);
  Table table{sizes, rows.strides[rank - 2], rows.strides[rank - 1]};
  const Write write = write_for(table.is_packed() ? static_cast<int64_t>(columns) : 0);
  const Find find = find_for(item);
  if (find == nullptr) {
    reason = "no coordinates of " + std::string(name_of(input.type));
    return nullptr;
  }
  // 0 and -0 are told from the rest without their sign.
  uint64_t mask = ~uint64_t{0};
  if (is_float(input.type)) mask = (uint64_t{1} << (8 * item - 1)) - 1;
  return std::make_unique<NonzeroPlan>(std::move(source), item, mask, std::move(table), find, write,
                                       "coordinates of what is not 0, " + std::string(name_of(input.type)));
}

ANYDML_ISA_END
