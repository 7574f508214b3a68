#pragma once
// Data files that people have already: token files, MNIST's IDX, CIFAR-10's binary version. They are mapped, not read; every count and
// position is 64 bits wide, and everything that a file says of itself is checked against its size before it is used.
//
// All @throw BadRequest with the file, what was found and what was expected: not found, not readable, empty, packed, cut, declared sizes
// that aren't the file's, a part without samples.

#include <memory>
#include <string>

#include "data/dataset.hpp"

namespace shardmark {

/// Token ids, in windows as open_text() makes them. Little-endian, in one of these layouts:
///   - llm.c's: 256 int32, of which the first three are 20240520, 1, the number of tokens; then uint16
///   - llm.c's: the same with 20240801, 7; then uint32
///   - nanoGPT's: no header; uint16 for vocabularies up to 65536, uint32 for larger ones. 32-bit ids that would be read as 16-bit ones show
///     as zeros in every second place, and are refused.
/// @throws BadRequest besides: any other header of llm.c, a big-endian one, an id that isn't below `vocab` (names id and position)
std::unique_ptr<Dataset> open_tokens(std::string const& path, std::int64_t seq, std::int64_t vocab, double held_out, DataPart part);

/// Images and labels in IDX (LeCun's MNIST page), as unsigned bytes: one sample is rows x cols pixels in [0, 1], with a class.
/// Classes: 10, or the largest label + 1 when that is more. The last floor(held_out x images) images are the held-out part.
std::unique_ptr<Dataset> open_idx(std::string const& images, std::string const& labels, double held_out, DataPart part);

/// A folder with data_batch_1.bin .. data_batch_5.bin, for training, and test_batch.bin, the held-out part (Krizhevsky 2009): records of a
/// label and 3 x 32 x 32 bytes. One sample is 3072 pixels in [0, 1].
std::unique_ptr<Dataset> open_cifar10(std::string const& folder, DataPart part);

}  // namespace shardmark
