// The samples of regions of interest along a dimension, and the elements of the input, the taps, that they
// are made of. What is decided stands in operators/specs/roi_align.py; places are computed by its formulas,
// in its order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "simd/eight.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// Numbers of any float type as those that are computed with, and back, rounded once.
template <class T>
ANYDML_INLINE double load_number(const std::byte* from) {
  return static_cast<double>(static_cast<float>(load<T>(from)));
}
template <class T>
ANYDML_INLINE void store_number(std::byte* to, double number) {
  if constexpr (std::is_same_v<T, Half>) {
    store(to, static_cast<Half>(single_for_half(number)));
  } else {
    store(to, static_cast<T>(number));
  }
}

// Elements of a row as floats that follow each other.
template <class T>
void load_row(const std::byte* from, int64_t step, int64_t count, float* to) {
  constexpr int64_t kItem = sizeof(T);
  if constexpr (std::is_same_v<T, Half>) {
    constexpr int64_t kLanes = 8;
    const bool is_packed = step == kItem && count >= kLanes;
    std::byte staged[kLanes * kItem]{};
    float singles[kLanes];
    for (int64_t i = 0; i < count; i += kLanes) {
      // The last vector begins where it ends with the row.
      if (is_packed) {
        const int64_t first = std::min(i, count - kLanes);
        widen_eight_halves(from + first * kItem, to + first);
        continue;
      }
      const int64_t size = std::min(kLanes, count - i);
      for (int64_t k = 0; k < size; ++k) store(staged + k * kItem, load<uint16_t>(from + (i + k) * step));
      widen_eight_halves(staged, singles);
      for (int64_t k = 0; k < size; ++k) to[i + k] = singles[k];
    }
  } else if (step != kItem) {
    for (int64_t i = 0; i < count; ++i) to[i] = load<T>(from + i * step);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = load<T>(from + i * kItem);
  }
}

// How a desc samples a dimension of the input.
struct Sampling {
  double scale;
  double input_offset;
  double output_offset;
  double least;
  double most;
  bool is_linear;
  bool to_corners;
  int64_t size;     // of the input
  int64_t outputs;  // elements of the output
};

// `letter` is that of the dimension in the names of members.
inline Sampling sampling_of(const Attributes& attributes, char letter, int64_t size, int64_t outputs) {
  const bool is_revised = attributes.has("InputPixelOffset");
  return {attributes.real(letter == 'X' ? "SpatialScaleX" : "SpatialScaleY"),
          is_revised ? attributes.real("InputPixelOffset") : 0.5,
          is_revised ? attributes.real("OutputPixelOffset") : -0.5,
          static_cast<double>(std::max<int64_t>(attributes.integer("MinimumSamplesPerOutput"), 1)),
          static_cast<double>(attributes.integer("MaximumSamplesPerOutput")),
          attributes.integer("InterpolationMode") == 1,
          is_revised && attributes.flag("AlignRegionsToCorners"),
          size,
          outputs};
}

// A sample inside the input: the element at or before it, the weight of the next one, and where it lies
// between the ends of its region.
struct Sample {
  int64_t low;
  double share;
  double along;
};

// A region in a dimension.
class Line {
 public:
  Line(const Sampling& sampling, double first, double last, bool is_there) : sampling_(sampling) {
    const double begin = first * sampling.scale;
    const double end = last * sampling.scale;
    is_there_ = is_there && std::isfinite(begin) && std::isfinite(end);
    length_ = is_there_ ? end - begin : 0;
    const double elements = std::ceil(std::fabs(length_) / static_cast<double>(sampling.outputs));
    number_ = std::min(std::max(elements, sampling.least), sampling.most);
    offset_ = sampling.output_offset;
    divisor_ = number_ * static_cast<double>(sampling.outputs);
    if (sampling.to_corners) {
      const bool is_single = divisor_ == 1;
      offset_ = is_single ? -0.5 : 0;
      divisor_ = is_single ? 1 : divisor_ - 1;
    }
    origin_ = (is_there_ ? begin : 0) - sampling.input_offset;
  }

  // Of an element of the output.
  double number() const { return number_; }

  // Calls visit(sample) for those inside the input, in order, and returns how many they are.
  template <class Visit>
  int64_t for_samples(int64_t output, const Visit& visit) const {
    if (!is_there_) return 0;
    const double first = number_ * static_cast<double>(output);
    const double size = static_cast<double>(sampling_.size);
    const auto is_before = [&](double p) { return length_ >= 0 ? p < -1 : p > size; };
    const auto is_behind = [&](double p) { return length_ >= 0 ? p > size : p < -1; };
    const auto count = static_cast<int64_t>(number_);
    const int64_t begin = first_of(0, count, [&](double k) { return !is_before(place(first + k)); });
    const int64_t end = first_of(begin, count, [&](double k) { return is_behind(place(first + k)); });
    for (int64_t k = begin; k < end; ++k) {
      const double s = first + static_cast<double>(k) - offset_;
      const double p = std::min(std::max(s * length_ / divisor_ + origin_, 0.0), size - 1);
      const double low = sampling_.is_linear ? std::floor(p) : std::ceil(p - 0.5);
      visit(Sample{static_cast<int64_t>(low), sampling_.is_linear ? p - low : 0, s / divisor_});
    }
    return end - begin;
  }

 private:
  double place(double s) const { return (s - offset_) * length_ / divisor_ + origin_; }

  // The first from `low` on for which a condition does that stays once it holds, or `high`.
  template <class Holds>
  static int64_t first_of(int64_t low, int64_t high, const Holds& holds) {
    // Mostly it is the first or none.
    if (low == high || holds(static_cast<double>(low))) return low;
    if (!holds(static_cast<double>(high - 1))) return high;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (holds(static_cast<double>(middle))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  const Sampling& sampling_;
  bool is_there_;
  double length_;
  double number_;
  double offset_;
  double divisor_;
  double origin_;
};

struct Tap {
  int64_t index;
  double weight;
};

// The taps of every element of the output, in ascending order, which those of element o begin at; weights
// are the sums of what samples give.
class Taps {
 public:
  // gives(sample) is what it gives to the element at or before it, and to the next one.
  template <class Gives>
  void assign(const Sampling& sampling, const Line& line, const Gives& gives) {
    taps_.clear();
    begins_.assign(1, 0);
    inside_.clear();
    lowest_ = sampling.size;
    highest_ = -1;
    sums_.resize(static_cast<size_t>(sampling.size), 0.0);
    for (int64_t o = 0; o < sampling.outputs; ++o) {
      int64_t low = sampling.size;
      int64_t high = -1;
      inside_.push_back(line.for_samples(o, [&](const Sample& sample) {
        const auto [here, next] = gives(sample);
        if (here != 0) sums_[static_cast<size_t>(sample.low)] += here;
        if (next != 0) sums_[static_cast<size_t>(sample.low) + 1] += next;
        low = std::min(low, sample.low);
        high = std::max(high, sample.low + (next != 0 ? 1 : 0));
      }));
      for (int64_t i = low; i <= high; ++i) {
        double& sum = sums_[static_cast<size_t>(i)];
        if (sum != 0) taps_.push_back({i, sum});
        sum = 0;
      }
      lowest_ = std::min(lowest_, low);
      highest_ = std::max(highest_, high);
      begins_.push_back(static_cast<int64_t>(taps_.size()));
    }
  }

  const Tap* begin(int64_t output) const { return taps_.data() + begins_[static_cast<size_t>(output)]; }
  const Tap* end(int64_t output) const { return begin(output + 1); }
  // Samples of an element of the output.
  int64_t inside(int64_t output) const { return inside_[static_cast<size_t>(output)]; }
  int64_t count() const { return static_cast<int64_t>(taps_.size()); }
  // From where to where all of them lie: size and -1 where there is none.
  int64_t lowest() const { return lowest_; }
  int64_t highest() const { return highest_; }

 private:
  std::vector<Tap> taps_;
  std::vector<int64_t> begins_;
  std::vector<int64_t> inside_;
  std::vector<double> sums_;  // all 0 between calls
  int64_t lowest_ = 0;
  int64_t highest_ = -1;
};

struct Given {
  double here;
  double next;
};
inline Given weights_of(const Sample& sample) { return {1 - sample.share, sample.share}; }

// All samples inside the input, those of element o of the output from begin(o) on.
class Samples {
 public:
  void assign(const Sampling& sampling, const Line& line) {
    samples_.clear();
    begins_.assign(1, 0);
    lowest_ = sampling.size;
    highest_ = -1;
    for (int64_t o = 0; o < sampling.outputs; ++o) {
      line.for_samples(o, [&](const Sample& sample) {
        samples_.push_back(sample);
        lowest_ = std::min(lowest_, sample.low);
        highest_ = std::max(highest_, sample.low + (sample.share != 0 ? 1 : 0));
      });
      begins_.push_back(static_cast<int64_t>(samples_.size()));
    }
  }

  const Sample* begin(int64_t output) const { return samples_.data() + begins_[static_cast<size_t>(output)]; }
  const Sample* end(int64_t output) const { return begin(output + 1); }
  int64_t count() const { return static_cast<int64_t>(samples_.size()); }
  // From where to where the elements lie that they are made of: size and -1 where there is none.
  int64_t lowest() const { return lowest_; }
  int64_t highest() const { return highest_; }

 private:
  std::vector<Sample> samples_;
  std::vector<int64_t> begins_;
  int64_t lowest_ = 0;
  int64_t highest_ = -1;
};

// The regions of a tensor {..., NumROIs, 4}, and the images that they are of.
struct Regions {
  int64_t count;
  int64_t step;    // from region to region
  int64_t number;  // from coordinate to coordinate
  int64_t index;   // from image to image
  int64_t images;
};

inline Regions regions_of(const Layout& rois, const Layout& indices, int64_t images) {
  const size_t rank = rois.sizes.size();
  require(rank >= 2 && rois.sizes[rank - 1] == 4, "the corners of regions");
  require(indices.type == DataType::kUint32 && indices.sizes.back() == rois.sizes[rank - 2],
          "the images of regions");
  return {rois.sizes[rank - 2], rois.strides[rank - 2], rois.strides[rank - 1], indices.strides.back(),
          images};
}

// One of them.
template <class T>
struct Region {
  Region(const Regions& regions, int64_t r, const std::byte* rois, const std::byte* indices)
      : image(load<uint32_t>(indices + r * regions.index)), is_there(image < regions.images) {
    for (int64_t i = 0; i < 4; ++i) corner[i] = load_number<T>(rois + r * regions.step + i * regions.number);
  }

  Line across(const Sampling& sampling) const { return {sampling, corner[0], corner[2], is_there}; }
  Line down(const Sampling& sampling) const { return {sampling, corner[1], corner[3], is_there}; }

  int64_t image;
  bool is_there;
  double corner[4];
};

// A plane of an image, or of its gradients.
struct Plane {
  const std::byte* first;
  int64_t row;
  int64_t column;

  const std::byte* at(int64_t i, int64_t j) const { return first + i * row + j * column; }
};

// Whether a sample, or an element, is larger than the best so far: of NaN and a number the number is. Without
// branches, of which processors would guess as many wrong as right.
template <class Number>
ANYDML_INLINE bool exceeds(Number candidate, Number best) {
  return static_cast<bool>(static_cast<int>(candidate > best) |
                           (static_cast<int>(best != best) & static_cast<int>(candidate == candidate)));
}

// A sample of a plane, by the two rows of each of its columns.
template <class T>
ANYDML_INLINE double value_of(const Plane& plane, const Sample& row, const Sample& column) {
  const auto blended = [&](int64_t j) {
    const double above = load_number<T>(plane.at(row.low, j)) * (1 - row.share);
    return row.share != 0 ? above + load_number<T>(plane.at(row.low + 1, j)) * row.share : above;
  };
  const double left = blended(column.low) * (1 - column.share);
  return column.share != 0 ? left + blended(column.low + 1) * column.share : left;
}

// The largest sample of an element of the output, the first in order of those that are equal; none where all
// are outside the input.
struct Largest {
  const Sample* row = nullptr;
  const Sample* column = nullptr;
  double value = 0;
};
template <class T>
Largest largest_of(const Plane& plane, const Samples& rows, int64_t i, const Samples& columns, int64_t j) {
  Largest best;
  for (const Sample* row = rows.begin(i); row != rows.end(i); ++row) {
    for (const Sample* column = columns.begin(j); column != columns.end(j); ++column) {
      const double value = value_of<T>(plane, *row, *column);
      if (best.row == nullptr || exceeds(value, best.value)) best = {row, column, value};
    }
  }
  return best;
}

// The sum over columns of their weights times the sums over rows of theirs times the elements.
template <class T>
double weighted_at(const Plane& plane, const Taps& rows, int64_t i, const Taps& columns, int64_t j) {
  double sum = 0;
  for (const Tap* column = columns.begin(j); column != columns.end(j); ++column) {
    double part = 0;
    for (const Tap* row = rows.begin(i); row != rows.end(i); ++row) {
      const double product = load_number<T>(plane.at(row->index, column->index)) * row->weight;
      part = row == rows.begin(i) ? product : part + product;
    }
    sum = column == columns.begin(j) ? part * column->weight : sum + part * column->weight;
  }
  return sum;
}

// The elements under a region, row by row as floats that follow each other.
class Patch {
 public:
  // Loads rows from `top` to `bottom`, where elements from `left` to `right` are wanted.
  template <class T>
  void assign(const Plane& plane, int64_t top, int64_t bottom, int64_t left, int64_t right) {
    top_ = top;
    left_ = left;
    const int64_t width = right - left + 1;
    step_ = (width + kEight) / kEight * kEight;
    elements_.resize(static_cast<size_t>((bottom - top + 1) * step_));
    for (int64_t i = top; i <= bottom; ++i) {
      load_row<T>(plane.at(i, left), plane.column, width, elements_.data() + (i - top) * step_);
    }
  }

  // Of rows, from one to the next: whole vectors, with an element more than there are.
  int64_t step() const { return step_; }
  const std::byte* row(int64_t i) const {
    return reinterpret_cast<const std::byte*>(elements_.data() + (i - top_) * step_);
  }

  // Sums of rows, column by column, as weighted_at has them; 0 where there is no row.
  void weigh_rows(const Tap* begin, const Tap* end, std::vector<double>& sums) const {
    sums.resize(static_cast<size_t>(step_));
    for (int64_t j = 0; j < step_; j += kEight) {
      Eight sum{};
      for (const Tap* tap = begin; tap != end; ++tap) {
        const Eight product = widen_eight<float>(row(tap->index) + j * static_cast<int64_t>(sizeof(float))) *
                              all_eight(tap->weight);
        sum = tap == begin ? product : sum + product;
      }
      store_eight(sums.data() + j, sum);
    }
  }

  // The sum of those sums over columns.
  double weigh_columns(const Tap* begin, const Tap* end, const std::vector<double>& sums) const {
    if (begin == end) return 0;
    const double* const from = sums.data();
    double sum = from[begin->index - left_] * begin->weight;
    for (const Tap* tap = begin + 1; tap != end; ++tap) sum += from[tap->index - left_] * tap->weight;
    return sum;
  }

 private:
  int64_t top_ = 0;
  int64_t left_ = 0;
  int64_t step_ = 0;
  std::vector<float> elements_;
};

// Whether taps, or samples, are near each other, so that most elements of a patch are wanted.
template <class Each>
bool are_dense(const Each& rows, const Each& columns) {
  const int64_t height = rows.highest() - rows.lowest() + 1;
  const int64_t width = columns.highest() - columns.lowest() + 1;
  return height > 0 && width > 0 && height <= 2 * rows.count() && width <= 2 * columns.count();
}

ANYDML_ISA_END
