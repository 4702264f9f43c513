// JOIN: a copy of bits, whatever they mean.
#include <cstdint>
#include <cstring>

#include "isa.h"
#include "kernels.h"
#include "layout.h"
#include "memory.h"

ANYDML_ISA_BEGIN
namespace {

using CopyRun = void (*)(const Loop& run, const std::byte* in, std::byte* out);

template <class Bits>
void copy_elements(const Loop& run, const std::byte* in, std::byte* out) {
  for (int64_t i = 0; i < run.size; ++i) store(out + i * run.out, load<Bits>(in + i * run.in));
}

template <class Bits>
void copy_packed(const Loop& run, const std::byte* in, std::byte* out) {
  std::memcpy(out, in, static_cast<size_t>(run.size) * sizeof(Bits));
}

template <class Bits>
CopyRun copy_of(const Loop& run) {
  constexpr int64_t kPacked = sizeof(Bits);
  return run.in == kPacked && run.out == kPacked ? copy_packed<Bits> : copy_elements<Bits>;
}

CopyRun choose_copy(const Loop& run, int64_t element_size) {
  switch (element_size) {
    case 1:
      return copy_of<uint8_t>(run);
    case 2:
      return copy_of<uint16_t>(run);
    case 4:
      return copy_of<uint32_t>(run);
    default:
      return copy_of<uint64_t>(run);
  }
}

// One input and its place in the output.
struct Piece {
  int64_t out_start;
  std::vector<Loop> runs;
  Loop run;
  CopyRun copy;
};

class Join final : public Plan {
 public:
  Join(std::vector<Piece> pieces, std::string description)
      : Plan(std::move(description)), pieces_(std::move(pieces)) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    auto* joined = static_cast<std::byte*>(outputs[0]);
    for (const Piece& piece : pieces_) {
      const auto* in = static_cast<const std::byte*>(*inputs++);
      for_each(piece.runs, in, joined + piece.out_start,
               [&](const std::byte* from, std::byte* to) { piece.copy(piece.run, from, to); });
    }
  }

 private:
  std::vector<Piece> pieces_;
};

Piece make_piece(const Layout& in, Layout out, size_t axis, int64_t position) {
  const int64_t out_start = position * out.strides[axis];
  out.sizes[axis] = in.sizes.at(axis);
  std::vector<Loop> loops = fold(loops_over(in, out));
  const Loop run = take_innermost(loops);
  return {out_start, std::move(loops), run, choose_copy(run, size_of(in.type))};
}

}  // namespace

std::unique_ptr<Plan> make_join(const Request& request, std::string& reason) {
  const Layout& out = tensor(request.outputs, 0);
  const auto axis = static_cast<size_t>(request.attributes.at(0).at(0));
  const std::string type(name_of(out.type));
  if (size_of(out.type) == 0) {
    reason = "no join of " + type + ", whose elements are not whole bytes";
    return nullptr;
  }

  std::vector<Piece> pieces;
  int64_t position = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Layout& in = tensor(request.inputs, i);
    require(in.type == out.type, "the types of input and output differ");
    require(in.sizes.at(axis) <= out.sizes.at(axis) - position, "the inputs exceed the output");
    pieces.push_back(make_piece(in, out, axis, position));
    position += in.sizes[axis];
  }
  std::string description = "join " + type + ", inputs: " + std::to_string(pieces.size());
  return std::make_unique<Join>(std::move(pieces), std::move(description));
}

ANYDML_ISA_END
