// Damaged files of tensors: each is refused with BadRequest or read to its end, never a crash, a hang or memory beyond the file's size.

#include "files.hpp"
#include "validation/unit/data/mutate.hpp"

namespace shardmark {
namespace {

constexpr int mutations = 2000;

class SafetensorsFuzz : public test::DataFiles {
 protected:
  /// Reads every tensor of a file that is accepted. @return how often it was
  static int outcomes(std::filesystem::path const& path) {
    try {
      SafetensorsFile const file(path);
      for (StoredTensor const& tensor : file.tensors()) {
        std::size_t bytes = width(tensor.dtype);
        for (std::int64_t extent : tensor.shape) bytes *= std::size_t(extent);
        EXPECT_LE(bytes, std::filesystem::file_size(path)) << "more than the file holds";
        std::vector<std::byte> data(bytes);
        file.read(tensor.name, {}, data);
      }
      return 1;
    } catch (BadRequest const& refused) {
      EXPECT_NE(std::string(refused.what()).find(path.native()), std::string::npos) << refused.what();
      EXPECT_LT(std::string(refused.what()).size(), 500u) << refused.what();
      return 0;
    }
  }
};

TEST_F(SafetensorsFuzz, DamagedFiles) {
  std::string const header =
      R"({"__metadata__":{"a":"b"},"m":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
      R"("v":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"z":{"dtype":"U8","shape":[0],"data_offsets":[32,32]}})";
  std::string const valid = test::safetensors(header, std::string(32, '\x3f'));
  std::mt19937 random(4);
  int accepted = 0;
  for (int i = 0; i < mutations; ++i)
    accepted += outcomes(write("t", test::mutate(valid, random, i % 4 == 0 ? valid.size() : header.size() + 8)));
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, mutations / 2);
}

TEST_F(SafetensorsFuzz, CutAtEveryByte) {
  std::string const valid = test::safetensors(R"({"m":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", std::string(8, '\x3f'));
  for (std::size_t size = 0; size < valid.size(); ++size) EXPECT_EQ(outcomes(write("t", valid.substr(0, size))), 0) << size;
  EXPECT_EQ(outcomes(write("t", valid)), 1);
}

}  // namespace
}  // namespace shardmark
