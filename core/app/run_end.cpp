#include "app/run_end.hpp"

#include <fmt/format.h>

#include <mutex>
#include <string_view>

namespace shardmark {
namespace {

std::mutex mutex;
record::RunFolder* current = nullptr;

}  // namespace

CurrentRun::CurrentRun(record::RunFolder& folder) {
  std::lock_guard lock(mutex);
  current = &folder;
}

CurrentRun::~CurrentRun() {
  std::lock_guard lock(mutex);
  current = nullptr;
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
