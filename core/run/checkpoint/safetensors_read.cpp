#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "run/checkpoint/safetensors.hpp"
#include "run/checkpoint/slice_rows.hpp"
#include "run/checkpoint/stored_types.hpp"
#include "run/checkpoint/strict_json.hpp"

namespace shardmark {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t length_bytes = 8, longest_header = 100'000'000;  // the second is the limit of the format's own reader
constexpr int deepest = 2;                                               // header, tensor, shape
constexpr char const* metadata_name = "__metadata__";

/// Bytes [begin, end) of the data.
struct Located {
  StoredTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

class HeaderReader {
 public:
  explicit HeaderReader(MappedFile const& file) : file_(file) {}

  std::string_view text() const {
    std::uint64_t const size = file_.bytes().size();
    if (size < length_bytes) refuse(fmt::format("{} bytes", size), "a safetensors file, which begins with 8 bytes");
    std::uint64_t length = 0;
    for (std::uint64_t byte = 0; byte < length_bytes; ++byte) length |= std::uint64_t(file_.bytes()[byte]) << 8 * byte;
    if (length > longest_header) refuse(fmt::format("a header of {} bytes", length), fmt::format("at most {}", longest_header));
    if (length > size - length_bytes)
      refuse(fmt::format("{} bytes behind the header's length", size - length_bytes), fmt::format("a header of {} bytes", length));
    return {reinterpret_cast<char const*>(file_.bytes().data()) + length_bytes, std::size_t(length)};
  }

  Metadata metadata(Json const& json) const {
    Metadata out;
    if (!json.is_object()) refuse(fmt::format("{} {}", metadata_name, shown(json)), "an object of texts");
    for (auto const& [name, value] : json.items()) {
      if (!value.is_string()) refuse(fmt::format("{} {} in {}", shown(name), shown(value), metadata_name), "text");
      out[name] = value.get<std::string>();
    }
    return out;
  }

  Located locate(std::string const& name, Json const& json) const {
    Located out;
    out.tensor.name = name;
    std::string const which = shown(name);
    Json const &dtype = member(which, json, "dtype"), &shape = member(which, json, "shape"), &range = member(which, json, "data_offsets");
    auto const type = dtype.is_string() ? stored_type(dtype.get_ref<std::string const&>()) : std::nullopt;
    if (!type) refuse(fmt::format("dtype {} of {}", shown(dtype), which), "F64, F32, BF16, I64, I32 or U8");
    out.tensor.dtype = *type;
    std::uint64_t bytes = width(*type);
    for (std::uint64_t extent : numbers(which, shape)) {
      // A later extent may be 0, which makes any product small: all partial products have to fit.
      if (extent > std::uint64_t(std::numeric_limits<std::int64_t>::max()) || __builtin_mul_overflow(bytes, extent, &bytes))
        refuse(fmt::format("shape {} of {}", shown(shape), which), "one that 64 bits can count");
      out.tensor.shape.push_back(std::int64_t(extent));
    }
    auto const ends = numbers(which, range);
    if (ends.size() != 2 || ends[0] > ends[1] || ends[1] - ends[0] != bytes)
      refuse(fmt::format("data_offsets {} of {}", shown(range), which), fmt::format("a range of {} bytes", bytes));
    out.begin = ends[0];
    out.end = ends[1];
    return out;
  }

  /// Ranges cover the data once.
  void require_cover(std::vector<Located> places, std::uint64_t bytes) const {
    std::sort(places.begin(), places.end(),
              [](Located const& a, Located const& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    std::uint64_t at = 0;
    for (Located const& place : places) {
      if (place.begin != at)
        refuse(fmt::format("{} at byte {} of the data", shown(place.tensor.name), place.begin),
               fmt::format("byte {}: tensors that neither overlap nor leave holes", at));
      at = place.end;
    }
    if (at != bytes) refuse(fmt::format("{} bytes of data", bytes), fmt::format("the {} bytes that its tensors have", at));
  }

 private:
  [[noreturn]] void refuse(std::string const& found, std::string const& expected) const { refuse_content(file_.path(), found, expected); }

  Json const& member(std::string const& which, Json const& json, char const* name) const {
    auto const found = json.is_object() ? json.find(name) : json.end();
    if (!json.is_object() || found == json.end()) refuse(fmt::format("tensor {} without {}", which, name), "dtype, shape and data_offsets");
    return *found;
  }

  std::vector<std::uint64_t> numbers(std::string const& which, Json const& list) const {
    std::vector<std::uint64_t> out;
    bool good = list.is_array();
    for (std::size_t i = 0; good && i < list.size(); ++i) {
      good = list[i].is_number_unsigned();
      if (good) out.push_back(list[i].get<std::uint64_t>());
    }
    if (!good) refuse(fmt::format("{} of {}", shown(list), which), "a list of counts");
    return out;
  }

  MappedFile const& file_;
};

}  // namespace

SafetensorsFile::SafetensorsFile(std::filesystem::path const& path) : file_(path) {
  HeaderReader const reader(file_);
  std::string_view const text = reader.text();
  Json const header = parse_object(text, deepest, path, "the header");
  std::uint64_t const data = length_bytes + text.size();
  std::vector<Located> places;
  for (auto const& [name, json] : header.items()) {
    if (name == metadata_name)
      metadata_ = reader.metadata(json);
    else
      places.push_back(reader.locate(name, json));
  }
  reader.require_cover(places, file_.bytes().size() - data);
  for (Located& place : places) {
    std::string name = place.tensor.name;
    tensors_.emplace(std::move(name), std::pair(std::move(place.tensor), std::int64_t(data + place.begin)));
  }
}

std::vector<StoredTensor> SafetensorsFile::tensors() const {
  std::vector<StoredTensor> out;
  for (auto const& [name, at] : tensors_) out.push_back(at.first);
  return out;
}

void SafetensorsFile::require(std::vector<StoredTensor> const& tensors) const {
  auto const described = [](StoredTensor const& tensor) {
    return fmt::format("{} as {} [{}]", shown(tensor.name), stored_name(tensor.dtype), fmt::join(tensor.shape, ", "));
  };
  for (StoredTensor const& wanted : tensors) {
    auto const found = tensors_.find(wanted.name);
    if (found == tensors_.end()) refuse_content(file_.path(), fmt::format("no {}", shown(wanted.name)), described(wanted));
    if (found->second.first != wanted) refuse_content(file_.path(), described(found->second.first), described(wanted));
  }
  if (tensors_.size() == tensors.size()) return;
  for (auto const& [name, at] : tensors_)
    if (std::none_of(tensors.begin(), tensors.end(), [&, &known = name](StoredTensor const& wanted) { return wanted.name == known; }))
      refuse_content(file_.path(), described(at.first), "no tensor of this name");
}

void SafetensorsFile::read(std::string_view name, Slice const& slice, std::span<std::byte> piece) const {
  auto const found = tensors_.find(name);
  expect(found != tensors_.end(), "a tensor that the file has");
  auto const& [tensor, begin] = found->second;
  each_run(tensor.shape, slice, width(tensor.dtype), piece.size(),
           [&, first = begin](std::int64_t from, std::int64_t to, std::size_t bytes) {
             if (bytes > 0) std::memcpy(piece.data() + to, file_.bytes().data() + first + from, bytes);
           });
}

}  // namespace shardmark
