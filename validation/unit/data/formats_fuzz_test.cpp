// Damaged files: each is refused with BadRequest or read to its end, never a crash, a hang or memory beyond the file's size.

#include <functional>

#include "data/formats.hpp"
#include "files.hpp"
#include "mutate.hpp"

namespace shardmark {
namespace {

constexpr int mutations = 300;
constexpr std::size_t header = 16;  // bytes

class FormatsFuzz : public test::DataFiles {
 protected:
  /// Reads every sample of what `open` accepts. @return how often it accepted
  static int outcomes(std::function<std::unique_ptr<Dataset>()> const& open) {
    std::unique_ptr<Dataset> data;
    try {
      data = open();
    } catch (BadRequest const& refused) {
      EXPECT_STRNE(refused.what(), "");
      return 0;
    }
    SampleShape const& shape = data->shape();
    std::vector<std::byte> input(std::size_t(shape.input[0]) * 4), target(std::size_t(shape.target[0]) * 4);
    for (std::int64_t sample = 0; sample < data->size(); ++sample) {
      data->read(sample, input, target);
      for (std::int32_t id : test::values<std::int32_t>(target)) EXPECT_LT(std::uint32_t(id), std::uint32_t(shape.classes));
    }
    return 1;
  }
  /// Both outcomes have to occur, or the mutations test nothing.
  static void expect_both(int accepted) {
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, mutations);
  }
};

TEST_F(FormatsFuzz, case_120_DamagedTokenFiles) {
  std::vector<std::uint32_t> words(256, 0);
  words[0] = 20240520;
  words[1] = 1;
  words[2] = 40;
  std::string const valid = test::little_endian(words) + test::little_endian(std::vector<std::uint16_t>(40, 77));
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) {
    std::string const path = write("ids", test::mutate(valid, random, header)).native();
    accepted += outcomes([&] { return open_tokens(path, 7, 50257, 0, DataPart::training); });
  }
  expect_both(accepted);
}

TEST_F(FormatsFuzz, case_122_DamagedIdxFiles) {
  std::string const images = std::string("\0\0\x08\x03\0\0\0\4\0\0\0\3\0\0\0\2", 16) + std::string(24, '\x55');
  std::string const labels = std::string("\0\0\x08\x01\0\0\0\4\0\1\2\3", 12);
  std::mt19937 random(2);
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) {
    bool const both = i % 3 == 0;
    std::string const first = write("images", both || i % 3 == 1 ? test::mutate(images, random, header) : images).native();
    std::string const second = write("labels", both || i % 3 == 2 ? test::mutate(labels, random, header) : labels).native();
    accepted += outcomes([&] { return open_idx(first, second, 0, DataPart::training); });
  }
  expect_both(accepted);
}

TEST_F(FormatsFuzz, DamagedCifar10Files) {
  std::string const valid = std::string(1, '\3') + std::string(3072, '\x20');
  for (int b = 1; b <= 5; ++b) write("data_batch_" + std::to_string(b) + ".bin", valid);
  std::mt19937 random(3);
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) {
    write("data_batch_2.bin", test::mutate(valid, random, header));
    accepted += outcomes([&] { return open_cifar10(folder_.native(), DataPart::training); });
  }
  expect_both(accepted);
}

}  // namespace
}  // namespace shardmark
