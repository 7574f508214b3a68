// Collectives of two thread ranks over shared memory (the peer communicator), in fp32 with the fixed tree.
//
// Seconds are rank 0's wall time between two rounds that both ranks enter. gbytes is the bus bandwidth: what a ring would send from each
// rank (2 (n-1)/n of an all-reduce, (n-1)/n of its halves) over the time; share_of_limit is that over what one core reads or writes in
// memory of that size, measured in the same run.

#include <array>

#include "benchmarks/micro/support.hpp"
#include "benchmarks/support/limits.hpp"
#include "comm/fabric.hpp"
#include "metrics/clock.hpp"

namespace shardmark::micro {
namespace {

constexpr int ranks = 2;

struct Case {
  char const* name;
  Collective what;
  double ring_share;  // of the large tensor's bytes
};
constexpr Case cases[] = {{"all_reduce", Collective::all_reduce, 2.0 * (ranks - 1) / ranks},
                          {"reduce_scatter", Collective::reduce_scatter, double(ranks - 1) / ranks},
                          {"all_gather", Collective::all_gather, double(ranks - 1) / ranks}};

/// One rank's tensors and rounds.
class Member {
 public:
  Member(Communicator& world, Collective what, std::int64_t elements)
      : world_(world),
        what_(what),
        pages_(std::size_t(elements) * 8 + (1 << 16)),
        arena_({pages_.data(), pages_.bytes(), Place::host, Book::workspace}, ledger_) {
    arena_.watch(stream_);
    send_ = make(what == Collective::all_gather ? elements / ranks : elements);
    receive_ = make(what == Collective::reduce_scatter ? elements / ranks : elements);
  }
  void round() { world_.post(stream_, Exchange{.what = what_, .send = send_, .recv = receive_, .purpose = "benchmark"}).wait(stream_); }

 private:
  Tensor make(std::int64_t elements) {
    Tensor t = arena_.make(DType::f32, {elements}, Book::workspace, stream_);
    std::fill_n(t.view.as<float>(), elements, 1.f);
    return t;
  }
  Communicator& world_;
  Collective what_;
  Pages pages_;
  Ledger ledger_;
  HostStream stream_{0};
  Arena arena_;
  Tensor send_, receive_;
};

void run(benchmark::State& state, Case const& c, std::int64_t elements) {
  double seconds = 0;
  run_thread_ranks(ranks, [&](Communicator& world) {
    Member member(world, c.what, elements);
    member.round();
    if (world.rank() > 0) {
      // As many rounds as rank 0 will make.
      for (benchmark::IterationCount i = 0; i < state.max_iterations; ++i) member.round();
      return;
    }
    for (auto _ : state) {
      std::int64_t const begin = now_ns();
      member.round();
      double const took = seconds_between(begin, now_ns());
      state.SetIterationTime(took);
      seconds += took;
    }
  });
  double const bytes = double(elements) * sizeof(float), rate = c.ring_share * bytes * double(state.iterations()) / seconds;
  state.counters["gbytes"] = 1e-9 * rate;
  state.counters["share_of_limit"] = rate / memory_bytes_per_second(std::size_t(bytes));
}

}  // namespace
}  // namespace shardmark::micro

int main(int argc, char** argv) {
  using namespace shardmark::micro;
  for (Case const& c : cases)
    for (std::int64_t const elements : {256, 1 << 18, 6 << 20})
      benchmark::RegisterBenchmark((std::string(c.name) + "/" + std::to_string(4 * elements) + "B").c_str(), run, c, elements)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
  return run_registered(argc, argv);
}
