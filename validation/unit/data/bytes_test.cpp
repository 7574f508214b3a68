#include <gtest/gtest.h>

#include "data/sha256.hpp"
#include "data/utf8.hpp"

namespace shardmark {
namespace {

// FIPS 180-4, the example messages.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Utf8, WellFormedTextIsLeftAlone) {
  for (char const* text : {"", "plain \\ text\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(escape_invalid_utf8(text), text);
  }
}

TEST(Utf8, OtherBytesAreEscaped) {
  EXPECT_EQ(escape_invalid_utf8("a\xff"
                                "b"),
            "a\\xffb");
  EXPECT_EQ(escape_invalid_utf8("\xc3"), "\\xc3");
  EXPECT_EQ(escape_invalid_utf8("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escape_invalid_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(escape_invalid_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
  EXPECT_EQ(escape_invalid_utf8("\xe2\x82"), "\\xe2\\x82") << "cut short";
}

}  // namespace
}  // namespace shardmark
