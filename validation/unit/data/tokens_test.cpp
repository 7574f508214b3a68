#include <algorithm>
#include <numeric>

#include "data/file.hpp"
#include "data/formats.hpp"
#include "data/split.hpp"
#include "files.hpp"

namespace shardmark {
namespace {

using test::little_endian;
using test::read_sample;
using testing::AllOf;
using testing::HasSubstr;

using Ids16 = std::vector<std::uint16_t>;
using Ids32 = std::vector<std::uint32_t>;

/// llm.c's header.
std::string header(std::uint32_t magic, std::uint32_t version, std::uint32_t tokens) {
  Ids32 words(256, 0);
  words[0] = magic;
  words[1] = version;
  words[2] = tokens;
  return little_endian(words);
}

class TokenFiles : public test::DataFiles {
 protected:
  std::unique_ptr<Dataset> open(std::string const& bytes, std::int64_t seq, std::int64_t vocab, double held_out = 0,
                                DataPart part = DataPart::training) const {
    return open_tokens(write("ids.bin", bytes).native(), seq, vocab, held_out, part);
  }
  std::string refusal(std::string const& bytes, std::int64_t vocab = 50257, std::int64_t seq = 2) const {
    std::string const text = test::refusal_of([&] { open(bytes, seq, vocab); });
    EXPECT_THAT(text, testing::AnyOf("accepted", HasSubstr("ids.bin"))) << "names the file";
    return text;
  }
  /// All ids, read as one window.
  std::vector<std::int32_t> ids(std::string const& bytes, std::int64_t tokens, std::int64_t vocab) const {
    auto [input, target] = read_sample<std::int32_t>(*open(bytes, tokens - 1, vocab), 0);
    input.push_back(target.back());
    return input;
  }
  std::string windows(std::int64_t tokens) const {
    std::string bytes;
    for (std::int64_t i = 0; i < tokens; ++i) bytes += little_endian(Ids16{std::uint16_t(i + 1)});
    std::string const refused = refusal(bytes, 50257, 8);
    return refused == "accepted" ? std::to_string(open(bytes, 8, 50257)->size()) : refused;
  }
};

TEST_F(TokenFiles, case_120_IdsBelowTheVocabularyAreReadAndOthersNamedWithTheirPosition) {
  std::string const bytes = little_endian(Ids16{5, 0, 9999, 7, 9998});
  EXPECT_EQ(ids(bytes, 5, 10000), (std::vector<std::int32_t>{5, 0, 9999, 7, 9998}));
  EXPECT_THAT(refusal(bytes, 9999),
              AllOf(HasSubstr("id 9999 at position 2"), HasSubstr("expected ids below the vocabulary, 9999"), HasSubstr("--vocab 10000")));
  EXPECT_THAT(refusal(bytes, 256), AllOf(HasSubstr("id 9999 at position 2"), HasSubstr("--vocab 10000")));
}

TEST_F(TokenFiles, case_120_LargestIdsOfBothWidthsAreExact) {
  EXPECT_EQ(ids(little_endian(Ids16{65535, 1, 65534}), 3, 65536), (std::vector<std::int32_t>{65535, 1, 65534}));
  Ids32 const wide{65535, 65536, 119546, 3};
  std::vector<std::int32_t> const expected(wide.begin(), wide.end());
  EXPECT_EQ(ids(little_endian(wide), 4, 119547), expected);
  EXPECT_EQ(ids(header(20240801, 7, 4) + little_endian(wide), 4, 119547), expected);
  EXPECT_THAT(refusal(little_endian(wide), 119546), HasSubstr("id 119546 at position 2"));
  EXPECT_THAT(refusal(little_endian(Ids32{1, 0xffffffff, 2}), 119546), HasSubstr("id 4294967295 at position 1"));
}

TEST_F(TokenFiles, case_120_HeadersOfLlmCDecideTheWidth) {
  EXPECT_EQ(ids(header(20240520, 1, 4) + little_endian(Ids16{1, 50256, 2, 3}), 4, 50257), (std::vector<std::int32_t>{1, 50256, 2, 3}));
  // 32 bits also where a headerless file would have 16, and the other way round.
  EXPECT_EQ(ids(header(20240801, 7, 3) + little_endian(Ids32{1, 2, 3}), 3, 256), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(ids(header(20240520, 1, 3) + little_endian(Ids16{1, 65535, 3}), 3, 128256), (std::vector<std::int32_t>{1, 65535, 3}));
}

TEST_F(TokenFiles, case_120_OtherHeadersAreRefusedByName) {
  std::string const ids = little_endian(Ids16{1, 2, 3, 4});
  EXPECT_THAT(refusal(header(20240520, 2, 4) + ids), AllOf(HasSubstr("20240520 has version 2"), HasSubstr("expected 1")));
  EXPECT_THAT(refusal(header(20240801, 1, 2) + ids), AllOf(HasSubstr("20240801 has version 1"), HasSubstr("expected 7")));
  EXPECT_THAT(refusal(header(20240326, 3, 4) + ids), AllOf(HasSubstr("20240326"), HasSubstr("GPT-2 checkpoint"), HasSubstr("20240520")));
  EXPECT_THAT(refusal(header(20240328, 1, 4) + ids), HasSubstr("tokenizer"));
  std::string swapped = header(20240520, 1, 4);
  for (std::size_t word = 0; word < swapped.size(); word += 4)
    std::reverse(swapped.begin() + std::ptrdiff_t(word), swapped.begin() + std::ptrdiff_t(word + 4));
  EXPECT_THAT(refusal(swapped + ids), AllOf(HasSubstr("big-endian"), HasSubstr("20240520")));
  EXPECT_THAT(refusal(header(20240520, 1, 4).substr(0, 1023)), AllOf(HasSubstr("cut at 1023"), HasSubstr("expected 1024")));
}

TEST_F(TokenFiles, case_120_CountsThatAreNotTheFilesAreRefused) {
  std::string const ids = little_endian(Ids16{1, 2, 3, 4});
  EXPECT_THAT(refusal(header(20240520, 1, 5) + ids), AllOf(HasSubstr("declares 5 tokens"), HasSubstr("10 bytes"), HasSubstr("found 8")));
  EXPECT_THAT(refusal(header(20240520, 1, 3) + ids), HasSubstr("declares 3 tokens"));
  EXPECT_THAT(refusal(header(20240520, 1, 0xffffffff) + ids), AllOf(HasSubstr("declares 4294967295"), HasSubstr("8589934590 bytes")));
  EXPECT_THAT(refusal(header(20240801, 7, 0x80000002) + ids), HasSubstr("8589934600 bytes; found 8"));  // 8 in 32 bits
  EXPECT_THAT(refusal(ids + "x"), AllOf(HasSubstr("9 bytes"), HasSubstr("multiple of 2")));
  EXPECT_THAT(refusal(little_endian(Ids32{1, 2, 3}) + "xy", 70000), AllOf(HasSubstr("14 bytes"), HasSubstr("multiple of 4")));
}

TEST_F(TokenFiles, case_120_IdsOfTheOtherWidthDontPass) {
  Ids32 wide(64);
  std::iota(wide.begin(), wide.end(), 0);
  EXPECT_THAT(refusal(little_endian(wide)), AllOf(HasSubstr("every second 16-bit id is 0"), HasSubstr("uint16")));
  EXPECT_THAT(refusal(little_endian(Ids16(64, 3)), 70000), HasSubstr("id 196611 at position 0"));
  EXPECT_EQ(refusal(little_endian(Ids16(64, 0))), "accepted") << "zeros have no width";
}

TEST_F(TokenFiles, PackedFilesAreNamed) {
  EXPECT_THAT(refusal("\x1f\x8b\x08" + std::string(9, 'x')),
              AllOf(HasSubstr("gzip"), HasSubstr("expected token ids"), HasSubstr("gunzip")));
  EXPECT_THAT(refusal("\x93NUMPY" + std::string(8, 'x')), AllOf(HasSubstr("NumPy"), HasSubstr("tofile")));
  EXPECT_THAT(refusal("PK\x03\x04" + std::string(8, 'x')), HasSubstr("zip"));
}

TEST_F(TokenFiles, case_121_WindowCountsAndTheShortestFile) {
  EXPECT_EQ(windows(100), "12");
  EXPECT_EQ(windows(97), "12");
  EXPECT_EQ(windows(96), "11");
  EXPECT_EQ(windows(9), "1");
  EXPECT_THAT(windows(8), AllOf(HasSubstr("has 8 tokens"), HasSubstr("at least 9 tokens")));
  EXPECT_THAT(windows(0), AllOf(HasSubstr("has 0 tokens"), HasSubstr("at least 9 tokens")));
  EXPECT_THAT(refusal(header(20240520, 1, 0)), HasSubstr("has 0 tokens"));
}

// 12 windows in updates of 8: the second has 4, and its own count.
TEST_F(TokenFiles, case_121_EachWindowOnceAndTheLastTokenIsOnlyATarget) {
  Ids16 ids(97);
  std::iota(ids.begin(), ids.end(), 1);
  auto const data = open(header(20240520, 1, 97) + little_endian(ids), 8, 50257);
  Loader loader(*data, Sampler(data->size(), 8, 1), {}, 0);
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> seen;
  for (int update = 0; update < 2; ++update) {
    HostBatch const& batch = loader.next();
    counts.push_back(batch.window_counted);
    auto const input = test::values<std::int32_t>(batch.input), target = test::values<std::int32_t>(batch.target);
    for (std::size_t i = 0; i < input.size(); ++i) EXPECT_EQ(target[i], input[i] + 1);
    seen.insert(seen.end(), input.begin(), input.end());
  }
  EXPECT_EQ(counts, (std::vector<std::int64_t>{64, 32}));
  std::sort(seen.begin(), seen.end());
  std::vector<std::int32_t> all(96);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(seen, all);
}

// A sparse file of 2^32 + 4099 ids: positions and sizes that 32 bits would wrap.
TEST_F(TokenFiles, case_120_PositionsBeyond32BitsAreExact) {
  std::filesystem::path const path = write("large.bin", "");
  std::int64_t const tokens = (std::int64_t{1} << 32) + 4099, seq = 1024;
  std::filesystem::resize_file(path, std::uintmax_t(2 * tokens));
  MappedFile const mapped(path);
  ASSERT_EQ(mapped.size(), 2 * tokens);
  Range const windows = windows_of(mapped.size() / 2, seq, 0.25, DataPart::held_out, "large.bin");
  EXPECT_EQ(windows.end, 4194308);
  EXPECT_EQ(windows.begin, 4194308 - 1048577);
}

TEST_F(TokenFiles, HeldOutWindowsFollowTheTrainingWindows) {
  Ids16 ids(101);
  std::iota(ids.begin(), ids.end(), 0);
  std::string const bytes = little_endian(ids);
  EXPECT_EQ(open(bytes, 10, 101, 0.25)->size(), 8);
  auto const held_out = open(bytes, 10, 101, 0.25, DataPart::held_out);
  ASSERT_EQ(held_out->size(), 2);
  EXPECT_EQ(read_sample<std::int32_t>(*held_out, 0).first.front(), 80);
  EXPECT_EQ(read_sample<std::int32_t>(*held_out, 1).second.back(), 100);
  EXPECT_EQ(held_out->source().kind, "tokens");
  EXPECT_EQ(held_out->source().bytes, 202);
  EXPECT_EQ(held_out->source().sha256, "0a0504df8fab5bbf4d396422a62d22ac7934917724b75fed0c6fc5aa00db77ea");
}

TEST_F(TokenFiles, PathsThatAreNoFilesAreRefused) {
  auto const refused = [](std::string const& path) { return test::refusal_of([&] { open_tokens(path, 2, 256, 0, DataPart::training); }); };
  EXPECT_THAT(refused((folder_ / "none").native()), AllOf(HasSubstr("No such file"), HasSubstr("check the path")));
  EXPECT_THAT(refused(folder_.native()), HasSubstr("it is a folder"));
  EXPECT_THAT(refused("/dev/zero"), HasSubstr("neither a file nor a folder"));
}

}  // namespace
}  // namespace shardmark
