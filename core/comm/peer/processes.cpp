#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "backend/backend.hpp"
#include "comm/peer/communicator.hpp"
#include "comm/peer/worlds.hpp"

namespace shardmark::peer {
namespace {

/// A few values agreed on at start-up.
class Agreement {
 public:
  explicit Agreement(Communicator& group)
      : group_(group), slab_(Mapping::anonymous(std::size_t{1} << 20)), stream_(0), arena_({slab_.data(), slab_.bytes()}, ledger_) {
    arena_.watch(stream_);
  }
  double sum(double value) {
    all_sum(group_, arena_, stream_, {&value, 1});
    return value;
  }
  void from_root(std::span<double> values) { broadcast(group_, arena_, stream_, std::as_writable_bytes(values), 0); }

 private:
  Communicator& group_;
  Mapping slab_;
  Ledger ledger_;
  HostStream stream_;
  Arena arena_;
};

[[noreturn]] void refuse_size(std::size_t needed, double free) {
  fail_input({fmt::format("{} is too small for the shared windows", shared_folder),
              fmt::format("{} bytes needed, {:.0f} free", needed, free), "enlarge it, use fewer ranks, or use --comm mpi"});
}

constexpr std::size_t page = 4096;
std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

/// Opens the file on every member, or refuses on every member.
SharedFile open_everywhere(Communicator& group, Agreement& agreement, std::size_t bytes) {
  std::optional<SharedFile> file;
  std::optional<BadRequest> failure;
  std::array<double, 3> from_root{};  // process, descriptor, free bytes
  auto attempt = [&](auto&& open) {
    try {
      file.emplace(open());
    } catch (BadRequest const& error) {
      failure.emplace(error);
    }
  };
  if (group.rank() == 0) {
    attempt([&] {
      from_root[2] = double(shared_memory_free_bytes());
      SharedFile made = SharedFile::create();
      made.resize(bytes);
      from_root[0] = double(getpid());
      from_root[1] = double(made.descriptor());
      return made;
    });
  }
  agreement.from_root(from_root);
  if (from_root[2] < double(bytes) && !failure) refuse_size(bytes, from_root[2]);
  if (group.rank() != 0) attempt([&] { return SharedFile::of_process(int(from_root[0]), int(from_root[1])); });
  double const failures = agreement.sum(failure ? 1 : 0);
  if (failure) throw *failure;
  require_input(failures == 0, {"the ranks can't share memory",
                                fmt::format("{:.0f} of them can't open the file in {}", failures, shared_folder), "use --comm mpi"});
  return std::move(*file);
}

}  // namespace

std::unique_ptr<Communicator> make_process_world(Communicator& bootstrap, std::size_t window_bytes_per_rank,
                                                 std::shared_ptr<Engine> engine) {
  int const n = bootstrap.size(), me = bootstrap.rank();
  std::size_t const control_bytes = whole_pages(Control::bytes(n)), window_bytes = whole_pages(window_bytes_per_rank);
  std::size_t const bytes = control_bytes + std::size_t(n) * window_bytes, my_window = control_bytes + std::size_t(me) * window_bytes;

  Agreement agreement(bootstrap);
  SharedFile file = open_everywhere(bootstrap, agreement, bytes);
  // Each rank takes its own window's pages, so that they lie in its own part of the machine's memory.
  bool full = file.reserve(my_window, window_bytes) == SharedFile::Reserved::no_space;
  if (me == 0) full |= file.reserve(0, control_bytes) == SharedFile::Reserved::no_space;
  double const free = double(shared_memory_free_bytes());
  if (agreement.sum(full ? 1 : 0) > 0) refuse_size(bytes, free);

  auto memory = std::make_shared<Mapping>(Mapping::of_file(file.descriptor(), bytes));
  if (me == 0) Control::create(memory->data(), n);
  agreement.sum(0);  // nobody looks at the board before it is there, and the root's descriptor stays open until all have mapped the file

  Control const control(memory->data(), n);
  Window const window{Window::Source::mapped, memory->data() + my_window, window_bytes};
  auto const space = AddressSpace::mapped(memory->data(), bytes);
  auto home = std::make_shared<Home>(std::move(memory), control, space, me, window, std::move(engine));
  return std::make_unique<PeerCommunicator>(std::move(home), me, "peer");
}

}  // namespace shardmark::peer
