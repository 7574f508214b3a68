#pragma once
// Files that a test writes, in a folder that ends with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "fixtures.hpp"

namespace shardmark::test {

class DataFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "shardmark-data-XXXXXX").native();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(std::filesystem::path const& name, std::string const& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

/// What `open` is refused with, which has exit code 2; "accepted" when it isn't refused.
template <class Open>
std::string refusal_of(Open&& open) {
  try {
    open();
  } catch (BadRequest const& error) {
    EXPECT_EQ(error.code(), Exit::bad_request);
    return error.what();
  }
  return "accepted";
}

/// The integers one after the other, least byte first.
template <class Word>
std::string little_endian(std::vector<Word> const& words) {
  std::string bytes;
  for (Word word : words)
    for (std::size_t i = 0; i < sizeof word; ++i) bytes += char(word >> 8 * i & 0xff);
  return bytes;
}

/// One sample's input and target, as numbers.
template <class Input>
std::pair<std::vector<Input>, std::vector<std::int32_t>> read_sample(Dataset const& data, std::int64_t sample) {
  std::vector<std::byte> input(std::size_t(data.shape().input[0]) * sizeof(Input)), target(std::size_t(data.shape().target[0]) * 4);
  data.read(sample, input, target);
  return {values<Input>(input), values<std::int32_t>(target)};
}

}  // namespace shardmark::test
