// Runs a case on inputs of its own making, and digests what comes out.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
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

// Numbers of which another order of combining makes other bits. What is added is large, small, medium, and
// the large and the medium one taken back: how much of the small one is left depends on what it met first.
// Factors are near 1, and so are scales. No NaN comes out, whose sign processors choose as they like.
// Integers may be any.
Bytes filled(const Layout& layout, bool is_factor) {
  Bytes bytes(static_cast<size_t>(bytes_of(layout)));
  const size_t count = bytes.size() / static_cast<size_t>(anydml::size_of(layout.type));
  const bool is_half = layout.type == DataType::kFloat16;
  const float large = is_half ? 0x1.1p14F : 0x1.1p40F;
  const float medium = is_half ? 0x1.3p10F : 0x1.3p36F;
  uint32_t state = 1;
  const auto random = [&] { return state = state * 1664525 + 1013904223; };
  for (size_t i = 0; i < count; ++i) {
    const float around_0 = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31F;
    const float added[] = {large, around_0, medium, -large, -medium};
    const float value = is_factor ? 1 + around_0 * 0x1p-6F : added[i % 5];
    if (layout.type == DataType::kFloat32) put(bytes, i, value);
    if (layout.type == DataType::kFloat64) put(bytes, i, static_cast<double>(value));
    if (is_half) put(bytes, i, anydml::Half(value));
  }
  if (anydml::is_float(layout.type)) return bytes;
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random() >> 24);
  return bytes;
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

// All outputs, one behind the other.
Bytes run(const anydml::Plan& plan, const Case& each, bool in_place) {
  const anydml::Attributes& attributes = each.request.attributes;
  const int64_t function = attributes.has("Function") ? attributes.integer("Function") : 0;
  // Exponentials of what is large would leave nothing of the others.
  const bool is_sum = each.operator_name == "CUMULATIVE_SUMMATION" ||
                      (function != 0 && function != kProduct && function != kLogSumExp);
  std::vector<Bytes> inputs;
  for (const Layout& layout : each.request.inputs) inputs.push_back(filled(layout, !is_sum));
  set_images(each, inputs);
  std::vector<const void*> read;
  for (const Bytes& input : inputs) read.push_back(input.data());
  std::vector<Bytes> outputs;
  for (const Layout& layout : each.request.outputs) {
    outputs.emplace_back(static_cast<size_t>(bytes_of(layout)), static_cast<unsigned char>(0xA5));
  }
  std::vector<void*> written;
  for (Bytes& output : outputs) written.push_back(output.data());
  if (in_place) written[0] = inputs[0].data();
  plan.run(read.data(), written.data());
  if (in_place) outputs[0] = std::move(inputs[0]);
  Bytes all;
  for (const Bytes& output : outputs) all.insert(all.end(), output.begin(), output.end());
  return all;
}

// FNV-1a.
uint64_t digest(const Bytes& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

// The outputs of two callers at once, of which one scans in place; fails where they differ, or where there is
// no kernel.
bool run_twice(std::string_view instruction_set, const Case& each, Bytes& output) {
  std::string reason;
  const auto plan = anydml::make_plan(instruction_set, each.operator_name, each.request, reason);
  if (plan == nullptr) {
    std::printf("%s: no kernel: %s\n", title(each).c_str(), reason.c_str());
    return false;
  }
  Bytes second;
  std::thread other([&] { second = run(*plan, each, is_scan(each)); });
  output = run(*plan, each, false);
  other.join();
  if (output == second) return true;
  std::printf("%s: two runs differ: %s\n", title(each).c_str(), plan->description().c_str());
  return false;
}

}  // namespace
