// Token files: nanoGPT's headerless ids, and llm.c's two headers.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "data/formats.hpp"
#include "data/mapped_source.hpp"
#include "data/split.hpp"

namespace shardmark {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as this machine's integers");

enum class IdWidth : std::uint8_t { two_bytes = 2, four_bytes = 4 };

/// Where a file's ids are.
struct Layout {
  IdWidth width = IdWidth::two_bytes;
  std::int64_t first_byte = 0;
  std::int64_t tokens = 0;
};

constexpr std::int64_t header_bytes = 256 * 4;
constexpr std::int64_t largest_16_bit_vocab = 65536;
constexpr std::string_view expected_kinds = "token ids, headerless or with llm.c's header 20240520 version 1 or 20240801 version 7";

/// The first words of llm.c's files. None is a pair of 16-bit ids of GPT-2's vocabulary (50257): the first id would be above 55000.
struct Magic {
  std::uint32_t word;
  std::string_view what;  // of files that aren't token files
  std::uint32_t version;
  IdWidth width;
};
constexpr Magic magics[] = {
    {20240520, "", 1, IdWidth::two_bytes},   {20240801, "", 7, IdWidth::four_bytes},
    {20240326, "a GPT-2 checkpoint", 0, {}}, {20240327, "a debug state", 0, {}},
    {20240328, "a tokenizer", 0, {}},        {20240522, "a multiple-choice evaluation set", 0, {}},
    {20240527, "an optimizer state", 0, {}}, {20240803, "a Llama 3 checkpoint", 0, {}},
};

template <class Word>
Word load(std::byte const* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

Magic const* find_magic(std::uint32_t word) {
  auto const at = std::find_if(std::begin(magics), std::end(magics), [=](Magic const& m) { return m.word == word; });
  return at == std::end(magics) ? nullptr : at;
}

std::uint32_t byte_swapped(std::uint32_t word) { return word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24; }

/// The layout that a header declares; absent: the file has none.
std::optional<Layout> declared_layout(MappedFile const& file) {
  if (file.size() < 4) return std::nullopt;
  auto const word = load<std::uint32_t>(file.bytes().data());
  if (Magic const* const swapped = find_magic(byte_swapped(word)))
    refuse_file(file.path(),
                fmt::format("its header is big-endian: magic {:#010x}; expected {:#010x}, {}", word, swapped->word, swapped->word),
                "write it on a little-endian machine, or swap its bytes");
  Magic const* const magic = find_magic(word);
  if (magic == nullptr) return std::nullopt;
  if (!magic->what.empty())
    refuse_file(file.path(), fmt::format("llm.c's magic {} is that of {}; expected {}", word, magic->what, expected_kinds), "");
  if (file.size() < header_bytes)
    refuse_file(file.path(), fmt::format("llm.c's header {} is cut at {} bytes; expected {}", word, file.size(), header_bytes), "");
  auto const version = load<std::uint32_t>(file.bytes().data() + 4);
  if (version != magic->version)
    refuse_file(file.path(), fmt::format("llm.c's header {} has version {}; expected {}", word, version, magic->version), "");
  return Layout{magic->width, header_bytes, load<std::uint32_t>(file.bytes().data() + 8)};
}

/// 32-bit ids below 65536, read as 16-bit ones, have a zero in every second place. 32 of them in a row aren't chance.
bool looks_like_32_bits(std::span<std::byte const> bytes) {
  constexpr std::size_t least = 32;
  std::size_t const pairs = bytes.size() / 4;
  if (pairs < least || bytes.size() % 4 != 0) return false;
  bool some_low = false;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (load<std::uint16_t>(bytes.data() + 4 * i + 2) != 0) return false;
    some_low = some_low || load<std::uint16_t>(bytes.data() + 4 * i) != 0;
  }
  return some_low;
}

Layout headerless_layout(MappedFile const& file, std::int64_t vocab) {
  IdWidth const width = vocab <= largest_16_bit_vocab ? IdWidth::two_bytes : IdWidth::four_bytes;
  std::int64_t const bytes = std::int64_t(width);
  if (file.size() % bytes != 0)
    refuse_file(
        file.path(),
        fmt::format("{} bytes; expected a multiple of {}, the size of a headerless id with vocabulary {}", file.size(), bytes, vocab),
        "copy it again, or give it llm.c's header");
  if (width == IdWidth::two_bytes && looks_like_32_bits(file.bytes()))
    refuse_file(file.path(), fmt::format("every second 16-bit id is 0, as in 32-bit ids; expected 16 bits with vocabulary {}", vocab),
                "write uint16, or llm.c's header 20240801 version 7");
  return {width, 0, file.size() / bytes};
}

Layout layout_of(MappedFile const& file, std::int64_t vocab) {
  require_unpacked(file, expected_kinds);
  auto const declared = declared_layout(file);
  if (!declared) return headerless_layout(file, vocab);
  std::int64_t const room = file.size() - header_bytes, needed = declared->tokens * std::int64_t(declared->width);
  if (room != needed)
    refuse_file(file.path(),
                fmt::format("its header declares {} tokens of {} bytes, which makes {} bytes; found {} after the header", declared->tokens,
                            int(declared->width), needed, room),
                "copy or write it again");
  return *declared;
}

/// @param ids little-endian
template <class Word>
void require_below(MappedFile const& file, std::span<std::byte const> ids, std::int64_t vocab) {
  // The maximum first: a loop without a way out runs at the memory's speed, and nearly all files are right.
  Word highest = 0;
  for (std::size_t at = 0; at < ids.size(); at += sizeof(Word)) highest = std::max(highest, load<Word>(ids.data() + at));
  if (std::int64_t(highest) < vocab) return;
  std::size_t position = 0;
  while (std::int64_t(load<Word>(ids.data() + position * sizeof(Word))) < vocab) ++position;
  refuse_file(file.path(),
              fmt::format("id {} at position {}; expected ids below the vocabulary, {}, and the largest in the file is {}",
                          load<Word>(ids.data() + position * sizeof(Word)), position, vocab, highest),
              fmt::format("use --vocab {} if the file is right", std::int64_t(highest) + 1));
}

class Tokens final : public Dataset {
 public:
  Tokens(MappedFile file, std::int64_t seq, std::int64_t vocab, double held_out, DataPart part)
      : source_("tokens", file.shown(), one(std::move(file))) {
    MappedFile const& mapped = source_.files().front();
    layout_ = layout_of(mapped, vocab);
    ids_ = mapped.bytes().subspan(std::size_t(layout_.first_byte));
    windows_ = windows_of(layout_.tokens, seq, held_out, part, mapped.shown());
    shape_ = {DType::i32, DType::i32, {seq}, {seq}, vocab};
    if (layout_.width == IdWidth::two_bytes)
      require_below<std::uint16_t>(mapped, ids_, vocab);
    else
      require_below<std::uint32_t>(mapped, ids_, vocab);
  }

  std::int64_t size() const override { return windows_.size(); }
  SampleShape const& shape() const override { return shape_; }
  DataSource const& source() const override { return source_.describe(); }
  std::int64_t counted(std::int64_t) const override { return shape_.input[0]; }

  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    expect(sample >= 0 && sample < size(), "a sample of the data set");
    std::int64_t const first = (windows_.begin + sample) * shape_.input[0];
    widen(first, input);
    widen(first + 1, target);
  }

 private:
  static std::vector<MappedFile> one(MappedFile file) {
    std::vector<MappedFile> files;
    files.push_back(std::move(file));
    return files;
  }

  void widen(std::int64_t first, std::span<std::byte> out) const {
    std::byte const* const from = ids_.data() + first * std::int64_t(layout_.width);
    std::size_t const count = out.size() / sizeof(std::int32_t);
    if (layout_.width == IdWidth::four_bytes) {  // below the vocabulary, so the same as int32
      std::memcpy(out.data(), from, count * sizeof(std::int32_t));
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::int32_t const token = load<std::uint16_t>(from + i * sizeof(std::uint16_t));
      std::memcpy(out.data() + i * sizeof token, &token, sizeof token);
    }
  }

  MappedSource source_;
  Layout layout_;
  std::span<std::byte const> ids_;
  Range windows_;
  SampleShape shape_;
};

}  // namespace

std::unique_ptr<Dataset> open_tokens(std::string const& path, std::int64_t seq, std::int64_t vocab, double held_out, DataPart part) {
  return std::make_unique<Tokens>(MappedFile(path), seq, vocab, held_out, part);
}

}  // namespace shardmark
