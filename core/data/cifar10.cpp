// CIFAR-10, binary version (Krizhevsky, "Learning multiple layers of features from tiny images", 2009).

#include <fmt/format.h>

#include "base/error.hpp"
#include "data/formats.hpp"
#include "data/images.hpp"
#include "data/utf8.hpp"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::int64_t, 3> image{3, 32, 32};
constexpr std::int64_t pixels = image[0] * image[1] * image[2], record_bytes = 1 + pixels, classes = 10;

/// The images of a batch, after a look at each label.
ImageRun parse(MappedFile const& file) {
  require_unpacked(file, "records of CIFAR-10's binary version");
  if (file.size() == 0 || file.size() % record_bytes != 0)
    refuse_file(file.path(),
                fmt::format("{} bytes; expected records of {}: a label and 3 x 32 x 32 bytes (10000 of them in the published files)",
                            file.size(), record_bytes),
                "unpack cifar-10-binary.tar.gz again");
  std::byte const* const bytes = file.bytes().data();
  std::int64_t const images = file.size() / record_bytes;
  for (std::int64_t i = 0; i < images; ++i)
    if (auto const label = std::to_integer<std::int64_t>(bytes[i * record_bytes]); label >= classes)
      refuse_file(file.path(), fmt::format("label {} of image {}; expected labels 0 to {}", label, i, classes - 1),
                  "give CIFAR-10's binary version (CIFAR-100 has two labels a record)");
  return {bytes + 1, bytes, record_bytes, record_bytes, images};
}

std::vector<std::string> names_of(DataPart part) {
  if (part == DataPart::held_out) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int batch = 1; batch <= 5; ++batch) names.push_back(fmt::format("data_batch_{}.bin", batch));
  return names;
}

void require_folder(fs::path const& folder) {
  std::error_code error;
  fs::file_status const status = fs::status(folder, error);
  if (error) refuse_unreadable(folder, error.value());
  if (!fs::is_directory(status))
    refuse_file(folder, "it is a file; expected a folder with data_batch_1.bin", "unpack cifar-10-binary.tar.gz and give its folder");
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(std::string const& folder, DataPart part) {
  require_folder(folder);
  std::vector<MappedFile> files;
  for (std::string const& name : names_of(part)) {
    fs::path const path = fs::path(folder) / name;
    std::error_code error;
    if (fs::status(path, error).type() == fs::file_type::not_found)
      refuse_file(folder, fmt::format("it has no {}; expected the six files of CIFAR-10's binary version", name),
                  "unpack cifar-10-binary.tar.gz and give its folder");
    files.emplace_back(path);
  }
  auto source = std::make_unique<MappedSource>("cifar10", escape_invalid_utf8(folder), std::move(files));
  std::vector<ImageRun> runs;
  Range all;
  for (MappedFile const& file : source->files()) all.end += runs.emplace_back(parse(file)).images;
  return std::make_unique<Images>(std::move(source), std::move(runs), all, image, classes);
}

}  // namespace shardmark
