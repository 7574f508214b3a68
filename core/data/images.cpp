#include "data/images.hpp"

#include <cstring>

#include "base/error.hpp"

namespace shardmark {

Images::Images(std::unique_ptr<MappedSource> source, std::vector<ImageRun> runs, Range samples, std::array<std::int64_t, 3> image,
               std::int64_t classes)
    : source_(std::move(source)), runs_(std::move(runs)), samples_(samples), shape_{DType::f32,
                                                                                    DType::i32,
                                                                                    {image[0] * image[1] * image[2]},
                                                                                    {1},
                                                                                    classes,
                                                                                    image} {}

void Images::read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const {
  expect(sample >= 0 && sample < size(), "a sample of the data set");
  std::int64_t image = samples_.begin + sample;
  auto run = runs_.begin();
  for (; image >= run->images; ++run) image -= run->images;
  std::byte const* const pixels = run->pixels + image * run->pixel_step;
  for (std::size_t i = 0; i < std::size_t(shape_.input[0]); ++i) {
    float const value = float(std::to_integer<int>(pixels[i])) / 255;
    std::memcpy(input.data() + i * sizeof value, &value, sizeof value);
  }
  auto const label = std::to_integer<std::int32_t>(run->labels[image * run->label_step]);
  std::memcpy(target.data(), &label, sizeof label);
}

}  // namespace shardmark
