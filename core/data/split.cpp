#include "data/split.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"

namespace shardmark {

Range part_of(std::int64_t total, double held_out, DataPart part, std::string_view shown, std::string_view item) {
  require_input(held_out >= 0 && held_out < 1,
                {fmt::format("held-out share {}", held_out), fmt::format("it is a fraction of the {}s", item),
                 "give --held-out at least 0 and below 1"});
  std::int64_t const split = total - std::int64_t(std::floor(held_out * double(total)));
  bool const training = part == DataPart::training;
  Range const range = training ? Range{0, split} : Range{split, total};
  require_input(range.size() > 0, {fmt::format("{} has no {} {}", shown, training ? "training" : "held-out", item),
                                   fmt::format("--held-out {} of {} {}s", held_out, total, item),
                                   training ? "lower --held-out" : "raise --held-out or give more data"});
  return range;
}

Range windows_of(std::int64_t tokens, std::int64_t seq, double held_out, DataPart part, std::string_view shown) {
  expect(seq > 0, "a window has positions");
  require_input(tokens > seq,
                {fmt::format("{} has {} tokens for windows of --seq {}", shown, tokens, seq),
                 fmt::format("one window needs at least {} tokens: {} inputs, and the target after the last one", seq + 1, seq),
                 "give longer data or a smaller --seq"});
  return part_of((tokens - 1) / seq, held_out, part, shown, "window");
}

}  // namespace shardmark
