// --dry-run: what would run where, and what it would need.

#include <fmt/format.h>

#include "app/build_job.hpp"
#include "app/describe.hpp"
#include "app/main.hpp"
#include "app/measure.hpp"
#include "app/predict.hpp"
#include "metrics/host.hpp"

namespace shardmark {
Exit run_dry(RankContext const& context) {
  Options const& options = context.options;
  int const ranks = context.world.size();
  Job const job = build_job(options, context.strategy, ranks, options.dtype, JobPurpose::training,
                            build_dataset(options, context.strategy.mesh(options, ranks).data, JobPurpose::training));
  DryRun const plan = dry_run(job, context.world.rank());
  HostExchange exchange(context.world);
  auto ops = build_backend(options, options.deterministic ? Determinism::deterministic : Determinism::fastest);
  Mesh mesh(context.world, job.mesh);
  Probe const probe = run_probe(job, *ops, mesh.over(probed_axes(job)));
  StepPrediction const step =
      predict_step(job, seconds_of_lanes(mesh, compute_seconds(plan, probe) + exchange_seconds(plan, probe)), probe);
  double const seconds = exchange.max(step.step_seconds) * double(options.steps + options.warmup);
  Binding const binding = read_binding();
  auto const hosts = exchange.gather_texts(read_host_info().hostname), cpus = exchange.gather_texts(format_cpus(binding.cpus));
  auto const numbers = exchange.gather({double(binding.numa), double(plan.peak_total)});
  if (!context.prints()) return Exit::good;
  fmt::print("{}\n\n{}\n\n", describe_run(options, options.program + ", dry run", job.model->spec, job.replicas), describe_json(options));
  fmt::print(" rank  host              cores         numa  gpu  nic  memory MiB\n");
  for (int r = 0; r < ranks; ++r) {
    auto const& n = numbers[std::size_t(r)];
    std::string const numa = n[0] < 0 ? "-" : fmt::format("{:.0f}", n[0]);
    fmt::print(" {:>4}  {:<16}  {:<12}  {:>4}  {:>3}  {:>3}  {:>10.1f}\n", r, hosts[std::size_t(r)], cpus[std::size_t(r)], numa, "-", "-",
               n[1] / (1 << 20));
  }
  fmt::print("\nabout {:.0f} s for {} + {} updates, verification not counted\n", seconds, options.warmup, options.steps);
  return Exit::good;
}

}  // namespace shardmark
