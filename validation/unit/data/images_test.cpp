#include "data/formats.hpp"
#include "files.hpp"

namespace shardmark {
namespace {

using test::read_sample;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string big_endian(std::vector<std::uint32_t> const& words) {
  std::string bytes;
  for (std::uint32_t word : words)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += char(word >> shift & 0xff);
  return bytes;
}

class IdxFiles : public test::DataFiles {
 protected:
  // Four images of 3 x 2, and labels 0..3.
  std::string const pixels_ = [] {
    std::string bytes;
    for (int i = 0; i < 24; ++i) bytes += char(i == 23 ? 255 : 10 * i);
    return bytes;
  }();
  std::string const images_ = big_endian({2051, 4, 3, 2}) + pixels_, labels_ = big_endian({2049, 4}) + std::string("\0\1\2\3", 4);

  std::unique_ptr<Dataset> open(std::string const& images, std::string const& labels, double held_out = 0,
                                DataPart part = DataPart::training) const {
    return open_idx(write("images", images).native(), write("labels", labels).native(), held_out, part);
  }
  std::string refusal(std::string const& images, std::string const& labels) const {
    return test::refusal_of([&] { open(images, labels); });
  }
};

TEST_F(IdxFiles, case_122_PixelsAndLabelsAreExact) {
  auto const data = open(images_, labels_);
  ASSERT_EQ(data->size(), 4);
  EXPECT_EQ(data->shape().input, std::vector<std::int64_t>{6});
  EXPECT_THAT(data->shape().image, ElementsAre(1, 3, 2));
  EXPECT_EQ(data->shape().classes, 10);
  for (int image = 0; image < 4; ++image) {
    auto const [input, target] = read_sample<float>(*data, image);
    EXPECT_THAT(target, ElementsAre(image));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(input[std::size_t(i)], float(std::uint8_t(pixels_[std::size_t(6 * image + i)])) / 255.0f);
  }
  EXPECT_EQ(read_sample<float>(*data, 0).first.front(), 0.0f);
  EXPECT_EQ(read_sample<float>(*data, 3).first.back(), 1.0f);
  EXPECT_EQ(data->source().kind, "idx");
  EXPECT_EQ(data->source().bytes, 16 + 24 + 8 + 4);
  EXPECT_EQ(data->source().sha256.size(), 64u);
}

TEST_F(IdxFiles, case_122_PackedFilesAreNamed) {
  std::string const packed = "\x1f\x8b\x08" + std::string(30, 'x');
  EXPECT_THAT(refusal(packed, labels_),
              AllOf(HasSubstr("images"), HasSubstr("gzip's magic 1f 8b"), HasSubstr("expected magic 2051"), HasSubstr("gunzip")));
  EXPECT_THAT(refusal(images_, packed), AllOf(HasSubstr("/labels"), HasSubstr("gzip's magic 1f 8b"), HasSubstr("expected magic 2049")));
}

TEST_F(IdxFiles, case_122_SizesThatAreNotTheFilesAreRefused) {
  std::string short_images = images_, short_labels = labels_;
  short_images.pop_back();
  short_labels.pop_back();
  EXPECT_THAT(refusal(short_images, labels_), AllOf(HasSubstr("/images"), HasSubstr("4 x 3 x 2 = 24 bytes"), HasSubstr("found 23")));
  EXPECT_THAT(refusal(images_ + "x", labels_), HasSubstr("found 25"));
  EXPECT_THAT(refusal(images_, short_labels), AllOf(HasSubstr("/labels"), HasSubstr("4 = 4 bytes"), HasSubstr("found 3")));
  EXPECT_THAT(refusal(images_.substr(0, 11), labels_), AllOf(HasSubstr("11 bytes"), HasSubstr("header of 16 bytes")));
  EXPECT_THAT(refusal("", labels_), AllOf(HasSubstr("/images"), HasSubstr("0 bytes"), HasSubstr("expected magic 2051")));
}

TEST_F(IdxFiles, case_122_AbsurdDimensionsAreRefused) {
  EXPECT_THAT(refusal(big_endian({2051, 0x80000000, 3, 2}) + pixels_, labels_),
              AllOf(HasSubstr("2147483648 x 3 x 2 = 12884901888 bytes"), HasSubstr("found 24")));
  EXPECT_THAT(refusal(big_endian({2051, 4, 0x80000000, 0x80000000}) + pixels_, labels_), HasSubstr("more than 2^63 bytes"));
  EXPECT_THAT(refusal(big_endian({2051, 0x40000001, 4, 6}) + pixels_, labels_), HasSubstr("25769803800 bytes; found 24"));  // 24 in 32 bits
  for (std::uint32_t empty : {0u, 1u, 2u}) {
    std::vector<std::uint32_t> header{2051, 4, 3, 2};
    header[1 + empty] = 0;
    EXPECT_THAT(refusal(big_endian(header), labels_), HasSubstr("it is empty"));
  }
}

TEST_F(IdxFiles, case_122_FilesThatDontBelongTogetherAreRefused) {
  EXPECT_THAT(refusal(images_, big_endian({2049, 3}) + std::string(3, '\1')),
              AllOf(HasSubstr("/labels"), HasSubstr("3 labels; expected 4")));
  EXPECT_THAT(refusal(labels_, images_), AllOf(HasSubstr("magic 2049 (labels); expected magic 2051"), HasSubstr("in this order")));
}

TEST_F(IdxFiles, case_122_OtherTypesAreNamed) {
  EXPECT_THAT(refusal(big_endian({0x0D03, 4, 3, 2}) + std::string(96, 'x'), labels_),
              AllOf(HasSubstr("type 0x0d, 32-bit floats"), HasSubstr("expected magic 2051")));
  EXPECT_THAT(refusal(big_endian({0x0804, 4, 3, 2, 1}) + pixels_, labels_), HasSubstr("in 4 dimensions"));
  EXPECT_THAT(refusal(big_endian({0x03080000, 4, 3, 2}) + pixels_, labels_), HasSubstr("bytes swapped"));
  EXPECT_THAT(refusal("GIF89a" + pixels_, labels_), HasSubstr("expected magic 2051"));
}

TEST_F(IdxFiles, ClassesFollowTheLargestLabel) {
  EXPECT_EQ(open(images_, big_endian({2049, 4}) + std::string("\0\1\2\x1a", 4))->shape().classes, 27);
  EXPECT_EQ(open(images_, big_endian({2049, 4}) + std::string("\0\1\2\xff", 4))->shape().classes, 256);
}

TEST_F(IdxFiles, HeldOutImagesAreTheLastOnes) {
  EXPECT_EQ(open(images_, labels_, 0.25)->size(), 3);
  auto const held_out = open(images_, labels_, 0.25, DataPart::held_out);
  ASSERT_EQ(held_out->size(), 1);
  EXPECT_THAT(read_sample<float>(*held_out, 0).second, ElementsAre(3));
  EXPECT_THAT(test::refusal_of([&] { open(images_, labels_, 0.1, DataPart::held_out); }), HasSubstr("no held-out image"));
}

class Cifar10Folders : public test::DataFiles {
 protected:
  /// `images` records; pixel i of image n is (i + n + first_label) mod 256.
  static std::string batch(int images, int first_label) {
    std::string bytes;
    for (int n = 0; n < images; ++n) {
      bytes += char((first_label + n) % 10);
      for (int i = 0; i < 3072; ++i) bytes += char((i + n + first_label) % 256);
    }
    return bytes;
  }
  void SetUp() override {
    test::DataFiles::SetUp();
    for (int b = 1; b <= 5; ++b) write("data_batch_" + std::to_string(b) + ".bin", batch(b, b));
    write("test_batch.bin", batch(3, 7));
  }
  std::string refusal(DataPart part = DataPart::training) const {
    return test::refusal_of([&] { open_cifar10(folder_.native(), part); });
  }
};

TEST_F(Cifar10Folders, ImagesOfAllBatchesInOrder) {
  auto const data = open_cifar10(folder_.native(), DataPart::training);
  ASSERT_EQ(data->size(), 15);
  EXPECT_EQ(data->shape().input, std::vector<std::int64_t>{3072});
  EXPECT_THAT(data->shape().image, ElementsAre(3, 32, 32));
  EXPECT_EQ(data->shape().classes, 10);
  std::int64_t sample = 0;
  for (int b = 1; b <= 5; ++b)
    for (int n = 0; n < b; ++n) {
      auto const [input, target] = read_sample<float>(*data, sample++);
      EXPECT_THAT(target, ElementsAre((b + n) % 10));
      for (int i : {0, 1, 1024, 3071}) EXPECT_EQ(input[std::size_t(i)], float((i + n + b) % 256) / 255.0f);
    }
  auto const held_out = open_cifar10(folder_.native(), DataPart::held_out);
  ASSERT_EQ(held_out->size(), 3);
  EXPECT_THAT(read_sample<float>(*held_out, 2).second, ElementsAre(9));
}

TEST_F(Cifar10Folders, DamagedBatchesAreRefusedByName) {
  write("data_batch_3.bin", batch(2, 0) + "x");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("6147 bytes"), HasSubstr("records of 3073")));
  write("data_batch_3.bin", "");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("0 bytes")));
  write("data_batch_3.bin", batch(1, 0) + char(10) + std::string(3072, '\0'));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("label 10 of image 1"), HasSubstr("0 to 9")));
  write("data_batch_3.bin", "\x1f\x8b\x08" + std::string(3070, 'x'));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("gzip")));
  std::filesystem::remove(folder_ / "data_batch_3.bin");
  EXPECT_THAT(refusal(), HasSubstr("it has no data_batch_3.bin"));
  std::filesystem::remove(folder_ / "test_batch.bin");
  EXPECT_THAT(refusal(DataPart::held_out), HasSubstr("it has no test_batch.bin"));
}

TEST_F(Cifar10Folders, OnlyFoldersAreTaken) {
  EXPECT_THAT(test::refusal_of([&] { open_cifar10((folder_ / "test_batch.bin").native(), DataPart::training); }),
              HasSubstr("it is a file"));
  EXPECT_THAT(test::refusal_of([&] { open_cifar10((folder_ / "none").native(), DataPart::training); }), HasSubstr("No such file"));
}

}  // namespace
}  // namespace shardmark
