#include "strategies/accumulation/variants.hpp"

#include <fmt/format.h>

#include "app/describe.hpp"

namespace shardmark {
namespace {

constexpr double usual_dropout = 0.1;
constexpr double share_that_clips = 0.5;
constexpr int fewest_leaves_with_orders = 4;  // a loop over fewer is the tree

class Measuring {
 public:
  Measuring(Workbench& bench, TwoJobs const& jobs, BothWays const& both)
      : bench_(bench), options_(bench.context().options), ranks_(bench.context().world.size()), jobs_(jobs), both_(both) {}

  std::vector<Variant> run() {
    orders();
    batch_norm();
    dropout();
    if (bench_.leads()) scales();
    return std::move(out_);
  }

 private:
  ModelSpec const& spec() const { return jobs_.alone.model->spec; }

  void add(std::string what, std::optional<Deviation> measured, std::string why, std::string model = {}) {
    out_.push_back({std::move(what), measured, std::move(why), std::move(model)});
  }

  /// A gradient of update 1 against that of one process in the tree.
  void against_tree(std::string what, ByUnit const& gradient, std::string why) {
    add(std::move(what), deviation(gradient, both_.alone, spec()), std::move(why));
  }

  // ---- other orders of the same sum

  void orders() {
    if (bench_.leads()) {
      bool const few = ranks_ < fewest_leaves_with_orders;
      against_tree("leaves added in a loop", both_.leaves->loop(), few ? "the tree itself: 2 or 3 leaves" : "another order of additions");
      against_tree("ring all-reduce", both_.leaves->ring(),
                   ranks_ == 2 ? "2 leaves: addition commutes" : "each piece begins at another rank");
    }
    library();
    Job fused = jobs_.alone;
    fused.schedule.sum.micros = Fold::loop;
    ByUnit const gradient = bench_.first_gradient_alone(fused);
    if (!bench_.leads()) return;
    bool const same = deviation(gradient, both_.alone, spec()).differ == 0;
    against_tree("fused accumulation (beta = 1)", gradient, same ? "the tree: few leaves, uncut sums" : "the sum goes on inside products");
  }

  void library() {
    std::string const what = "the library's all-reduce";
    if (bench_.context().world.name() != "mpi") return add(what, {}, "needs mpirun");
    Job job = jobs_.replicas;
    job.reduction = Reduction::vendor;
    ByUnit const gradient = bench_.first_gradient(job);
    if (!bench_.leads()) return;
    bool const same = deviation(gradient, both_.alone, spec()).differ == 0;
    against_tree(what, gradient, same ? "its order is this tree here" : "MPI chooses the order");
  }

  // ---- layers that couple samples, or draw numbers

  void batch_norm() {
    Options options = options_;
    if (options.model != ModelKind::convnet) {
      options.model = ModelKind::convnet;
      options = reduced_twin(options, 1);
    }
    auto const data = build_dataset(options, ranks_, JobPurpose::proof);
    options.batch_norm = BatchNormPolicy::per_micro;
    TwoJobs const jobs = two_jobs(options, bench_.context().strategy, ranks_, data);
    Job synchronised = jobs.replicas;
    synchronised.batch_norm = BatchNormPolicy::sync;
    ByUnit const together = bench_.first_gradient(synchronised), apart = bench_.first_gradient_alone(jobs.alone);
    ByUnit const replicas = bench_.first_buffers(jobs.replicas), alone = bench_.first_buffers_alone(jobs.alone);
    if (!bench_.leads()) return;
    ModelSpec const& spec = jobs.alone.model->spec;
    std::string const model = other_model(options, jobs);
    add("synchronised batch norm", deviation(together, apart, spec), "statistics of all samples", model);
    add("running statistics", deviation_of_buffers(replicas, alone), "moved by rank 0 alone, or R times", model);
  }

  /// Its name; empty: the run's own.
  std::string other_model(Options const& options, TwoJobs const& jobs) const {
    return options.model == options_.model ? std::string{} : describe_model(options, jobs.alone.model->spec);
  }

  static Deviation deviation_of_buffers(ByUnit const& buffers, ByUnit const& reference) {
    ModelSpec each_a_tensor;
    for (std::size_t b = 0; b < reference.size(); ++b) {
      ParamSpec buffer;
      buffer.unit = UnitId{std::int32_t(b)};
      buffer.shape = {std::int64_t(reference[b].size())};
      each_a_tensor.params.push_back(std::move(buffer));
    }
    return deviation(buffers, reference, each_a_tensor);
  }

  /// Masks from a generator of each rank's own: its seed is the job's plus the rank. Weights are rank 0's everywhere.
  void dropout() {
    Options options = options_;
    if (options.model == ModelKind::convnet) {
      options.model = ModelKind::gpt;
      options = reduced_twin(options, 1);
    }
    if (options.dropout == 0) options.dropout = usual_dropout;
    auto const data = build_dataset(options, ranks_, JobPurpose::proof);
    TwoJobs const jobs = two_jobs(options, bench_.context().strategy, ranks_, data);
    options.seed += std::uint64_t(bench_.context().world.rank());
    Job unkeyed = jobs.replicas;
    unkeyed.model = build_model(options, data->shape(), options.dtype, JobPurpose::proof);
    ByUnit const gradient = bench_.first_gradient(unkeyed, Workbench::Weights::of_first_rank);
    ByUnit const reference = bench_.first_gradient_alone(jobs.alone);
    if (bench_.leads())
      add(fmt::format("dropout {} not keyed by sample", options.dropout), deviation(gradient, reference, jobs.alone.model->spec),
          "each rank draws its own masks", other_model(options, jobs));
  }

  // ---- other denominators

  void scales() {
    auto const& tail = both_.tail;
    LeafSums const& leaves = tail ? *tail->leaves : *both_.leaves;
    add(fmt::format("mean of means, update {}", tail ? tail->update : 1),
        deviation(leaves.mean_of_means(), tail ? tail->gradient : both_.alone, spec()),
        leaves.even() ? "leaves have equally many terms" : "divided by own counts, then by R");
    if (tail)
      add(fmt::format("tail by a full count, update {}", tail->update),
          deviation(leaves.scaled(tail->gradient, tail->share), tail->gradient, spec()),
          fmt::format("a tail has {:.1f} % of the terms", tail->share * 100));
    double const largest = options_.clip_norm > 0 ? options_.clip_norm : share_that_clips * norm_of(both_.alone);
    add(fmt::format("clipped at {:.3g} in each micro-batch", largest),
        deviation(both_.leaves->clipped_each_time(largest), both_.leaves->clipped(both_.alone, largest), spec()),
        "once, on the whole sum, is right");
  }

  Workbench& bench_;
  Options const& options_;
  int ranks_;
  TwoJobs const& jobs_;
  BothWays const& both_;
  std::vector<Variant> out_;
};

}  // namespace

std::vector<Variant> measure_variants(Workbench& bench, TwoJobs const& jobs, BothWays const& both) {
  return Measuring(bench, jobs, both).run();
}

}  // namespace shardmark
