// Runs a case on inputs of its own making, and digests what comes out.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "case.h"
#include "simd/half.h"
#include "windows.h"

namespace {

using Bytes = std::vector<unsigned char>;

template <class T>
void put(Bytes& bytes, size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

// ThreadSanitizer need not know what is filled and digested, which takes it as long as all kernels do.
#define UNWATCHED [[gnu::no_sanitize("thread")]]

// Numbers of which another order of combining makes other bits. What is added is large, small, medium, and
// the large and the medium one taken back: how much of the small one is left depends on what it met first.
// Factors are near 1, and so are scales. No NaN comes out, whose sign processors choose as they like.
// Integers may be any.
template <class T>
UNWATCHED void fill_with(T* numbers, size_t count, bool is_factor) {
  constexpr bool kIsHalf = std::is_same_v<T, anydml::Half>;
  constexpr float kLarge = kIsHalf ? 0x1.1p14F : 0x1.1p40F;
  constexpr float kMedium = kIsHalf ? 0x1.3p10F : 0x1.3p36F;
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    if constexpr (std::is_same_v<T, unsigned char>) {
      numbers[i] = static_cast<unsigned char>(state >> 24);
    } else {
      const float around_0 = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31F;
      const float added[] = {kLarge, around_0, kMedium, -kLarge, -kMedium};
      numbers[i] = static_cast<T>(is_factor ? 1 + around_0 * 0x1p-6F : added[i % 5]);
    }
  }
}

void fill(const Layout& layout, bool is_factor, Bytes& bytes) {
  bytes.resize(static_cast<size_t>(bytes_of(layout)));
  const auto fill_as = [&]<class T>(T* numbers) { fill_with(numbers, bytes.size() / sizeof(T), is_factor); };
  if (layout.type == DataType::kFloat32) return fill_as(reinterpret_cast<float*>(bytes.data()));
  if (layout.type == DataType::kFloat64) return fill_as(reinterpret_cast<double*>(bytes.data()));
  if (layout.type == DataType::kFloat16) return fill_as(reinterpret_cast<anydml::Half*>(bytes.data()));
  fill_as(bytes.data());
}

// Makes the images of regions those that there are, but for every fifth region.
void set_images(const Case& each, std::vector<Bytes>& inputs) {
  if (!each.operator_name.starts_with("ROI")) return;
  const bool is_pooling = each.operator_name == "ROI_POOLING";
  const Layout& layout = each.request.inputs[is_pooling ? 1 : inputs.size() - 1];
  Bytes& bytes = inputs[is_pooling ? 1 : inputs.size() - 1];
  const auto count = static_cast<size_t>(is_pooling ? layout.sizes[2] : layout.sizes[0]);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t image = i % 5 == 4 ? 1 : 0;
    if (!is_pooling) put(bytes, i, image);
    if (is_pooling && layout.type == DataType::kFloat32) put(bytes, i * 5, static_cast<float>(image));
    if (is_pooling && layout.type == DataType::kFloat16) {
      put(bytes, i * 5, anydml::Half(static_cast<float>(image)));
    }
  }
}

bool is_scan(const Case& each) { return each.operator_name.starts_with("CUMULATIVE"); }

// What a case reads, all of its callers the same. Memory stays from case to case, as ThreadSanitizer takes
// longer to know new memory than kernels take to run.
void fill_inputs(const Case& each, std::vector<Bytes>& inputs) {
  const anydml::Attributes& attributes = each.request.attributes;
  const int64_t function = attributes.has("Function") ? attributes.integer("Function") : 0;
  // Exponentials of what is large would leave nothing of the others.
  const bool is_sum = each.operator_name == "CUMULATIVE_SUMMATION" ||
                      (function != 0 && function != kProduct && function != kLogSumExp);
  inputs.resize(each.request.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) fill(each.request.inputs[i], !is_sum, inputs[i]);
  set_images(each, inputs);
}

// All outputs, each behind the one before from a multiple of 64 bytes on; in place, the first one over a copy
// of the first input.
void run(const anydml::Plan& plan, const Case& each, const std::vector<Bytes>& inputs, bool in_place,
         Bytes& outputs) {
  std::vector<size_t> places;
  size_t end = 0;
  for (const Layout& layout : each.request.outputs) {
    places.push_back(end);
    end += (static_cast<size_t>(bytes_of(layout)) + 63) / 64 * 64;
  }
  outputs.assign(end, static_cast<unsigned char>(0xA5));
  std::vector<const void*> read;
  for (const Bytes& input : inputs) read.push_back(input.data());
  std::vector<void*> written;
  for (const size_t place : places) written.push_back(outputs.data() + place);
  if (in_place) {
    std::memcpy(written[0], read[0], inputs[0].size());
    read[0] = written[0];
  }
  plan.run(read.data(), written.data());
}

// FNV-1a.
UNWATCHED uint64_t digest_of(const unsigned char* bytes, size_t count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

// The outputs of two callers at once, of which one scans in place; fails where they differ, or where there is
// no kernel.
bool run_twice(std::string_view instruction_set, const Case& each, const std::vector<Bytes>& inputs,
               Bytes& output) {
  static Bytes second;
  std::string reason;
  const auto plan = anydml::make_plan(instruction_set, each.operator_name, each.request, reason);
  if (plan == nullptr) {
    std::printf("%s: no kernel: %s\n", title(each).c_str(), reason.c_str());
    return false;
  }
  std::thread other([&] { run(*plan, each, inputs, is_scan(each), second); });
  run(*plan, each, inputs, false, output);
  other.join();
  if (output == second) return true;
  std::printf("%s: two runs differ: %s\n", title(each).c_str(), plan->description().c_str());
  return false;
}

}  // namespace
