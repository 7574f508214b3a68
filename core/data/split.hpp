#pragma once
// How real data are cut into windows and into parts; private to this folder.

#include <cstdint>
#include <string>
#include <string_view>

#include "data/dataset.hpp"

namespace shardmark {

/// The last floor(held_out x total) items are the held-out part, the others are for training.
/// @throws BadRequest: a share outside [0, 1), a part without items. `shown` and `item` are for the message: the file, and "window".
Range part_of(std::int64_t total, double held_out, DataPart part, std::string_view shown, std::string_view item);

/// The windows of a part: floor((tokens - 1) / seq) in all, which don't overlap; the last token is only a target.
/// @throws BadRequest: too few tokens (names the minimum, seq + 1), and as part_of()
Range windows_of(std::int64_t tokens, std::int64_t seq, double held_out, DataPart part, std::string_view shown);

}  // namespace shardmark
