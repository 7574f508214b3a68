#pragma once
// Short words for tests of the command line.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/options.hpp"

namespace shardmark::testing {

inline ParseResult parse_line(Usage const& usage, std::vector<std::string> words) {
  words.insert(words.begin(), usage.program);
  std::vector<char const*> pointers;
  for (std::string const& word : words) pointers.push_back(word.c_str());
  return parse_options(usage, int(pointers.size()), pointers.data());
}

inline Options parse(std::vector<std::string> words) { return parse_line(Usage{.program = "ddp"}, std::move(words)).options.value(); }

/// The message that these words are refused with; "accepted" when they aren't refused.
inline std::string refusal(std::vector<std::string> words) {
  try {
    parse(std::move(words));
    return "accepted";
  } catch (BadRequest const& error) {
    return error.what();
  }
}

/// A file that lives as long as the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string const& content) {
    auto const* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() / (std::string(test->name()) + "-" + std::to_string(counter()++) + ".json")).string();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(TemporaryFile const&) = delete;
  std::string const& path() const { return path_; }

 private:
  static int& counter() {
    static int count = int(::getpid()) * 1000;
    return count;
  }
  std::string path_;
};

}  // namespace shardmark::testing
