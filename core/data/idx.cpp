// IDX (LeCun, Cortes and Burges, "The MNIST database"): two zero bytes, a type, the number of dimensions; each dimension as a big-endian
// 32-bit number; the elements, the last dimension fastest.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "data/formats.hpp"
#include "data/images.hpp"
#include "data/split.hpp"

namespace shardmark {
namespace {

constexpr std::uint32_t magic_of_images = 2051, magic_of_labels = 2049;
constexpr std::int64_t least_classes = 10;

/// What one of the two files has to be.
struct Expected {
  std::uint32_t magic;
  std::string_view name;
  std::size_t dimensions() const { return magic & 0xff; }
  std::string text() const { return fmt::format("magic {} ({})", magic, name); }
};
constexpr Expected images_expected{magic_of_images, "images, unsigned bytes in 3 dimensions"};
constexpr Expected labels_expected{magic_of_labels, "labels, unsigned bytes in 1 dimension"};

std::uint32_t big_endian(std::span<std::byte const> bytes, std::size_t word) {
  std::uint32_t value = 0;
  for (std::byte b : bytes.subspan(4 * word, 4)) value = value << 8 | std::to_integer<std::uint32_t>(b);
  return value;
}

std::string_view type_name(std::uint32_t type) {
  switch (type) {
    case 0x08:
      return "unsigned bytes";
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "32-bit floats";
    case 0x0E:
      return "64-bit floats";
    default:
      return "no type of IDX";
  }
}

[[noreturn]] void refuse_magic(MappedFile const& file, std::uint32_t found, Expected expected) {
  std::string what = fmt::format("magic {}", found), remedy = "give an IDX file";
  std::uint32_t const type = found >> 8 & 0xff;
  bool const is_idx = found >> 16 == 0, reversed = (found & 0xffff) == 0 && (found >> 16 & 0xff) == 0x08;
  if (found == magic_of_images || found == magic_of_labels) {
    what += found == magic_of_images ? " (images)" : " (labels)";
    remedy = "give idx:IMAGES,LABELS in this order";
  } else if (reversed) {
    what += " (a header with its bytes swapped)";
    remedy = "IDX is big-endian; write it again";
  } else if (is_idx) {
    what += fmt::format(" (type {:#04x}, {}, in {} dimensions)", type, type_name(type), found & 0xff);
    remedy = type == 0x08 ? "give images of one channel, and one label each" : "convert it to unsigned bytes";
  }
  refuse_file(file.path(), fmt::format("{}; expected {}", what, expected.text()), remedy);
}

/// The product, unless it needs more than 63 bits.
std::optional<std::int64_t> product_of(std::vector<std::int64_t> const& factors) {
  std::int64_t product = 1;
  for (std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  return product;
}

/// An IDX file whose header agrees with its size.
struct Idx {
  std::vector<std::int64_t> shape;
  std::span<std::byte const> elements;
};

Idx parse(MappedFile const& file, Expected expected) {
  require_unpacked(file, expected.text());
  std::size_t const header = 4 * (1 + expected.dimensions());
  std::span<std::byte const> const bytes = file.bytes();
  if (bytes.size() >= 4 && big_endian(bytes, 0) != expected.magic) refuse_magic(file, big_endian(bytes, 0), expected);
  if (bytes.size() < header)
    refuse_file(file.path(), fmt::format("{} bytes; expected {} and a header of {} bytes", bytes.size(), expected.text(), header),
                "copy it again");
  Idx idx;
  for (std::size_t d = 0; d < expected.dimensions(); ++d) idx.shape.push_back(big_endian(bytes, 1 + d));
  idx.elements = bytes.subspan(header);
  std::string const shape = fmt::format("{}", fmt::join(idx.shape, " x "));
  if (std::count(idx.shape.begin(), idx.shape.end(), 0) > 0)
    refuse_file(file.path(), fmt::format("it is empty: its header says {}; expected at least 1 of each", shape), "");
  auto const declared = product_of(idx.shape);
  if (declared != std::int64_t(idx.elements.size()))
    refuse_file(file.path(),
                fmt::format("its header says {} = {} bytes; found {} after the header", shape,
                            declared ? std::to_string(*declared) : "more than 2^63", idx.elements.size()),
                "copy or unpack it again");
  return idx;
}

}  // namespace

std::unique_ptr<Dataset> open_idx(std::string const& images, std::string const& labels, double held_out, DataPart part) {
  std::vector<MappedFile> files;
  files.emplace_back(images);
  files.emplace_back(labels);
  std::string const shown = files[0].shown() + "," + files[1].shown();
  auto source = std::make_unique<MappedSource>("idx", shown, std::move(files));
  Idx const pixels = parse(source->files()[0], images_expected), classes = parse(source->files()[1], labels_expected);
  std::int64_t const count = pixels.shape[0], size = pixels.shape[1] * pixels.shape[2];
  if (classes.shape[0] != count)
    refuse_file(source->files()[1].path(),
                fmt::format("{} labels; expected {}, one for each image in {}", classes.shape[0], count, source->files()[0].shown()),
                "give files that belong together");
  std::byte const highest = *std::max_element(classes.elements.begin(), classes.elements.end());
  ImageRun const run{pixels.elements.data(), classes.elements.data(), size, 1, count};
  return std::make_unique<Images>(std::move(source), std::vector{run}, part_of(count, held_out, part, shown, "image"),
                                  std::array<std::int64_t, 3>{1, pixels.shape[1], pixels.shape[2]},
                                  std::max(least_classes, std::to_integer<std::int64_t>(highest) + 1));
}

}  // namespace shardmark
