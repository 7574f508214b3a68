#include "app/stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/measure.hpp"
#include "app/replay_batch.hpp"
#include "metrics/clock.hpp"
#include "metrics/statistics.hpp"

namespace shardmark {
namespace {

constexpr int probe_rounds = 9;

bool computes(Do what) {
  switch (what) {
    case Do::post:
    case Do::wait:
    case Do::reduce:
    case Do::decide:
    case Do::release:
      return false;
    default:
      return true;
  }
}

double largest_boundary_bytes(Job const& job) {
  double most = 0;
  for (std::size_t b = 1; b < job.model->blocks.size(); ++b) most = std::max(most, boundary_bytes(job, ChunkId{std::int32_t(b)}));
  return most;
}

}  // namespace

ActionTimes::ActionTimes(Job const& job)
    : blocks_(job.model->blocks.size()), seconds_(kinds * (blocks_ + 1)), waited_(job.schedule.lanes.size(), 0.0) {}

void ActionTimes::clear() {
  for (auto& cell : seconds_) cell.clear();
  std::fill(waited_.begin(), waited_.end(), 0.0);
  busy_ = 0;
}

void ActionTimes::before(Program&, Action const&, std::int64_t) {
  if (recording_ == Recording::on) begin_ns_ = now_ns();
}

void ActionTimes::after(Program& program, Action const& action, std::int64_t) {
  if (recording_ == Recording::off) return;
  double const seconds = seconds_between(begin_ns_, now_ns());
  seconds_[cell(action.what, action.chunk.v)].push_back(seconds);
  if (computes(action.what)) busy_ += seconds;
  if (action.what != Do::wait) return;
  Lane const& lane = program.parts().schedule.lanes[std::size_t(program.parts().lane)];
  for (Posting const& posting : postings_of(lane, action.token))
    if (posting.transfer != Transfer::collective) {
      waited_[std::size_t(posting.peer)] += seconds;
      return;
    }
}

double ActionTimes::median(Do what, std::int32_t block) const {
  auto const& seen = seconds_[cell(what, block)];
  return seen.empty() ? 0 : shardmark::median(seen);
}

std::vector<double> ActionTimes::table() const {
  std::vector<double> out;
  for (auto const& seen : seconds_) out.push_back(seen.empty() ? 0 : shardmark::median(seen));
  return out;
}

AlphaBeta probe_link(Rig& rig) {
  Communicator& stages = rig.mesh().over(axes(Axis::pipeline));
  int const size = stages.size(), next = (stages.rank() + 1) % size, previous = (stages.rank() + size - 1) % size;
  HostExchange exchange(stages, std::size_t(2 * largest_boundary_bytes(rig.job())) + (std::size_t(1) << 22));
  auto const seconds = [&](double bytes) {
    std::int64_t const n = std::max<std::int64_t>(1, std::int64_t(bytes) / std::int64_t(width(DType::f64)));
    Tensor out = exchange.arena().make(DType::f64, {n}, Book::workspace, exchange.stream());
    Tensor in = exchange.arena().make(DType::f64, {n}, Book::workspace, exchange.stream());
    std::vector<double> rounds;
    for (int round = 0; round < probe_rounds; ++round) {
      std::vector<Message> messages{{Direction::send, next, 0, out}, {Direction::receive, previous, 0, in}};
      exchange.sync();
      std::int64_t const begin = now_ns();
      stages.post(exchange.stream(), messages).wait(exchange.stream());
      rounds.push_back(seconds_between(begin, now_ns()));
    }
    return exchange.max(median(rounds));
  };
  double const bytes = largest_boundary_bytes(rig.job()), alpha = seconds(1);
  return {alpha, bytes / std::max(1e-9, seconds(bytes) - alpha)};
}

std::string stage_table(StageReport const& report, std::optional<double> formula) {
  std::string out = fmt::format("  {:<22}{:>16.2f}   replayed with the warm-up's costs {:.2f}\n", "step of the trace, ms",
                                report.step_seconds * 1e3, report.simulated_step_seconds * 1e3);
  out +=
      fmt::format("  {:<22}{:>16}   at equal stages\n", "bubble by formula, %", formula ? fmt::format("{:.1f}", *formula * 100) : "none");
  out += "  rank    busy ms   bubble %   replayed %   kept at once  sent MB (formula)   waits for\n";
  for (std::size_t rank = 0; rank < report.stages.size(); ++rank) {
    StageReport::Stage const& stage = report.stages[rank];
    auto const longest = std::max_element(stage.waited_seconds.begin(), stage.waited_seconds.end());
    std::string waits = "nobody";
    if (longest != stage.waited_seconds.end() && *longest > 0)
      waits = fmt::format("{}, {:.2f} ms", longest - stage.waited_seconds.begin(), *longest * 1e3);
    out += fmt::format("  {:>4} {:>10.2f} {:>10.1f} {:>12.1f} {:>14} {:>18}   {}\n", rank, stage.busy_seconds * 1e3, stage.bubble * 100,
                       stage.simulated_bubble * 100, stage.stashes,
                       fmt::format("{:.3f} ({:.3f})", double(stage.sent_bytes) * 1e-6, double(stage.formula_bytes) * 1e-6), waits);
  }
  return out;
}

Costs measured_costs(Rig& rig, ActionTimes const& times, AlphaBeta const& link) {
  HostExchange exchange(rig.mesh().over(axes(Axis::pipeline)));
  std::size_t const blocks = rig.job().model->blocks.size();
  Costs costs;
  costs.action = [blocks, of_lane = exchange.gather(times.table())](Action const& action, int lane) {
    if (!computes(action.what)) return 0.0;
    return of_lane[std::size_t(lane)][std::size_t(action.what) * (blocks + 1) + std::size_t(action.chunk.v + 1)];
  };
  costs.transfer = [link, &job = rig.job()](Posting const& posting, Schedule const&) {
    if (posting.transfer == Transfer::collective) return link.alpha_seconds;
    return link.message_seconds(boundary_bytes(job, posting.edge));
  };
  return costs;
}

StageReport report_stages(Rig& rig, ActionTimes& times, Costs const& costs, std::int64_t sent_bytes, std::int64_t batches) {
  Job const& job = rig.job();
  Communicator& stages = rig.mesh().over(axes(Axis::pipeline));
  HostExchange exchange(stages);
  times.clear();
  exchange.sync();
  std::int64_t const begin = now_ns();
  times.set(ActionTimes::Recording::on);
  rig.program().advance(batches * job.updates_per_batch());
  rig.program().drain();
  times.set(ActionTimes::Recording::off);
  StageReport out;
  out.step_seconds = exchange.max(seconds_between(begin, now_ns())) / double(batches);

  Replay const simulated = replay(job, costs);
  out.simulated_step_seconds = simulated.seconds;

  std::vector<double> mine{times.busy_seconds() / double(batches), double(rig.program().peak_stashes()), double(sent_bytes)};
  for (double s : times.waited_seconds()) mine.push_back(s / double(batches));
  auto const all = exchange.gather(mine);
  for (std::size_t lane = 0; lane < all.size(); ++lane) {
    StageReport::Stage stage;
    stage.busy_seconds = all[lane][0];
    stage.stashes = int(all[lane][1]);
    stage.bubble = std::max(0.0, 1 - stage.busy_seconds / out.step_seconds);
    if (simulated.seconds > 0) stage.simulated_bubble = 1 - simulated.busy[lane] / simulated.seconds;
    stage.sent_bytes = std::int64_t(all[lane][2]);
    stage.formula_bytes = sent_by_formula(job, int(lane)).bytes;
    stage.waited_seconds.assign(all[lane].begin() + 3, all[lane].end());
    out.stages.push_back(std::move(stage));
  }
  return out;
}

}  // namespace shardmark
