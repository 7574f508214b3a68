#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/utf8.hpp"
#include "run/checkpoint/safetensors.hpp"
#include "run/checkpoint/slice_rows.hpp"
#include "run/checkpoint/stored_types.hpp"

namespace shardmark {
namespace {

constexpr std::size_t alignment = 8;  // of the data in the file, as the format's own writer has it

[[noreturn]] void fail(std::filesystem::path const& path, int error) {
  throw RankFailure(fmt::format("can't write {} ({})", escape_invalid_utf8(path.native()), std::strerror(error)));
}

std::string little_endian(std::uint64_t value) {
  std::string out;
  for (int byte = 0; byte < 8; ++byte) out += char(value >> 8 * byte & 0xff);
  return out;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::vector<StoredTensor> tensors, Metadata const& metadata)
    : path_(std::move(path)), file_(path_.native(), O_WRONLY | O_CREAT | O_EXCL) {
  if (file_ < 0) fail(path_, errno);
  // Wide types first, so that every element lies on a multiple of its width.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](StoredTensor const& a, StoredTensor const& b) { return width(a.dtype) > width(b.dtype); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (StoredTensor const& tensor : tensors) {
    std::int64_t const begin = missing_;
    missing_ += elements_of(tensor.shape) * std::int64_t(width(tensor.dtype));
    header[tensor.name] = {
        {"dtype", stored_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", std::array<std::int64_t, 2>{begin, missing_}}};
    bool const added = tensors_.emplace(tensor.name, std::pair(tensor, begin)).second;
    expect(added, "each tensor has a name of its own");
  }
  std::string text = header.dump();
  text.append((alignment - text.size() % alignment) % alignment, ' ');
  text = little_endian(text.size()) + text;
  for (auto& [name, at] : tensors_) at.second += std::int64_t(text.size());
  if (int const error = write_all(file_, text)) fail(path_, error);
}

void SafetensorsWriter::write(std::string_view name, Slice const& slice, std::span<std::byte const> piece) {
  auto const found = tensors_.find(name);
  expect(found != tensors_.end(), "a tensor that the file was made for");
  auto const& [tensor, begin] = found->second;
  each_run(tensor.shape, slice, width(tensor.dtype), piece.size(),
           [&, first = begin](std::int64_t to, std::int64_t from, std::size_t bytes) {
             if (int const error = write_all_at(file_, piece.subspan(std::size_t(from), bytes), first + to)) fail(path_, error);
           });
  missing_ -= std::int64_t(piece.size());
}

void SafetensorsWriter::finish() {
  invariant(missing_ == 0, [&] { return fmt::format("{} bytes of {} were not written", missing_, path_.native()); });
  if (int const error = sync_file(file_)) fail(path_, error);
}

}  // namespace shardmark
