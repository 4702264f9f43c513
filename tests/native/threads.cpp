// Runs every kernel on several threads, each plan from two callers at once, for ThreadSanitizer to watch.
//
// Built with ANYDML_STD_THREADS: the sanitizer knows nothing of OpenMP's runtime.
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "kernels.h"
#include "layout.h"

namespace {

using anydml::DataType;
using anydml::Layout;
using anydml::Request;

Layout packed(DataType type, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), anydml::size_of(type));
  for (size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
  return {type, std::move(sizes), std::move(strides), true};
}

int64_t bytes_of(const Layout& layout) { return layout.sizes[0] * layout.strides[0]; }

struct Case {
  std::string operator_name;
  Request request;
};

Case scan(const char* name, DataType type, std::vector<int64_t> sizes, int64_t axis, int64_t decreasing,
          int64_t exclusive) {
  const Layout layout = packed(type, std::move(sizes));
  return {name, {{layout}, {layout}, {{axis}, {decreasing}, {exclusive}}}};
}

Case join(DataType type, const std::vector<std::vector<int64_t>>& inputs, std::vector<int64_t> output,
          int64_t axis) {
  Request request{{}, {packed(type, std::move(output))}, {{axis}}};
  for (const auto& sizes : inputs) request.inputs.push_back(packed(type, sizes));
  return {"JOIN", std::move(request)};
}

Case pool(std::vector<int64_t> input, std::vector<int64_t> output, int64_t window, int64_t stride,
          int64_t padding) {
  const auto every = [](int64_t value) { return std::vector<int64_t>{value, value}; };
  Layout scale{DataType::kFloat32, {1, 1, 1, 1}, {0, 0, 0, 0}, true};
  return {"QUANTIZED_LINEAR_AVERAGE_POOLING",
          {{packed(DataType::kUint8, std::move(input)), scale, {}, scale, {}},
           {packed(DataType::kUint8, std::move(output))},
           {every(stride), every(window), every(padding), every(padding), every(1), {0}}}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* name : {"CUMULATIVE_SUMMATION", "CUMULATIVE_PRODUCT"}) {
    for (const DataType type :
         {DataType::kFloat32, DataType::kFloat16, DataType::kInt32, DataType::kUint64}) {
      all.push_back(scan(name, type, {1, 300'000}, 1, 0, 0));
      all.push_back(scan(name, type, {500, 700}, 1, 1, 1));
      all.push_back(scan(name, type, {20'000, 9}, 1, 0, 0));
      all.push_back(scan(name, type, {400, 900}, 0, 0, 1));
      all.push_back(scan(name, type, {30, 300, 31}, 1, 1, 0));
    }
  }
  all.push_back(join(DataType::kFloat32, {{300, 500}, {300, 300}}, {300, 800}, 1));
  all.push_back(join(DataType::kUint8, {{200'000, 1}, {200'000, 2}, {200'000, 1}}, {200'000, 4}, 1));
  all.push_back(join(DataType::kUint64, {{500, 100}, {700, 100}}, {1200, 100}, 0));
  all.push_back(pool({2, 8, 120, 120}, {2, 8, 60, 60}, 2, 2, 0));
  all.push_back(pool({2, 8, 120, 120}, {2, 8, 120, 120}, 3, 1, 1));
  all.push_back(pool({4, 200, 30, 30}, {4, 200, 1, 1}, 30, 1, 0));
  return all;
}

// The output's bytes; inputs are filled with a pattern that every type can read.
std::vector<unsigned char> run(const anydml::Plan& plan, const Request& request) {
  std::vector<std::vector<unsigned char>> inputs;
  std::vector<const void*> read;
  const float one = 1;
  for (const Layout& layout : request.inputs) {
    if (!layout.present) {
      read.push_back(nullptr);
    } else if (layout.type == DataType::kFloat32 && layout.strides[0] == 0) {
      read.push_back(&one);
    } else {
      auto& bytes = inputs.emplace_back(static_cast<size_t>(bytes_of(layout)));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 % 61);
      read.push_back(bytes.data());
    }
  }
  std::vector<unsigned char> output(static_cast<size_t>(bytes_of(request.outputs[0])), 0xA5);
  void* written = output.data();
  plan.run(read.data(), &written);
  return output;
}

}  // namespace

int main() {
  int failures = 0;
  for (const Case& each : cases()) {
    std::string reason;
    const auto plan = anydml::make_plan("baseline", each.operator_name, each.request, reason);
    if (plan == nullptr) {
      std::printf("%s: %s\n", each.operator_name.c_str(), reason.c_str());
      return 1;
    }
    std::vector<unsigned char> first;
    std::vector<unsigned char> second;
    std::thread other([&] { second = run(*plan, each.request); });
    first = run(*plan, each.request);
    other.join();
    if (first != second) {
      std::printf("%s: two runs differ: %s\n", each.operator_name.c_str(), plan->description().c_str());
      ++failures;
    }
  }
  std::printf("%zu cases, %d failed\n", cases().size(), failures);
  return failures != 0;
}
