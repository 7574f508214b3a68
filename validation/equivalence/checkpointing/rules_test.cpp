// Training under every rule of recomputation: the bits of keeping everything, what hooks see, and the bytes that a rule spares.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "strategies/checkpointing/checkpointing.hpp"
#include "validation/equivalence/ddp/rigs.hpp"

namespace shardmark::testing {
namespace {

Options small(ModelKind model, std::string const& rule, int micros) {
  Options o;
  o.program = "checkpointing";
  o.model = model;
  o.layers = model == ModelKind::mlp ? 7 : 3;
  o.hidden = model == ModelKind::convnet ? 5 : 12;
  o.heads = 3;
  o.seq = 5;
  o.vocab = 31;
  o.dropout = model == ModelKind::gpt ? 0.1 : 0;
  o.batch = 7;
  o.micros = micros;
  o.data = "synthetic";
  o.recompute = rule;
  o.deterministic = true;
  return o;
}

Job job_of(Options const& o) {
  return build_job(o, *make_checkpointing(), 1, DType::f32, JobPurpose::proof, build_dataset(o, 1, JobPurpose::proof));
}

/// Running statistics, after the weights.
std::vector<double> trained(Options const& options) {
  Job const job = job_of(options);
  std::vector<double> out;
  on_ranks(job, [&](Rig& rig, int) {
    rig.program().advance(3);
    out = all_weights(rig.program());
    rig.program().drain();
    for (RunningBuffers const& running : rig.program().store().spec().running)
      for (View const& v : {rig.program().store().buffer(running.mean), rig.program().store().buffer(running.variance)})
        for (std::int64_t i = 0; i < v.elements(); ++i) out.push_back(v.as<float>()[i]);
  });
  return out;
}

TEST(Checkpointing, case_08_case_17_case_55_no_rule_changes_a_bit) {
  for (ModelKind model : {ModelKind::mlp, ModelKind::convnet, ModelKind::gpt})
    for (int micros : {1, 2, 3}) {
      auto const want = trained(small(model, "none", micros));
      std::vector<std::string> rules{"all", "every:2", "every:3", "sqrt", "budget:least"};
      if (model == ModelKind::gpt) rules.insert(rules.end(), {"selective", "budget:70%"});
      for (std::string const& rule : rules)
        EXPECT_EQ(trained(small(model, rule, micros)), want) << rule << ", " << micros << " micro-batches";
    }
}

std::int64_t activations(Options const& options) { return dry_run(job_of(options), 0).peak[std::size_t(Book::activations)]; }

/// A chain in which stashes differ: an embedding, four transformer blocks, a head with many logits.
Options planned(std::string const& rule) {
  Options o = small(ModelKind::gpt, rule, 2);
  o.layers = 4;
  o.hidden = 48;
  o.seq = 32;
  o.vocab = 257;
  return o;
}

std::string mib(std::int64_t bytes) { return fmt::format("budget:{:.9f}", double(bytes) / (1 << 20)); }

// On one rank, sizes of blocks tell exactly what a plan takes: no budget is missed or left unused.
TEST(Checkpointing, a_budget_is_kept_and_the_curve_is_what_dry_runs_find) {
  Options const o = planned("none");
  Job const job = job_of(o);
  auto const front = budget_choices(o, *make_checkpointing(), job, 1).front().plans.front();
  ASSERT_GT(front.size(), 4U);
  EXPECT_EQ(activations(planned("none")), front.back().peak_bytes);
  EXPECT_EQ(activations(planned("budget:least")), front.front().peak_bytes);
  for (auto const& point : front) {
    EXPECT_EQ(activations(planned(mib(point.peak_bytes + 1))), point.peak_bytes);
    EXPECT_LT(activations(planned("budget:least")), activations(planned("all"))) << "blocks are run again more than once";
  }
}

TEST(Checkpointing, a_budget_that_is_too_small_is_refused_with_the_smallest_that_works) {
  std::int64_t const least = activations(planned("budget:least"));
  try {
    job_of(planned(mib(least - 1)));
    FAIL() << "let pass";
  } catch (BadRequest const& refused) {
    std::string const smallest = fmt::format("at least {:.2f} MiB", std::ceil(double(least) / (1 << 20) * 100) / 100);
    EXPECT_THAT(refused.what(), ::testing::HasSubstr(smallest));
  }
  for (char const* rule : {"budget:", "budget:x", "budget:0", "budget:-3", "budget:1e999", "budget:5MiB", "budget:%"})
    EXPECT_THROW(job_of(planned(rule)), BadRequest) << rule;
}

// What was measured decides, where it is there: the block that is cheap by the clock is run again, not the one that is cheap in operations.
TEST(Checkpointing, measured_costs_come_before_operations) {
  Options o = planned("budget:80%");
  auto const runs_again = [](Options const& options) {
    std::set<int> out;
    for (Action const& action : job_of(options).schedule.lanes.front().body)
      if (action.what == Do::recompute) out.insert(action.chunk.v);
    return out;
  };
  std::vector<double> seconds(6, 1);
  seconds[2] = 0.001;
  o.forward_seconds = std::make_shared<std::vector<double> const>(seconds);
  EXPECT_THAT(runs_again(o), ::testing::Contains(2));
  seconds[2] = 1000;
  o.forward_seconds = std::make_shared<std::vector<double> const>(seconds);
  EXPECT_THAT(runs_again(o), ::testing::Not(::testing::Contains(2)));
}

// strategies/checkpointing/README.md: 34.77 MiB are 17 activations and the batch's inputs, 2.00 are one activation.
TEST(Checkpointing, the_presets_example_is_34_77_against_2_00_mib) {
  std::array const line{"checkpointing", "plan", "--preset", "seed-checkpoint", "--recompute", "none"};
  Usage const usage{.program = "checkpointing", .extra = {"recompute"}};
  Options o = *parse_options(usage, int(line.size()), line.data()).options;
  double constexpr mib_bytes = 1 << 20;
  auto const chain = budget_choices(o, *make_checkpointing(), job_of(o), 1).front().plans.chain();
  ASSERT_EQ(chain.size(), 18U);
  std::int64_t kept = o.batch * o.features * 4;
  for (std::size_t b = 0; b + 1 < chain.size(); ++b) {
    EXPECT_EQ(double(chain[b].stash_bytes) / mib_bytes, 2.00);
    kept += chain[b].stash_bytes;
  }
  EXPECT_NEAR(double(kept) / mib_bytes, 34.77, 0.005);
  EXPECT_NEAR(double(activations(o)) / mib_bytes, 38.00, 0.02);
  o.recompute = "budget:least";
  EXPECT_NEAR(double(activations(o)) / mib_bytes, 8.00, 0.02);
}

/// What ran, by kind and block; and what an observer saw of outputs.
class Seen final : public Hook, public Observer {
 public:
  void before(Program&, Action const& action, std::int64_t) override {
    if (action.what == Do::forward || action.what == Do::recompute) ++runs[{action.what, action.chunk.v}];
  }
  void see(MicroId, std::string_view module, std::string_view kind, View const&) override {
    if (kind == "output") ++outputs[std::string(module)];
  }
  std::map<std::pair<Do, int>, int> runs;
  std::map<std::string, int> outputs;
};

TEST(Checkpointing, hooks_see_a_recomputation_as_one_and_observers_an_output_once) {
  constexpr int micros = 2, windows = 3;
  Job const job = job_of(small(ModelKind::gpt, "all", micros));
  Seen seen;
  run_thread_ranks(1, [&](Communicator& world) {
    auto ops = make_reference_backend();
    Rig rig(job, {.ops = *ops, .world = world, .observer = &seen, .hooks = {&seen}});
    rig.program().advance(windows);
    rig.program().drain();
  });
  int const blocks = int(job.model->blocks.size());
  for (int b = 0; b < blocks; ++b) {
    EXPECT_EQ((seen.runs[{Do::forward, b}]), micros * windows) << b;
    EXPECT_EQ((seen.runs[{Do::recompute, b}]), b + 1 < blocks ? micros * windows : 0) << "the last block's backward follows at once";
    EXPECT_EQ(seen.outputs[job.model->blocks[std::size_t(b)].name], micros * windows) << b;
  }
}

// Attention saves q, k, v, its output and one number a head and position. The output is the projection's input too: a selective stash
// leaves out both of these, and nothing that grows with the square of the sequence, since no such tensor exists.
TEST(Checkpointing, a_selective_stash_spares_attentions_output_and_one_number_a_head_and_position) {
  Options o = small(ModelKind::gpt, "none", 1);
  o.dropout = 0;
  o.layers = 4;
  o.hidden = 48;
  o.seq = 64;
  std::int64_t const none = activations(o);
  o.recompute = "selective";
  std::int64_t const output = o.batch * o.seq * o.hidden * 4, per_head = o.batch * o.seq * o.heads * 4;
  // At the peak, the last transformer block has its stash whole.
  EXPECT_EQ(none - activations(o), (o.layers - 1) * (output + per_head));
}

}  // namespace
}  // namespace shardmark::testing
