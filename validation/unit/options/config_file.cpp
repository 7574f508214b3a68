// Options from --config FILE, and the description that is itself a configuration.

#include <gmock/gmock.h>

#include "app/nearest.hpp"
#include "validation/unit/options/parse.hpp"

namespace shardmark::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Options parse_with(std::string const& json, std::vector<std::string> words = {"bench"}) {
  TemporaryFile const file(json);
  words.insert(words.end(), {"--config", file.path()});
  return parse(words);
}

std::string refusal_of(std::string const& json) {
  TemporaryFile const file(json);
  return refusal({"bench", "--config", file.path()});
}

TEST(Config, HoldsAnyOption) {
  Options const options =
      parse_with(R"({"model": "gpt", "hidden": 64, "lr": 1, "tied-embeddings": true, "no-overlap": true, "json": "x", "batch": null})");
  EXPECT_EQ(options.hidden, 64);
  EXPECT_EQ(options.lr, 1);
  EXPECT_TRUE(options.tied_embeddings);
  EXPECT_FALSE(options.overlap);
  EXPECT_EQ(options.json, "x");
  EXPECT_EQ(options.batch, 8);
}

TEST(Config, TheCommandLineWins) {
  EXPECT_EQ(parse_with(R"({"batch": 4, "steps": 5})", {"bench", "--batch", "6"}).batch, 6);
  EXPECT_EQ(parse_with(R"({"batch": 4, "steps": 5})", {"bench", "--batch", "6"}).steps, 5);
  Options const options = parse_with(R"({"batch": 4, "microbatches": 4})", {"bench", "--batch-per-replica", "6", "--accumulate", "2"});
  EXPECT_TRUE(options.batch_is_per_replica);
  EXPECT_EQ(options.micros, 2);
}

TEST(Config, ModelDefaultsFollowTheFile) { EXPECT_EQ(parse_with(R"({"model": "mlp"})").hidden, 128); }

TEST(Config, UnknownKeysNameTheNearest) {
  EXPECT_THAT(refusal_of(R"({"bacth": 4})"), AllOf(HasSubstr("bacth"), HasSubstr("did you mean batch?")));
  EXPECT_THAT(refusal_of(R"({"zzzzzzzz": 4})"), AllOf(HasSubstr("zzzzzzzz"), ::testing::Not(HasSubstr("did you mean"))));
  EXPECT_THAT(refusal_of(R"({"no-batch": true})"), HasSubstr("no-batch"));
  EXPECT_THAT(refusal_of(R"({"link": "5us"})"), HasSubstr("not in this version"));
}

TEST(Config, WrongTypesNameKeyExpectedAndFound) {
  EXPECT_THAT(refusal_of(R"({"batch": "8"})"), AllOf(HasSubstr("batch"), HasSubstr("a whole number"), HasSubstr("string")));
  EXPECT_THAT(refusal_of(R"({"batch": 8.0})"), AllOf(HasSubstr("batch"), HasSubstr("a whole number"), HasSubstr("8.0")));
  EXPECT_THAT(refusal_of(R"({"batch": [8]})"), AllOf(HasSubstr("batch"), HasSubstr("array")));
  EXPECT_THAT(refusal_of(R"({"lr": true})"), AllOf(HasSubstr("lr"), HasSubstr("a number"), HasSubstr("boolean")));
  EXPECT_THAT(refusal_of(R"({"eval": 1})"), AllOf(HasSubstr("eval"), HasSubstr("true or false")));
  EXPECT_THAT(refusal_of(R"({"model": 3})"), AllOf(HasSubstr("model"), HasSubstr("text")));
  EXPECT_THAT(refusal_of(R"({"seed": 18446744073709551615})"), AllOf(HasSubstr("seed"), HasSubstr("too large")));
  EXPECT_THAT(refusal_of(R"({"batch": 0})"), AllOf(HasSubstr("batch in"), HasSubstr("too small")));
}

TEST(Config, BrokenFilesAreRefused) {
  EXPECT_THAT(refusal_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of(""), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of(R"({"batch": 1, "batch": 2})"), HasSubstr("given twice"));
  EXPECT_THAT(refusal_of(R"({"overlap": true, "no-overlap": true})"), HasSubstr("contradict"));
  EXPECT_THAT(refusal({"bench", "--config", "/nonexistent/file"}), HasSubstr("can't be read"));
  EXPECT_THAT(refusal({"bench", "--config", "/"}), HasSubstr("folder"));
}

TEST(Description, IsAConfigurationThatGivesTheSameOptions) {
  std::vector<std::vector<std::string>> const lines = {
      {"verify"},
      {"bench"},
      {"plan", "--ranks", "7"},
      {"plan", "--preset", "seed-checkpoint"},
      {"bench", "--model", "mlp", "--batch-per-replica", "3", "--accumulate", "3"},
      {"verify", "--preset", "seed", "--momentum", "0.5", "--nesterov", "--inject", "delay:rank=1,seconds=0.25", "--dtype", "fp64"},
      {"bench", "--lr", "0.1234567890123", "--no-overlap", "--json", "--eval"},
      {"bench", "--model", "mlp", "--data", "idx:a,b", "--held-out", "0.2", "--eval"},
      {"bench", "--model", "mlp", "--data", "cifar10:a", "--eval"},
      {"bench", "--model", "convnet", "--data", "cifar10:a", "--batch-norm", "sync"},
      {"verify", "--data", "tokens:a"},
      {"verify", "--ranks-as-threads", "4", "--clip-norm", "1e-300"}};
  for (auto const& line : lines) {
    std::string const description = describe_json(parse(line));
    EXPECT_EQ(describe_json(parse_with(description, {line.front()})), description);
  }
}

TEST(Description, OfAPipelineHasItsOwnOptions) {
  Usage const usage{.program = "gpipe", .extra = {"balance", "recompute"}, .micros = 4, .recompute = "all"};
  std::string const description = describe_json(parse_line(usage, {"bench", "--balance", "1,2"}).options.value());
  EXPECT_THAT(description, HasSubstr("\"balance\": \"1,2\""));
  EXPECT_THAT(description, HasSubstr("\"recompute\": \"all\""));
  EXPECT_THAT(description, Not(HasSubstr("\"mode\"")));
  TemporaryFile const file(description);
  EXPECT_EQ(describe_json(parse_line(usage, {"bench", "--config", file.path()}).options.value()), description);
}

TEST(Nearest, CountsSwapsOnceAndGivesUpOnStrangers) {
  EXPECT_EQ(edit_distance("batch", "bacth"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  std::vector<std::string> const words = {"batch", "steps", "seed"};
  EXPECT_EQ(nearest("stesp", words), "steps");
  EXPECT_EQ(nearest("quantisation", words), "");
  EXPECT_EQ(nearest("", words), "");
}

}  // namespace
}  // namespace shardmark::testing
