// What every kernel is made of: a request comes in, a plan comes out, or a reason why not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/attributes.h"
#include "core/cold.h"

namespace anydml {

// The values of DML_TENSOR_DATA_TYPE.
enum class DataType : int {
  kUnknown = 0,
  kFloat32 = 1,
  kFloat16 = 2,
  kUint32 = 3,
  kUint16 = 4,
  kUint8 = 5,
  kInt32 = 6,
  kInt16 = 7,
  kInt8 = 8,
  kFloat64 = 9,
  kUint64 = 10,
  kInt64 = 11,
  kUint4 = 12,
  kInt4 = 13,
};

// A tensor without its memory. Every size is at least 1; strides are in bytes and may be negative.
struct Layout {
  DataType type = DataType::kUnknown;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  bool present = false;
};

// The tensors in header order, and the desc's other members.
struct Request {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  Attributes attributes;
};

// An operator made ready for given sizes and strides. Immutable: several threads may run it at once.
class Plan {
 public:
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Each pointer is the address of element [0, ..., 0] of its tensor, null where that is absent, and not
  // necessarily aligned.
  virtual void run(const void* const* inputs, void* const* outputs) const = 0;

  // Whether nothing is wrong with the values of the inputs, of a plan that looks at them by itself.
  virtual bool accepts(const void* const* /*inputs*/) const { return true; }
  virtual bool checks_values() const { return false; }

  // A plan that does the same and reads no more those inputs whose values are known now, from which it has
  // prepared what takes time; the others are null. Null where nothing is gained.
  virtual std::unique_ptr<Plan> prepack(const void* const* /*inputs*/) const { return nullptr; }
  virtual int64_t prepack_bytes() const { return 0; }
  // Whether there are inputs that `prepack` is for.
  virtual bool has_prepack() const { return false; }

  const std::string& description() const { return description_; }

 protected:
  ANYDML_COLD explicit Plan(std::string description) : description_(std::move(description)) {}

 private:
  std::string description_;
};

// Null where the kernel declines, and then a reason. Throws std::logic_error on a request that no validator
// lets pass.
using Factory = std::unique_ptr<Plan> (*)(const Request& request, std::string& reason);

}  // namespace anydml
