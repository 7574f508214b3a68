// Text: the raw bytes of a file or a folder, as tokens.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/file.hpp"
#include "data/sha256.hpp"
#include "data/split.hpp"
#include "data/utf8.hpp"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t byte_values = 256;

/// Appends all bytes of a file to `bytes`.
void append_file(fs::path const& path, std::vector<std::byte>& bytes) {
  File const file(path);
  std::size_t used = bytes.size();
  // One byte more than the file's size, so that one read past the end finds it without growing the vector again.
  bytes.resize(used + std::size_t(file.size()) + 1);
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
  if (bytes.empty()) refuse_file(path, "it is empty", "give a file or folder with text");
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

std::unique_ptr<Dataset> open_text(std::string const& path, std::int64_t seq, std::int64_t vocab, double held_out, DataPart part) {
  require_input(vocab >= byte_values,
                {fmt::format("vocabulary {} for text", vocab), "its tokens are bytes, of which there are 256", "give --vocab 256 or more"});
  std::vector<std::byte> bytes = read_all(path);
  std::int64_t const tokens = std::int64_t(bytes.size());
  std::string const shown = escape_invalid_utf8(path);
  Range const windows = windows_of(tokens, seq, held_out, part, shown);
  DataSource source{.kind = "text", .path = shown, .bytes = tokens, .sha256 = sha256_hex(bytes)};
  return std::make_unique<Text>(std::move(bytes), std::move(source), seq, vocab, windows);
}

}  // namespace shardmark
