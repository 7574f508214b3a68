#include "app/run_end.hpp"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <string_view>

namespace shardmark {
namespace {

std::mutex mutex;
std::unique_ptr<record::RunFolder> current;

}  // namespace

record::RunFolder& begin_run(std::string const& out, record::RunName const& name) {
  std::lock_guard lock(mutex);
  current = std::make_unique<record::RunFolder>(out, name);
  return *current;
}

void end_run(record::State state, Exit code) noexcept {
  std::lock_guard lock(mutex);
  if (current == nullptr) return;
  try {
    current->end(state, int(code));
  } catch (std::exception const& error) {
    fmt::print(stderr, "shardmark: the record's end could not be written: {}\n", error.what());
  }
}

void end_run_by_watchdog(char const* state, void*) {
  bool const stopped = std::string_view(state) == "stopped";
  end_run(stopped ? record::State::cancelled : record::State::failed, Exit::rank_failed);
}

}  // namespace shardmark
