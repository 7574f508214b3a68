// `accumulation verify` on several ranks.

#include "strategies/accumulation/equivalence.hpp"

#include <fmt/format.h>

#include <limits>

#include "strategies/accumulation/variants.hpp"
#include "verify/assembly.hpp"

namespace shardmark {
namespace {

Check bitwise_check(BothWays::Compared const& compared, int order) {
  Check check{.part = "both ways", .tensor = compared.what, .module = "replicas = accumulation", .kind = CheckKind::bitwise};
  check.error = double(compared.differ);
  check.elements = compared.of;
  check.ratio = check.power = check.frobenius = std::numeric_limits<double>::quiet_NaN();
  check.order = order;
  check.note = compared.first;
  if (compared.differ > 0 || compared.of == 0) check.verdict = Verdict::failed;
  return check;
}

/// Rank 0's numbers everywhere.
void share(std::vector<BothWays::Compared>& compared, Communicator& world) {
  std::vector<std::int64_t> numbers;
  for (BothWays::Compared const& c : compared) numbers.insert(numbers.end(), {c.differ, c.of});
  Assembly(world).from_first(std::as_writable_bytes(std::span(numbers)));
  for (std::size_t i = 0; i < compared.size(); ++i) compared[i].differ = numbers[2 * i], compared[i].of = numbers[2 * i + 1];
}

std::string row(Variant const& v) {
  std::string differ = "-", relative = "-";
  if (v.measured) {
    differ = fmt::format("{} of {}", v.measured->differ, v.measured->of);
    relative = v.measured->differ == 0 ? "0" : fmt::format("{:.1e}", v.measured->relative);
  }
  return fmt::format(" {:<36} {:>18} {:>8}  {}\n", v.what + (v.model.empty() ? "" : " *"), differ, relative, v.why);
}

std::string table_of(std::vector<Variant> const& variants, int ranks) {
  std::string out = fmt::format("what differs from one process that adds {} micro-batches in the tree: gradients of update 1\n", ranks);
  out += fmt::format(" {:<36} {:>18} {:>8}  {}\n", "done in another way", "elements differing", "relative", "because");
  std::string other_model;
  for (Variant const& variant : variants) {
    out += row(variant);
    if (!variant.model.empty()) other_model = fmt::format(" * {}\n", variant.model);
  }
  return out + other_model + " relative: the largest error of a tensor over its largest element; the largest of all tensors\n\n";
}

}  // namespace

Supplement compare_both_ways(RankContext const& context) {
  int const ranks = context.world.size();
  if (ranks == 1) return {};
  Options const& options = context.options;
  auto const data = build_dataset(options, ranks, JobPurpose::proof);
  TwoJobs const jobs = two_jobs(options, context.strategy, ranks, data);
  Workbench bench(context);
  BothWays both = run_both_ways(bench, jobs, options.steps);
  std::vector<Variant> variants;
  ModelSpec const& spec = jobs.alone.model->spec;
  BothWays::Compared recorded{.what = "leaves of update 1, added again", .first = {}};
  if (bench.leads()) {
    variants.push_back({"data parallelism, in the tree", deviation(both.replicas, both.alone, spec), "the same leaves, the same tree", ""});
    Deviation const again = deviation(both.leaves->tree(), both.alone, spec);
    recorded.differ = again.differ;
    recorded.of = again.of;
  }
  both.compared.push_back(std::move(recorded));
  for (Variant& variant : measure_variants(bench, jobs, both)) variants.push_back(std::move(variant));
  share(both.compared, context.world);
  Supplement out;
  for (BothWays::Compared const& compared : both.compared) out.checks.push_back(bitwise_check(compared, int(out.checks.size())));
  if (bench.leads()) out.text = table_of(variants, ranks);
  return out;
}

}  // namespace shardmark
