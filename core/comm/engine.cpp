#include "comm/engine.hpp"

#include <sched.h>
#include <time.h>

namespace shardmark {
namespace {

struct WaitHook {
  void (*call)(void*) = nullptr;
  void* argument = nullptr;
};
thread_local WaitHook wait_hook;

void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void while_waiting(void (*call)(void*), void* argument) { wait_hook = {call, argument}; }

bool Engine::advance() {
  bool any = false;
  for (Advancing* part : parts_) any |= part->advance();
  return any;
}

void Engine::idle() {
  constexpr int spins = 64, yields = 2000;  // a few microseconds, about a millisecond
  ++idle_;
  if (idle_ <= spins) return cpu_relax();
  if (wait_hook.call != nullptr) wait_hook.call(wait_hook.argument);
  if (idle_ <= spins + yields) {
    sched_yield();
  } else {
    timespec const nap{0, 50'000};
    nanosleep(&nap, nullptr);
    idle_ = spins + yields;
  }
}

EngineGroup::EngineGroup(std::shared_ptr<Engine> engine, int rank, int size)
    : engine_(std::move(engine)), rank_(rank), size_(size), pool_(std::pmr::pool_options{0, std::size_t{1} << 16}) {
  engine_->add(*this);
}

EngineGroup::~EngineGroup() { engine_->remove(*this); }

std::shared_ptr<Posted> EngineGroup::begin(int pieces) {
  throw_if_aborted();
  return std::allocate_shared<Posted>(std::pmr::polymorphic_allocator<Posted>(&pool_), *this, pieces);
}

Posted::Posted(EngineGroup& group, int pieces) : group_(group), remaining_(pieces), kept_(&group.pool_) {
  kept_.reserve(std::size_t(pieces) + 1);
  if (remaining_ > 0) ++group_.outstanding_;
}

Posted::~Posted() {
  if (remaining_ == 0) return;
  group_.abandon();
  --group_.outstanding_;
}

void Posted::piece_done() {
  if (--remaining_ == 0) --group_.outstanding_;
}

bool Posted::poll() {
  if (remaining_ > 0) group_.engine_->advance();
  if (remaining_ > 0) group_.throw_if_aborted();
  return remaining_ == 0;
}

void Posted::order(Stream&) {
  Engine& engine = *group_.engine_;
  engine.moved();
  while (remaining_ > 0) {
    if (engine.advance()) {
      engine.moved();
      if (wait_hook.call != nullptr) wait_hook.call(wait_hook.argument);
    } else if (remaining_ > 0) {
      group_.throw_if_aborted();
      engine.idle();
    }
  }
}

}  // namespace shardmark
