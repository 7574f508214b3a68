// Text: the raw bytes of a file or a folder, as tokens.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/sha256.hpp"
#include "data/utf8.hpp"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t byte_values = 256;

[[noreturn]] void refuse(fs::path const& path, std::string const& reason, std::string const& remedy) {
  fail_input({fmt::format("can't read the text {}", escape_invalid_utf8(path.native())), reason, remedy});
}

[[noreturn]] void refuse_unreadable(fs::path const& path, int error) {
  refuse(path, std::strerror(error), error == ENOENT ? "check the path after text:" : "check the permissions");
}

class File {
 public:
  explicit File(fs::path const& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse_unreadable(path, errno);
  }
  ~File() { ::close(descriptor_); }
  File(File const&) = delete;
  File& operator=(File const&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Appends all bytes of a file to `bytes`.
void append_file(fs::path const& path, std::vector<std::byte>& bytes) {
  File const file(path);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) refuse_unreadable(path, errno);
  if (!S_ISREG(status.st_mode)) refuse(path, "neither a file nor a folder", "give a regular file or a folder of them");
  std::size_t used = bytes.size();
  // One byte more than the file's size, so that one read past the end finds it without growing the vector again.
  bytes.resize(used + std::size_t(status.st_size) + 1);
  for (;;) {
    if (used == bytes.size()) bytes.resize(2 * bytes.size());
    ssize_t const got = ::read(file.descriptor(), bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_unreadable(path, errno);
    if (got == 0) break;
    used += std::size_t(got);
  }
  bytes.resize(used);
}

/// Regular files below `folder`, in the byte order of their paths.
std::vector<fs::path> files_below(fs::path const& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    fs::file_status const status = entry->symlink_status(error);
    if (error) break;
    if (fs::is_regular_file(status)) files.push_back(entry->path());
  }
  if (error) refuse_unreadable(folder, error.value());
  std::sort(files.begin(), files.end(), [](fs::path const& a, fs::path const& b) { return a.native() < b.native(); });
  return files;
}

std::vector<std::byte> read_all(fs::path const& path) {
  std::error_code error;
  fs::file_status const status = fs::status(path, error);
  if (error) refuse_unreadable(path, error.value());
  std::vector<std::byte> bytes;
  if (fs::is_directory(status)) {
    for (fs::path const& file : files_below(path)) append_file(file, bytes);
  } else {
    append_file(path, bytes);
  }
  if (bytes.empty()) refuse(path, "it is empty", "give a file or folder with text");
  return bytes;
}

class Text final : public Dataset {
 public:
  Text(std::vector<std::byte> bytes, DataSource source, std::int64_t seq, std::int64_t vocab, Range windows)
      : bytes_(std::move(bytes)), source_(std::move(source)), windows_(windows) {
    shape_ = {DType::i32, DType::i32, {seq}, {seq}, vocab};
  }

  std::int64_t size() const override { return windows_.size(); }
  SampleShape const& shape() const override { return shape_; }
  DataSource const& source() const override { return source_; }
  std::int64_t counted(std::int64_t) const override { return shape_.input[0]; }

  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    expect(sample >= 0 && sample < size(), "a sample of the data set");
    std::size_t const seq = std::size_t(shape_.input[0]), first = std::size_t(windows_.begin + sample) * seq;
    widen(first, seq, input);
    widen(first + 1, seq, target);
  }

 private:
  void widen(std::size_t first, std::size_t count, std::span<std::byte> out) const {
    for (std::size_t i = 0; i < count; ++i) {
      auto const token = std::to_integer<std::int32_t>(bytes_[first + i]);
      std::memcpy(out.data() + i * sizeof token, &token, sizeof token);
    }
  }

  std::vector<std::byte> bytes_;
  DataSource source_;
  Range windows_;
  SampleShape shape_;
};

}  // namespace

std::unique_ptr<Dataset> open_text(std::string const& path, std::int64_t seq, std::int64_t vocab, double held_out, Part_of_text part) {
  expect(seq > 0, "a window has positions");
  require_input(vocab >= byte_values,
                {fmt::format("vocabulary {} for text", vocab), "its tokens are bytes, of which there are 256", "give --vocab 256 or more"});
  require_input(held_out >= 0 && held_out < 1,
                {fmt::format("held-out share {}", held_out), "it is a fraction of the windows", "give --held-out at least 0 and below 1"});
  std::vector<std::byte> bytes = read_all(path);
  std::int64_t const tokens = std::int64_t(bytes.size());
  std::string const shown = escape_invalid_utf8(path);
  require_input(tokens > seq,
                {fmt::format("{} has {} tokens for windows of --seq {}", shown, tokens, seq),
                 fmt::format("one window needs at least {} tokens: {} inputs, and the target after the last one", seq + 1, seq),
                 "give a longer text or a smaller --seq"});
  std::int64_t const windows = (tokens - 1) / seq;
  std::int64_t const split = windows - std::int64_t(std::floor(held_out * double(windows)));
  Range const range = part == Part_of_text::training ? Range{0, split} : Range{split, windows};
  require_input(range.size() > 0,
                {fmt::format("{} has no held-out window", shown), fmt::format("--held-out {} of {} windows", held_out, windows),
                 "raise --held-out or give a longer text"});
  DataSource source{.kind = "text", .path = shown, .bytes = tokens, .sha256 = sha256_hex(bytes)};
  return std::make_unique<Text>(std::move(bytes), std::move(source), seq, vocab, range);
}

}  // namespace shardmark
