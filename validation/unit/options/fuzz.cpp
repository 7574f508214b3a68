// Random command lines and files: each is accepted or refused, and nothing else happens.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "app/config.hpp"
#include "validation/unit/options/parse.hpp"

namespace shardmark::testing {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return std::size_t(engine_() % n); }
  template <class List>
  auto const& pick(List const& list) {
    return list[below(list.size())];
  }
  std::string bytes(std::size_t longest) {
    std::string text(below(longest + 1), ' ');
    for (char& c : text) c = char(1 + below(255));
    return text;
  }

 private:
  std::mt19937 engine_;
};

std::string const values[] = {"0",
                              "1",
                              "2",
                              "3",
                              "8",
                              "-1",
                              "1e9",
                              "1e999",
                              "-inf",
                              "nan",
                              "0x10",
                              "99999999999999999999",
                              "1.5",
                              "",
                              "-",
                              "--",
                              "=",
                              "[1]",
                              "synthetic",
                              "gpt",
                              "mlp",
                              "sgd",
                              "adamw",
                              "fp64",
                              "text:/etc",
                              "tokens:a",
                              "idx:a,b",
                              "idx:,",
                              "cifar10:",
                              "@x",
                              "%",
                              "kill",
                              "nan:",
                              "nan:rank=1,step=2",
                              "delay:seconds=.5",
                              "bitflip:,,,=",
                              "{}",
                              "'a",
                              "\"a\""};

std::string word(Dice& dice) {
  switch (dice.below(8)) {
    case 0:
      return dice.bytes(12);
    case 1:
      return values[dice.below(std::size(values))];
    case 2:
      return std::array{"plan", "verify", "bench"}[dice.below(3)];
    case 3:
      return fmt::format("--no-{}", dice.pick(option_names()));
    case 4:
      return fmt::format("--{}={}", dice.pick(option_names()), values[dice.below(std::size(values))]);
    case 5:
      return fmt::format("-{}", dice.bytes(3));
    default:
      return fmt::format("--{}", dice.pick(option_names()));
  }
}

/// Most lines are nearly right, so that they come past the first checks.
std::vector<std::string> line(Dice& dice) {
  std::vector<std::string> words;
  if (dice.below(4) != 0) words.push_back(std::array{"plan", "verify", "bench"}[dice.below(3)]);
  for (std::size_t count = dice.below(6); count > 0; --count) {
    words.push_back(word(dice));
    if (dice.below(2) != 0) words.push_back(values[dice.below(std::size(values))]);
  }
  return words;
}

TEST(Fuzz, CommandLinesAreAcceptedOrRefused) {
  Dice dice(1);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> const words = line(dice);
    try {
      ParseResult const result = parse_line(Usage{.program = "ddp"}, words);
      if (result.options) static_cast<void>(describe_json(*result.options));
      ++accepted;
    } catch (BadRequest const&) {
      ++refused;
    }
  }
  // Both must happen often, or the lines test nothing.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

std::string json_value(Dice& dice) {
  static std::string const simple[] = {"0",
                                       "1",
                                       "-1",
                                       "1.5",
                                       "1e400",
                                       "true",
                                       "false",
                                       "null",
                                       "\"gpt\"",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "[[1]]",
                                       "{\"batch\":1}",
                                       "\"\\ud800\"",
                                       "18446744073709551615",
                                       "\"text:/etc\"",
                                       "\"\xff\"",
                                       "\"kill:rank=1\""};
  return dice.pick(std::vector<std::string>(std::begin(simple), std::end(simple)));
}

std::string json_text(Dice& dice) {
  if (dice.below(10) == 0) return dice.bytes(40);
  std::string text = "{";
  for (std::size_t count = dice.below(4), i = 0; i < count; ++i) {
    std::string const key = dice.below(8) == 0 ? fmt::format("x{}", dice.below(100)) : dice.pick(option_names());
    text += fmt::format("{}\"{}\": {}", i > 0 ? ", " : "", key, json_value(dice));
  }
  text += "}";
  if (dice.below(10) == 0) text[dice.below(text.size())] = char(dice.below(256));
  return text;
}

TEST(Fuzz, ConfigurationsAreAcceptedOrRefused) {
  Dice dice(2);
  int accepted = 0, refused = 0;
  Usage const usage{.program = "ddp"};
  for (int round = 0; round < 20000; ++round) {
    std::string const text = json_text(dice);
    try {
      auto const given = parse_config(text, "file", option_names());
      static_cast<void>(describe_json(complete(usage, Command::bench, given)));
      ++accepted;
    } catch (BadRequest const&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace shardmark::testing
