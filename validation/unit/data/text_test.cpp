#include <sys/stat.h>
#include <unistd.h>

#include <clocale>

#include "files.hpp"

namespace shardmark {
namespace {

namespace fs = std::filesystem;
using test::values;
using testing::AllOf;
using testing::HasSubstr;

class TextFiles : public test::DataFiles {
 protected:
  /// One window that holds the whole text but its last byte.
  static std::vector<std::int32_t> tokens_of(fs::path const& path, std::int64_t bytes) {
    auto const data = open_text(path.native(), bytes - 1, 256, 0, DataPart::training);
    std::vector<std::byte> input(std::size_t(bytes - 1) * 4), target(input.size());
    data->read(0, input, target);
    auto tokens = values<std::int32_t>(input);
    tokens.push_back(values<std::int32_t>(target).back());
    return tokens;
  }
  static std::string refusal(std::string const& path, std::int64_t seq = 8, std::int64_t vocab = 256, double held_out = 0,
                             DataPart part = DataPart::training) {
    return test::refusal_of([&] { open_text(path, seq, vocab, held_out, part); });
  }
  std::string windows(std::size_t bytes, std::int64_t seq) const {
    fs::path const path = write("counted", std::string(bytes, 'x'));
    std::string const refused = refusal(path.native(), seq);
    return refused == "accepted" ? std::to_string(open_text(path.native(), seq, 256, 0, DataPart::training)->size()) : refused;
  }
};

TEST_F(TextFiles, case_121_WindowCountsAndTheShortestText) {
  EXPECT_EQ(windows(100, 8), "12");
  EXPECT_EQ(windows(97, 8), "12");
  EXPECT_EQ(windows(96, 8), "11");
  EXPECT_EQ(windows(9, 8), "1");
  EXPECT_THAT(windows(8, 8), AllOf(HasSubstr("has 8 tokens"), HasSubstr("at least 9 tokens")));
  EXPECT_THAT(windows(0, 8), HasSubstr("it is empty"));
}

// 12 windows in updates of 8: the second has 4 and its own count; every byte but the last is an input exactly once.
TEST_F(TextFiles, case_121_RaggedTailCountsItsOwnWindows) {
  std::string text;
  for (int i = 0; i < 97; ++i) text += char(i);
  auto const data = open_text(write("t", text).native(), 8, 256, 0, DataPart::training);
  Loader loader(*data, Sampler(data->size(), 8, 1), {}, 0);
  std::vector<std::int32_t> seen;
  std::vector<std::int64_t> counts;
  for (int update = 0; update < 2; ++update) {
    HostBatch const& batch = loader.next();
    counts.push_back(batch.window_counted);
    for (std::int32_t token : values<std::int32_t>(batch.input)) seen.push_back(token);
    auto const input = values<std::int32_t>(batch.input), target = values<std::int32_t>(batch.target);
    for (std::size_t i = 0; i < input.size(); ++i) EXPECT_EQ(target[i], input[i] + 1);
  }
  EXPECT_EQ(counts, (std::vector<std::int64_t>{64, 32}));
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 96u);
  for (int i = 0; i < 96; ++i) EXPECT_EQ(seen[std::size_t(i)], i);
}

TEST_F(TextFiles, case_124_RawBytesInEveryLocale) {
  std::string const text = "\x61\x0d\x0a\x62\xc3\xa9\x0a";
  fs::path const plain = write("plain", text), marked = write("marked", "\xef\xbb\xbf" + text);
  std::string const before = std::setlocale(LC_ALL, nullptr);
  for (char const* locale : {"C", "C.UTF-8"}) {
    ASSERT_NE(std::setlocale(LC_ALL, locale), nullptr) << locale;
    EXPECT_EQ(tokens_of(plain, 7), (std::vector<std::int32_t>{97, 13, 10, 98, 195, 169, 10}));
    EXPECT_EQ(tokens_of(marked, 10), (std::vector<std::int32_t>{239, 187, 191, 97, 13, 10, 98, 195, 169, 10}));
  }
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(tokens_of(write("extremes", std::string("\x00\xff\x00", 3)), 3), (std::vector<std::int32_t>{0, 255, 0}));
  DataSource const source = open_text(plain.native(), 2, 256, 0, DataPart::training)->source();
  EXPECT_EQ(source.bytes, 7);
  EXPECT_EQ(source.sha256, "4d2057369df7a261ce63e143e99886c3db29690250339a7fc692bcb06b689d78");
}

TEST_F(TextFiles, case_124_FolderIsItsFilesInByteOrder) {
  write("set/b.txt", "B\r\n");
  write("set/a/z.txt", "Z\n");
  write("set/B.txt", "b\n");
  write("set/empty", "");
  fs::create_symlink(folder_ / "set/b.txt", folder_ / "set/0-link");
  fs::create_directory_symlink(folder_ / "set/a", folder_ / "set/0-folder");
  ASSERT_EQ(mkfifo((folder_ / "set/0-fifo").c_str(), 0600), 0);
  auto const tokens = tokens_of(folder_ / "set", 7);
  EXPECT_EQ(std::string(tokens.begin(), tokens.end()), "b\nZ\nB\r\n");
}

TEST_F(TextFiles, case_124_PathsThatAreNotUtf8AreEscapedInRecords) {
  fs::path const path = write("caf\xc3\xa9-\xff", "some text");
  std::string const shown = open_text(path.native(), 4, 256, 0, DataPart::training)->source().path;
  EXPECT_THAT(shown, testing::EndsWith("caf\xc3\xa9-\\xff"));
  EXPECT_THAT(refusal(path.native(), 100), HasSubstr("\\xff"));
}

TEST_F(TextFiles, HeldOutIsTheLastShareAndNothingIsInBoth) {
  std::string text;
  for (int i = 0; i < 101; ++i) text += char(i);
  std::string const path = write("t", text).native();
  auto const training = open_text(path, 10, 256, 0.25, DataPart::training), held_out = open_text(path, 10, 256, 0.25, DataPart::held_out);
  EXPECT_EQ(training->size(), 8);
  EXPECT_EQ(held_out->size(), 2);
  std::vector<std::byte> input(40), target(40);
  held_out->read(0, input, target);
  EXPECT_EQ(values<std::int32_t>(input)[0], 80);
  EXPECT_EQ(held_out->source().sha256, training->source().sha256);
}

TEST_F(TextFiles, RefusalsSayProblemReasonRemedy) {
  std::string const text = write("t", std::string(50, 'x')).native();
  EXPECT_THAT(refusal((folder_ / "none").native()), AllOf(HasSubstr("No such file"), HasSubstr("check the path")));
  EXPECT_THAT(refusal(text, 8, 255), AllOf(HasSubstr("vocabulary 255"), HasSubstr("--vocab 256")));
  EXPECT_THAT(refusal(text, 8, 256, 1.0), HasSubstr("--held-out"));
  EXPECT_THAT(refusal(text, 8, 256, 0.1, DataPart::held_out), HasSubstr("no held-out window"));
  EXPECT_THAT(refusal("/dev/null"), HasSubstr("neither a file nor a folder"));
  fs::create_directory(folder_ / "nothing");
  EXPECT_THAT(refusal((folder_ / "nothing").native()), HasSubstr("it is empty"));
}

TEST_F(TextFiles, UnreadableFilesAreRefusedByName) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  fs::path const path = write("locked", "text");
  fs::permissions(path, fs::perms::none);
  EXPECT_THAT(refusal(path.native()), AllOf(HasSubstr("locked"), HasSubstr("Permission denied")));
}

}  // namespace
}  // namespace shardmark
