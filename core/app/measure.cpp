#include "app/measure.hpp"

#include <algorithm>

#include "app/asynchronous.hpp"
#include "metrics/clock.hpp"
#include "run/watchdog.hpp"

namespace shardmark {

HostExchange::HostExchange(Communicator& world, std::size_t bytes)
    : world_(world), pages_(bytes), arena_({pages_.data(), pages_.bytes(), Place::host, Book::workspace}, ledger_) {
  arena_.watch(stream_);
}

void HostExchange::sync() { barrier(world_, arena_, stream_); }

std::vector<std::vector<double>> HostExchange::gather(std::vector<double> const& mine) {
  std::size_t const n = std::size_t(world_.size());
  std::vector<std::vector<double>> out(n);
  // In pieces that fit beside what all ranks send, however long a run was.
  std::size_t const most = std::max<std::size_t>(1, pages_.bytes() / sizeof(double) / (2 * (n + 1)));
  std::vector<double> all;
  for (std::size_t begin = 0; begin < mine.size(); begin += most) {
    std::span<double const> const piece = std::span(mine).subspan(begin, std::min(most, mine.size() - begin));
    all.resize(n * piece.size());
    all_gather(world_, arena_, stream_, piece, all);
    for (std::size_t r = 0; r < n; ++r) {
      auto const first = all.begin() + std::ptrdiff_t(r * piece.size());
      out[r].insert(out[r].end(), first, first + std::ptrdiff_t(piece.size()));
    }
  }
  return out;
}

std::vector<std::string> HostExchange::gather_texts(std::string_view mine) {
  // A letter in a double: slow, and used a few times a run.
  std::vector<double> letters(std::size_t(max(double(mine.size()))), 0);
  for (std::size_t i = 0; i < mine.size(); ++i) letters[i] = double(static_cast<unsigned char>(mine[i]));
  std::vector<std::string> out;
  for (auto const& of_rank : gather(letters)) {
    std::string text;
    for (double letter : of_rank)
      if (letter != 0) text += char(static_cast<unsigned char>(letter));
    out.push_back(std::move(text));
  }
  return out;
}

double HostExchange::max(double value) {
  double out = value;
  for (auto const& of_rank : gather({value})) out = std::max(out, of_rank[0]);
  return out;
}

double HostExchange::sum(double value) {
  all_sum(world_, arena_, stream_, {&value, 1});
  return value;
}

namespace {

constexpr std::int64_t most_reserved = 1 << 20;  // updates

/// One global batch, timed on this rank.
double timed_step(Rig& rig) {
  if (stop_requested() != 0) rig.program().ask_to_stop();
  std::int64_t const begin = now_ns();
  rig.program().advance(rig.job().updates_per_batch());
  return seconds_between(begin, now_ns());
}

/// What pauses took of the loop.
struct Paused {
  double seconds = 0;
  AllocationCounts made;

  /// Between two updates. @returns whether to go on
  Proceed look(BetweenUpdates& between, std::int64_t done) {
    between.beat(done);
    if (!between.wants_pause(done)) return Proceed::on;
    AllocationCounts const before = allocations();
    std::int64_t const begin = now_ns();
    Proceed const proceed = between.pause();
    seconds += seconds_between(begin, now_ns());
    made = made + (allocations() - before);
    return proceed;
  }
};

}  // namespace

Measurement measure(Rig& rig, Communicator& world, std::int64_t warmup, std::int64_t steps, BetweenUpdates& between) {
  Program& program = rig.program();
  HostExchange exchange(world);
  // Room ahead for what a run plausibly takes; one that goes on for longer grows now and then.
  program.reserve_history(std::size_t(std::min((warmup + steps) * rig.job().updates_per_batch(), most_reserved)));
  Measurement out;
  PssPeak pss;
  std::vector<double> mine;
  mine.reserve(std::size_t(std::min(steps, most_reserved)));
  Proceed proceed = Proceed::on;
  StopVote vote(program, exchange);
  bool stopped = false;
  auto const goes_on = [&] { return proceed == Proceed::on && !stopped; };
  Paused in_warmup, paused;
  for (std::int64_t s = 0; s < warmup && goes_on(); ++s) {
    timed_step(rig);
    stopped = vote.stop();
    proceed = in_warmup.look(between, s + 1);
  }
  // The ranks of a pipeline that isn't drained wait for each other's next step: they must not meet before it.
  program.drain();
  std::size_t const before = program.history().size();
  double const waited = program.waiting_seconds(), decided = program.deciding_seconds(), blocked = rig.data_blocked_seconds();
  exchange.sync();
  AllocationCounts const counts = allocations();
  std::int64_t const begin = now_ns();
  for (std::int64_t s = 0; s < steps && goes_on(); ++s) {
    mine.push_back(timed_step(rig));
    stopped = vote.stop();
    proceed = paused.look(between, warmup + s + 1);
  }
  program.drain();
  vote.close();
  double const loop = seconds_between(begin, now_ns()) - paused.seconds;
  AllocationCounts const made = allocations() - counts - paused.made;
  exchange.sync();  // ranks that are threads count together: none may go on to what follows while another is still in the loop
  pss.look();

  double const n = double(std::max<std::size_t>(1, mine.size()));
  out.loop_seconds = exchange.max(loop);
  out.by_rank = exchange.gather(mine);
  for (std::size_t s = 0; s < mine.size(); ++s) {
    double worst = 0;
    for (auto const& rank : out.by_rank) worst = std::max(worst, rank[s]);
    out.step_seconds.push_back(worst);
  }
  for (auto const& of_rank : exchange.gather({(program.waiting_seconds() - waited) / n, (program.deciding_seconds() - decided) / n,
                                              (rig.data_blocked_seconds() - blocked) / n})) {
    out.blocked.push_back({of_rank[0], of_rank[1], of_rank[2]});
    out.waiting_seconds = std::max(out.waiting_seconds, of_rank[0]);
    out.data_seconds = std::max(out.data_seconds, of_rank[2]);
  }
  out.allocations = std::int64_t(exchange.max(double(made.ours)));
  out.stopped = !goes_on();
  auto const& history = program.history();
  std::vector<WindowResult> first(history.begin(), history.begin() + (history.empty() ? 0 : 1));
  out.windows.assign(history.begin() + std::ptrdiff_t(before), history.end());
  if (!program.parts().schedule.decides_jointly()) {
    first = windows_of_last_stage(first, program, exchange);
    out.windows = windows_of_last_stage(out.windows, program, exchange);
  }
  if (!first.empty()) out.first_loss = first.front().loss;
  for (WindowResult const& w : out.windows) out.counted += w.counted;
  out.pss_peak = pss.peak();
  return out;
}

}  // namespace shardmark
