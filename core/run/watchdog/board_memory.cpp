#include <unistd.h>

#include <array>
#include <new>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "comm/shared_file.hpp"
#include "run/watchdog.hpp"

namespace shardmark {
namespace {

std::shared_ptr<StatusLine[]> lines_in(Mapping&& mapping) {
  auto const memory = std::make_shared<Mapping>(std::move(mapping));
  return {memory, reinterpret_cast<StatusLine*>(memory->data())};
}

/// A number for this machine's name that a double holds exactly.
double host_number() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return double(stream_of(name.data()) >> 12);
}

/// What a node's lowest rank tells the others of its node.
struct Offer {
  double process = 0, descriptor = 0, valid = 0;
};

}  // namespace

BoardMemory BoardMemory::for_threads(int ranks) { return BoardMemory(std::shared_ptr<StatusLine[]>(new StatusLine[std::size_t(ranks)])); }

BoardMemory BoardMemory::for_processes(Communicator& world, Arena& arena, Stream& stream) {
  auto const n = std::size_t(world.size()), me = std::size_t(world.rank());
  std::size_t const bytes = n * sizeof(StatusLine);
  std::vector<double> hosts(n);
  all_gather(world, arena, stream, std::array{host_number()}, hosts);
  std::size_t first = 0;
  while (hosts[first] != hosts[me]) ++first;

  std::optional<SharedFile> file;
  std::shared_ptr<StatusLine[]> lines;
  Offer offer;
  auto attempt = [](auto&& action) {
    try {
      action();
    } catch (BadRequest const&) {  // seen by what wasn't made
    }
  };
  if (first == me) {
    attempt([&] {
      file.emplace(SharedFile::create());
      file->resize(bytes);
      if (file->reserve(0, bytes) == SharedFile::Reserved::no_space) return;
      lines = lines_in(Mapping::of_file(file->descriptor(), bytes));
      for (std::size_t r = 0; r < n; ++r) new (&lines[std::ptrdiff_t(r)]) StatusLine;
      offer = {double(getpid()), double(file->descriptor()), 1};
    });
  }
  std::vector<double> offers(3 * n);
  all_gather(world, arena, stream, std::array{offer.process, offer.descriptor, offer.valid}, offers);
  if (first != me && offers[3 * first + 2] != 0) {
    attempt([&] {
      file.emplace(SharedFile::of_process(int(offers[3 * first]), int(offers[3 * first + 1])));
      lines = lines_in(Mapping::of_file(file->descriptor(), bytes));
    });
  }
  double failures = lines == nullptr ? 1 : 0;
  all_sum(world, arena, stream, {&failures, 1});  // also keeps the first one's descriptor open until all have mapped the file
  return failures == 0 ? BoardMemory(std::move(lines)) : for_threads(world.size());
}

}  // namespace shardmark
