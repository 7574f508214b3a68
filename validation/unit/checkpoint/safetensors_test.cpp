// What is written is read back; what Python's library wrote is read; everything else is refused with one message.

#include <cstdlib>

#include "files.hpp"

namespace shardmark {
namespace {

using testing::HasSubstr;

class Safetensors : public test::DataFiles {
 protected:
  /// The message with which a file of this header and data is refused.
  std::string refusal(std::string const& header, std::string const& data = "") const {
    auto const path = write("bad.safetensors", test::safetensors(header, data));
    return test::refusal_of([&] { SafetensorsFile const file(path); });
  }
};

TEST_F(Safetensors, WhatIsWrittenIsReadBack) {
  std::vector<float> const matrix{1, -2, 3.5f, 4, 5, -0.f}, none;
  std::vector<double> const vector{0.1, 1e300, -5};
  std::vector<std::uint8_t> const bytes{0, 255, 3};
  auto const path = folder_ / "own.safetensors";
  std::vector<StoredTensor> const tensors{
      {"bytes \"\xc3\xa9\"", DType::u8, {3}}, {"matrix", DType::f32, {2, 3}}, {"none", DType::f32, {0, 4}}, {"vector", DType::f64, {3}}};
  SafetensorsWriter writer(path, tensors, {{"step", "6"}});
  writer.write("vector", {}, test::bytes_of(vector));
  writer.write(tensors[0].name, {}, test::bytes_of(bytes));
  writer.write("none", {}, test::bytes_of(none));
  writer.write("matrix", {}, test::bytes_of(matrix));
  writer.finish();

  SafetensorsFile const file(path);
  EXPECT_EQ(file.tensors(), tensors);
  EXPECT_EQ(file.metadata().at("step"), "6");
  EXPECT_EQ(test::read_all<double>(file, "vector", 3), vector);
  EXPECT_EQ(test::read_all<std::uint8_t>(file, tensors[0].name, 3), bytes);
  EXPECT_EQ(test::read_all<float>(file, "none", 0), none);
  auto const read = test::read_all<float>(file, "matrix", 6);
  EXPECT_EQ(std::memcmp(read.data(), matrix.data(), sizeof(float) * 6), 0) << "the sign of zero as well";
  EXPECT_THROW(SafetensorsWriter(path, tensors), RankFailure) << "never written over";
}

TEST_F(Safetensors, PiecesOfAnyDimensionMakeTheFullTensor) {
  std::vector<std::int32_t> full(2 * 3 * 4);
  for (std::size_t i = 0; i < full.size(); ++i) full[i] = std::int32_t(i);
  for (int dim = 0; dim < 3; ++dim) {
    auto const path = folder_ / ("dim" + std::to_string(dim));
    StoredTensor const tensor{"t", DType::i32, {2, 3, 4}};
    std::int64_t const extent = tensor.shape[std::size_t(dim)];
    // The elements whose coordinate along `dim` lies in the slice.
    auto const piece_of = [&](Slice const& slice) {
      std::vector<std::int32_t> out;
      for (std::int32_t i : full) {
        std::int64_t const at[] = {i / 12, i / 4 % 3, i % 4};
        if (at[dim] >= slice.begin && at[dim] < slice.end) out.push_back(i);
      }
      return out;
    };
    SafetensorsWriter writer(path, {tensor});
    for (Slice const& slice : {Slice{dim, 1, extent}, Slice{dim, 0, 1}}) writer.write("t", slice, test::bytes_of(piece_of(slice)));
    writer.finish();
    SafetensorsFile const file(path);
    EXPECT_EQ(test::read_all<std::int32_t>(file, "t", full.size()), full) << dim;
    Slice const last{dim, extent - 1, extent};
    std::vector<std::int32_t> read(piece_of(last).size());
    file.read("t", last, std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, piece_of(last)) << dim;
  }
}

TEST_F(Safetensors, AFileThatLacksAPieceIsNoFile) {
  SafetensorsWriter writer(folder_ / "part", {{"t", DType::i32, {2, 3}}});
  writer.write("t", {0, 0, 1}, test::bytes_of(std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_THROW(writer.write("t", {0, 1, 2}, test::bytes_of(std::vector<std::int32_t>{1, 2})), Error) << "too small a piece";
  EXPECT_THROW(writer.write("u", {}, {}), Error);
}

TEST_F(Safetensors, WhatPythonWroteIsRead) {
  SafetensorsFile const file(std::filesystem::path(std::getenv("SHARDMARK_FIXTURES")) / "python.safetensors");
  file.require({{"doubles", DType::f64, {3}},
                {"matrix", DType::f32, {2, 3}},
                {"scalar", DType::f32, {}},
                {"nothing", DType::f32, {0, 4}},
                {"halves", DType::bf16, {2, 2}},
                {"large", DType::i64, {2}},
                {"small", DType::i32, {3}},
                {"bytes", DType::u8, {3}}});
  EXPECT_EQ(test::read_all<double>(file, "doubles", 3), (std::vector<double>{0.1, -2.0, 1e300}));
  EXPECT_EQ(test::read_all<float>(file, "matrix", 6), (std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(test::read_all<float>(file, "scalar", 1), std::vector<float>{-7.5});
  EXPECT_EQ(test::read_all<std::uint16_t>(file, "halves", 4), (std::vector<std::uint16_t>{0x3f80, 0xc000, 0x3f00, 0x4040}));
  EXPECT_EQ(test::read_all<std::int64_t>(file, "large", 2), (std::vector<std::int64_t>{(std::int64_t(1) << 40) + 1, -1}));
  EXPECT_EQ(test::read_all<std::int32_t>(file, "small", 3), (std::vector<std::int32_t>{3, -4, 5}));
  EXPECT_EQ(test::read_all<std::uint8_t>(file, "bytes", 3), (std::vector<std::uint8_t>{0, 255, 7}));
  EXPECT_EQ(file.metadata().at("\xc3\xa9"), "\xe2\x82\xac");
}

TEST_F(Safetensors, OtherTensorsThanExpectedAreNamed) {
  auto const path = write("t.safetensors", test::safetensors(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678"));
  SafetensorsFile const file(path);
  auto const refused = [&](std::vector<StoredTensor> const& wanted) { return test::refusal_of([&] { file.require(wanted); }); };
  EXPECT_EQ(refused({{"t", DType::f32, {2}}}), "accepted");
  EXPECT_THAT(refused({{"t", DType::f32, {2, 1}}}), HasSubstr(R"(found "t" as F32 [2]; expected "t" as F32 [2, 1])"));
  EXPECT_THAT(refused({{"t", DType::i32, {2}}}), HasSubstr("expected \"t\" as I32 [2]"));
  EXPECT_THAT(refused({{"t", DType::f32, {2}}, {"u", DType::f32, {1}}}), HasSubstr("found no \"u\""));
  EXPECT_THAT(refused({}), HasSubstr("expected no tensor of this name"));
}

TEST_F(Safetensors, WrongLengthsAreRefused) {
  auto const refused = [&](std::string const& bytes) { return test::refusal_of([&] { SafetensorsFile const file(write("f", bytes)); }); };
  EXPECT_THAT(refused(""), HasSubstr("found 0 bytes"));
  EXPECT_THAT(refused("1234567"), HasSubstr("found 7 bytes"));
  EXPECT_THAT(refused(std::string(7, '\0') + "\x80"), HasSubstr("a header of 9223372036854775808 bytes; expected at most 100000000"));
  EXPECT_THAT(refused(std::string("\3\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("found 2 bytes behind the header's length; expected a header of 3"));
  EXPECT_THAT(test::refusal_of([&] { SafetensorsFile const file(folder_); }), HasSubstr("it is a folder"));
  EXPECT_THAT(test::refusal_of([&] { SafetensorsFile const file(folder_ / "none"); }), HasSubstr("No such file"));
}

TEST_F(Safetensors, HeadersThatAreNoneAreRefused) {
  EXPECT_EQ(refusal("{}"), "accepted");
  EXPECT_EQ(refusal("{}   "), "accepted") << "the padding";
  EXPECT_THAT(refusal("[]"), HasSubstr("found array as the header"));
  EXPECT_THAT(refusal(""), HasSubstr("expected JSON as the header"));
  EXPECT_THAT(refusal("{}x"), HasSubstr("expected JSON as the header"));
  EXPECT_THAT(refusal("{\"\xff\":{}}"), HasSubstr("expected JSON as the header"));
  EXPECT_THAT(refusal(R"({"t":1})"), HasSubstr("found tensor \"t\" without dtype"));
  EXPECT_THAT(refusal(R"({"__metadata__":1})"), HasSubstr("expected an object of texts"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})"), HasSubstr("expected text"));
  EXPECT_THAT(refusal(R"({"t":[[[1]]]})"), HasSubstr("expected at most 2"));
  std::string deep = "{\"t\":";
  for (int i = 0; i < 1'000'000; ++i) deep += '[';
  EXPECT_THAT(refusal(deep), HasSubstr("expected at most 2"));
  std::string const good = R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(refusal("{" + good + "}", "x"), "accepted");
  EXPECT_THAT(refusal("{" + good + "," + good + "}", "x"), HasSubstr("found \"t\" twice in the header; expected each name once"));
  EXPECT_THAT(refusal(R"({"t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x"), HasSubstr("\"dtype\" twice"));
}

TEST_F(Safetensors, TensorsThatAreNoneAreRefused) {
  auto const tensor = [&](std::string const& dtype, std::string const& shape, std::string const& range,
                          std::string const& data = "12345678") {
    return refusal(R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + range + "}}", data);
  };
  EXPECT_EQ(tensor("\"F32\"", "[2]", "[0,8]"), "accepted");
  EXPECT_THAT(tensor("\"F16\"", "[2]", "[0,4]"), HasSubstr("found dtype \"F16\" of \"t\"; expected F64, F32"));
  EXPECT_THAT(tensor("4", "[2]", "[0,8]"), HasSubstr("found dtype 4"));
  for (char const* shape : {"2", "[-2]", "[2.0]", "[\"2\"]", "[18446744073709551616]"})
    EXPECT_THAT(tensor("\"F32\"", shape, "[0,8]"), HasSubstr("expected a list of counts")) << shape;
  for (char const* shape : {"[9223372036854775808]", "[4294967296,4294967296]", "[4294967296,4294967296,0]", "[2305843009213693952,2]"})
    EXPECT_THAT(tensor("\"F64\"", shape, "[0,8]"), HasSubstr("that 64 bits can count")) << shape;
  for (char const* range : {"[0,7]", "[8,0]", "[0]", "[0,8,8]", "[]", "[1,8]"})
    EXPECT_THAT(tensor("\"F32\"", "[2]", range), HasSubstr("expected a range of 8 bytes")) << range;
  EXPECT_THAT(tensor("\"F32\"", "[2]", "[1,9]", "123456789"), HasSubstr("found \"t\" at byte 1 of the data; expected byte 0"));
  EXPECT_THAT(tensor("\"F32\"", "[2]", "[0,8]", "123456789"), HasSubstr("found 9 bytes of data; expected the 8 bytes"));
  EXPECT_THAT(tensor("\"F32\"", "[2]", "[0,8]", "1234567"), HasSubstr("found 7 bytes of data; expected the 8 bytes"));
  auto const two = [&](std::string const& a, std::string const& b) {
    return refusal(
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a + R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}", "1234");
  };
  EXPECT_EQ(two("[2,4]", "[0,2]"), "accepted") << "in any order";
  EXPECT_THAT(two("[0,2]", "[1,3]"), HasSubstr("neither overlap nor leave holes"));
  EXPECT_THAT(two("[0,2]", "[0,2]"), HasSubstr("neither overlap nor leave holes"));
  EXPECT_THAT(two("[0,2]", "[3,5]"), HasSubstr("neither overlap nor leave holes"));
}

}  // namespace
}  // namespace shardmark
