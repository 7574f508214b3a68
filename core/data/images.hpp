#pragma once
// Images of bytes with a class each, wherever their files keep them; private to this folder.

#include <vector>

#include "data/dataset.hpp"
#include "data/mapped_source.hpp"

namespace shardmark {

/// A run of images in mapped memory.
struct ImageRun {
  std::byte const* pixels;  // of the first image
  std::byte const* labels;  // of the first image
  std::int64_t pixel_step;  // bytes from an image to the next
  std::int64_t label_step;  // bytes from a label to the next
  std::int64_t images;
};

/// Pixels are given as byte / 255 in fp32.
class Images final : public Dataset {
 public:
  /// @param samples which of the runs' images, counted through all runs, belong to the data set
  /// @param image   channels, height, width
  Images(std::unique_ptr<MappedSource> source, std::vector<ImageRun> runs, Range samples, std::array<std::int64_t, 3> image,
         std::int64_t classes);
  std::int64_t size() const override { return samples_.size(); }
  SampleShape const& shape() const override { return shape_; }
  DataSource const& source() const override { return source_->describe(); }
  std::int64_t counted(std::int64_t) const override { return 1; }
  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override;

 private:
  std::unique_ptr<MappedSource> source_;
  std::vector<ImageRun> runs_;
  Range samples_;
  SampleShape shape_;
};

}  // namespace shardmark
