#include "app/predict.hpp"

#include <algorithm>
#include <vector>

#include "app/measure.hpp"
#include "app/replay_batch.hpp"
#include "metrics/clock.hpp"
#include "metrics/statistics.hpp"

namespace shardmark {
namespace {

constexpr int probe_rounds = 7;
// The rates no longer depend on sizes beyond these, and a plan for a cluster is made on a login node.
constexpr std::int64_t most_positions = 2048, most_width = 4096, most_reduced = 1 << 24;

/// Median seconds of one call.
template <class F>
double time_of(F&& call) {
  call();
  std::array<double, probe_rounds> seconds{};
  for (double& s : seconds) {
    std::int64_t const begin = now_ns();
    call();
    s = seconds_between(begin, now_ns());
  }
  return median(seconds);
}

/// The largest weight matrix of the model, the size at which most of its flops run. Filters are matrices: outputs by window.
std::array<std::int64_t, 2> typical_matrix(Model const& model) {
  std::array<std::int64_t, 2> best{1, 1};
  for (ParamSpec const& p : model.spec.params)
    if (p.shape.size() >= 2 && p.name.find("wte") == std::string::npos && p.name.find("wpe") == std::string::npos &&
        p.elements() > best[0] * best[1])
      best = {p.shape[0], p.elements() / p.shape[0]};
  return {std::min(best[0], most_width), std::min(best[1], most_width)};
}

std::int64_t positions_of(Job const& job) {
  std::int64_t per_sample = 1;
  for (std::size_t d = 0; d + 1 < job.model->blocks.front().boundary.size(); ++d) per_sample *= job.model->blocks.front().boundary[d];
  std::int64_t const rows = std::max<std::int64_t>(1, job.global_batch / job.replicas / job.micros);
  return std::min(rows * per_sample, most_positions);
}

/// Elements of the largest all-reduce that the probe stands for.
std::int64_t largest_sum(Job const& job) {
  std::int64_t largest = 1;
  for (auto const& buckets : job.schedule.buckets)
    for (Bucket const& b : buckets) largest = std::max(largest, b.elements);
  std::int64_t const rows = std::max<std::int64_t>(1, job.global_batch / job.replicas / job.micros);
  if (job.mesh.tensor > 1)
    for (std::size_t b = 0; b + 1 < job.model->blocks.size(); ++b) {
      std::int64_t elements = rows;
      for (std::int64_t extent : job.model->blocks[b].boundary) elements *= extent;
      largest = std::max(largest, elements);
    }
  return std::min(largest, most_reduced);
}

}  // namespace

Axes probed_axes(Job const& job) { return axes(job.mesh.tensor > 1 ? Axis::tensor : Axis::data); }

bool is_product(std::string_view kind) { return kind == "matmul" || kind.starts_with("convolution"); }

Probe run_probe(Job const& job, Backend& ops, Communicator& group) {
  Probe out;
  auto stream = ops.stream();
  Ledger ledger;
  auto const [rows, columns] = typical_matrix(*job.model);
  std::int64_t const positions = positions_of(job), copied = 4 << 20, largest = largest_sum(job);
  std::size_t const slab = std::size_t(positions * (rows + columns) + rows * columns + 2 * copied + largest) * 8 + (1 << 16);
  Arena arena(ops.reserve(slab, Place::host), ledger);
  arena.watch(*stream);
  auto const make = [&](std::initializer_list<std::int64_t> shape, DType dtype) {
    Tensor t = arena.make(dtype, shape, Book::workspace, *stream);
    ops.run(*stream, Fill{t.view, 1e-3});
    return t;
  };
  DType const dtype = job.model->dtype;
  {
    Tensor x = make({positions, columns}, dtype), w = make({rows, columns}, dtype), y = make({positions, rows}, dtype);
    Matmul const product{.a = x.view, .b = w.view, .c = y.view, .tb = Transpose::yes, .bias = {}, .aux = {}};
    out.matmul_flops_per_second = flops(Op{product}) / time_of([&] { ops.run(*stream, product); });
  }
  {
    Tensor from = make({copied}, dtype), to = make({copied}, dtype);
    Copy const copy{from.view, to.view};
    out.bytes_per_second = bytes(Op{copy}) / time_of([&] { ops.run(*stream, copy); });
  }
  int const n = group.size();
  if (n > 1) {
    auto const seconds = [&](std::int64_t elements) {
      Tensor t = make({elements}, accumulator(dtype));
      return time_of([&] {
        group.post(*stream, Exchange{.what = Collective::all_reduce, .send = t, .recv = t, .reduction = job.reduction, .purpose = "probe"})
            .wait(*stream);
      });
    };
    out.all_reduce_alpha_seconds = seconds(1);
    double const wire = 2.0 * (n - 1) / n * double(largest) * double(width(accumulator(dtype)));
    out.all_reduce_bytes_per_second = wire / std::max(1e-9, seconds(largest) - out.all_reduce_alpha_seconds);
  }
  return out;
}

double compute_seconds(DryRun const& plan, Probe const& probe) {
  double out = 0;
  for (DryRun::Work const& work : plan.work)
    out += std::max(work.flops / probe.matmul_flops_per_second, is_product(work.kind) ? 0.0 : work.bytes / probe.bytes_per_second);
  return out;
}

double exchange_seconds(DryRun const& plan, Probe const& probe) {
  double out = 0;
  for (DryRun::Traffic const& t : plan.collectives)
    if (t.axes == axes(Axis::tensor))
      out += double(t.calls) * probe.all_reduce_alpha_seconds + double(t.sent_bytes) / probe.all_reduce_bytes_per_second;
  return out;
}

std::vector<double> seconds_of_lanes(Mesh& mesh, double mine) {
  HostExchange exchange(mesh.over(axes(Axis::pipeline)));
  std::vector<double> out;
  for (auto const& lane : exchange.gather({mine})) out.push_back(lane[0]);
  return out;
}

namespace {

double relative_cost(Action const& action, std::vector<BlockShape> const& blocks) {
  return action.chunk.valid() ? seconds_of(blocks[std::size_t(action.chunk.v)]).of(action) : 0.0;
}

/// Of an array over n ranks, what passes the busiest rank's link.
double share_on_wire(Collective what, int n) {
  switch (what) {
    case Collective::broadcast:
      return 1;
    case Collective::gather:
    case Collective::scatter:
      return n - 1;
    case Collective::all_reduce:
      return 2.0 * (n - 1) / n;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return 1.0 * (n - 1) / n;
  }
  return 0;
}

}  // namespace

Costs predicted_costs(Job const& job, std::span<double const> seconds_of_lane, Probe const& probe) {
  auto const blocks = job.model->shapes();
  std::vector<double> unit;  // seconds of one relative cost, by lane
  for (std::size_t lane = 0; lane < job.schedule.lanes.size(); ++lane) {
    double total = 0;
    for (Action const& action : job.schedule.lanes[lane].body) total += relative_cost(action, blocks);
    unit.push_back(total > 0 ? seconds_of_lane[lane] / job.updates_per_batch() / total : 0);
  }
  double const sum_bytes = double(width(accumulator(job.model->dtype))), weight_bytes = double(width(job.model->dtype));
  int const n = job.mesh.data;
  Costs costs;
  costs.action = [=](Action const& action, int lane) { return unit[std::size_t(lane)] * relative_cost(action, blocks); };
  costs.transfer = [=, &job](Posting const& p, Schedule const& s) {
    if (p.transfer != Transfer::collective) return probe.message.message_seconds(boundary_bytes(job, p.edge));
    if (n == 1 || !p.group.empty()) return 0.0;
    double const bytes = double(elements_of(p, s)) * (p.unit.valid() ? weight_bytes : sum_bytes);
    return probe.all_reduce_alpha_seconds + share_on_wire(p.what, n) * bytes / probe.all_reduce_bytes_per_second;
  };
  return costs;
}

StepPrediction predict_step(Job const& job, std::span<double const> seconds_of_lane, Probe const& probe) {
  Replay const replayed = replay(job, predicted_costs(job, seconds_of_lane, probe));
  StepPrediction out;
  out.compute_seconds = *std::max_element(seconds_of_lane.begin(), seconds_of_lane.end());
  out.exposed_seconds = replayed.exposed;
  out.step_seconds = replayed.seconds;
  for (double busy : replayed.busy)
    if (replayed.seconds > 0) out.bubble_fraction = std::max(out.bubble_fraction, 1 - busy / replayed.seconds);
  if (job.mesh.pipeline == 1) out.bubble_fraction = 0;
  return out;
}

}  // namespace shardmark
