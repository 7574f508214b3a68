// Faults on purpose in pipelines: each first proves that it changes what fp64 training comes to (or, where it costs memory alone, that it
// doesn't, or that it keeps the run from ending), and is then killed by the check that its row names. One that survives fails the test.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "base/mutant.hpp"
#include "comm/decorators/delayed.hpp"
#include "strategies/gpipe/gpipe.hpp"
#include "strategies/pipedream/pipedream.hpp"
#include "validation/equivalence/core/scalar_chain.hpp"
#include "validation/equivalence/ddp/rigs.hpp"
#include "validation/schedule/core/planners.hpp"
#include "verify/verify.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

/// Chosen while it lives.
class Chosen {
 public:
  explicit Chosen(std::string name) { choose_mutant(std::move(name)); }
  ~Chosen() { choose_mutant(""); }
  Chosen(Chosen const&) = delete;
};

/// The last two clip, so that all stages decide together.
enum class Kind : std::uint8_t { gpipe, flush, interleaved, stash, vertical, two_buffers, joint_vertical, joint_two_buffers };
enum class Changes : std::uint8_t { weights, memory, ending };

struct Fault {
  std::string name;
  Kind kind;
  int ranks, micros;
  Changes changes;
  std::string part;    // of verify, that must see it; empty: the run itself refuses to go on
  std::string tensor;  // what it must name, or what the run's message says
  friend std::ostream& operator<<(std::ostream& out, Fault const& m) { return out << m.name; }
};

std::unique_ptr<Strategy> strategy_of(Kind kind) { return kind == Kind::gpipe ? make_gpipe() : make_pipedream(); }

/// A gpt of four layers on ragged data whose micro-batches have equally many rows, so that no fault shows in a size.
Options options_of(Fault const& fault) {
  Options o;
  o.program = fault.kind == Kind::gpipe ? "gpipe" : "pipedream";
  o.layers = 4;
  o.hidden = 12;
  o.heads = 3;
  o.seq = 5;
  o.vocab = 31;
  o.batch = 2 * fault.micros;
  o.micros = fault.micros;
  o.steps = 4;
  o.lr = 0.1;
  o.data = "synthetic";
  o.deterministic = true;
  o.recompute = "none";
  bool const joint = fault.kind == Kind::joint_vertical || fault.kind == Kind::joint_two_buffers;
  o.tied_embeddings = fault.kind == Kind::flush || joint;
  if (joint) o.clip_norm = 0.05;
  if (fault.kind == Kind::interleaved) o.virtual_stages = 2;
  if (fault.kind == Kind::stash) o.mode = PipelineMode::stash;
  if (fault.kind == Kind::vertical || fault.kind == Kind::joint_vertical) o.mode = PipelineMode::vertical;
  if (fault.kind == Kind::two_buffers || fault.kind == Kind::joint_two_buffers) o.mode = PipelineMode::two_buffers;
  return o;
}

Job job_of(Fault const& fault, DType dtype) {
  Options const options = options_of(fault);
  auto const data = build_dataset(options, 1, JobPurpose::proof);
  return build_job(options, *strategy_of(fault.kind), fault.ranks, dtype, JobPurpose::proof, data);
}

/// What a run that a fault keeps from ending fails with; the programs' watchdog says it in more words (case 125).
constexpr char const* unsent = "waits for a message that nobody sends";
std::chrono::steady_clock::time_point patience_ends;

/// While it lives, waits of the ranks that late() sets up end.
class Patience {
 public:
  Patience() { patience_ends = std::chrono::steady_clock::now() + std::chrono::seconds(3); }
  ~Patience() {
    patience_ends = {};
    while_waiting(nullptr, nullptr);  // the first rank is the calling thread
  }
  Patience(Patience const&) = delete;
};

void lose_patience(void*) {
  if (std::chrono::steady_clock::now() > patience_ends) throw RankFailure(unsent);
}

/// All ranks but the first are late, so that what they have not received yet can be overwritten.
std::unique_ptr<Communicator> late(Communicator& world) {
  if (patience_ends != std::chrono::steady_clock::time_point{}) while_waiting(lose_patience, nullptr);
  return make_delayed(world, {.seed = 3, .longest_seconds = world.rank() == 0 ? 0 : 0.002});
}

Verification prove_late(Fault const& fault) {
  Options const options = options_of(fault);
  VerifyRequest request;
  request.strategy = options.program;
  request.make_job = [fault](DType dtype) { return job_of(fault, dtype); };
  request.steps = options.steps;
  request.candidate_backend = [](DType) { return make_cpu_backend(Determinism::deterministic); };
  request.reference_backend = [] { return make_reference_backend(); };
  Verification out;
  run_thread_ranks(fault.ranks, [&](Communicator& world) {
    auto const around = late(world);
    Verification mine = verify(request, *around);
    if (world.rank() == 0) out = std::move(mine);
  });
  return out;
}

std::vector<std::vector<double>> fp64_weights(Fault const& fault) {
  Job const job = job_of(fault, DType::f64);
  return train(job, 3 * job.updates_per_batch(), late);
}

// clang-format off
constexpr char const *gate = "fp64 gate", *bits = "fp32 bitwise", *cost = "fp32 cost";
constexpr Changes weights = Changes::weights, memory = Changes::memory, ending = Changes::ending;
std::vector<Fault> const faults{
    {"tags_of_activation_and_gradient_swapped", Kind::gpipe, 2, 3, ending, "", unsent},
    {"tags_of_boundaries_swapped",      Kind::interleaved, 2, 4, ending,  "",   unsent},
    {"latest_weights_in_backward",      Kind::stash,       3, 4, weights, bits, "final h.0.attn.q.weight"},
    {"latest_weights_in_backward",      Kind::vertical,    3, 4, weights, bits, "final h.0.attn.q.weight"},
    {"latest_weights_in_backward",      Kind::two_buffers, 3, 4, weights, bits, "final h.0.attn.q.weight"},
    {"one_version_too_many",            Kind::stash,       3, 4, memory,  cost, "weight versions at once"},
    {"one_version_too_many",            Kind::vertical,    3, 4, memory,  cost, "weight versions at once"},
    {"one_version_too_many",            Kind::two_buffers, 3, 4, memory,  cost, "weight versions at once"},
    {"drop_micro_batch",                Kind::gpipe,       3, 4, weights, gate, "gradient of h.0.attn.q.weight"},
    {"backward_twice",                  Kind::flush,       3, 4, weights, gate, "gradient of h.0.attn.q.weight"},
    {"reversed_sends",                  Kind::gpipe,       2, 3, weights, gate, "output of h.2"},
    {"send_buffer_reused",              Kind::gpipe,       2, 4, weights, gate, ""},
    {"unnormalised_loss",               Kind::gpipe,       2, 4, weights, gate, "gradient of lm_head.weight"},
    {"denominator_of_the_micro_batch",  Kind::flush,       2, 4, weights, gate, "gradient of h.0.attn.q.weight"},
    {"denominator_of_the_window_before",Kind::stash,       3, 4, weights, bits, "final lm_head.weight"},
    {"rescale_at_every_pass",           Kind::gpipe,       2, 4, weights, gate, "gradient of h.0.attn.q.weight"},
    {"tied_gradient_not_exchanged",     Kind::flush,       3, 4, weights, gate, "gradient of wte.weight"},
    {"norm_of_the_own_stage",           Kind::joint_vertical, 3, 4, weights, gate, "gradient norm"},
    {"norm_of_the_own_stage",           Kind::joint_two_buffers, 3, 4, weights, gate, "gradient norm"},
    {"norm_of_the_update_before",       Kind::joint_vertical, 3, 4, weights, bits, "gradient norm of each update"},
    {"norm_of_the_update_before",       Kind::joint_two_buffers, 3, 4, weights, bits, "gradient norm of each update"},
    {"tied_slot_of_the_update_before",  Kind::joint_vertical, 3, 4, weights, bits, "last gradient of wte.weight"},
    {"tied_slot_of_the_update_before",  Kind::joint_two_buffers, 3, 4, weights, bits, "last gradient of wte.weight"},
    {"one_version_too_many",            Kind::joint_vertical, 3, 4, memory,  cost, "weight versions at once"},
    {"loss_stays_on_the_last_stage",    Kind::gpipe,       3, 4, weights, "",   "loss terms were counted"},
};
// clang-format on

class PipelineMutants : public ::testing::TestWithParam<Fault> {};

TEST_P(PipelineMutants, is_killed_by_the_check_that_its_row_names) {
  Fault const& fault = GetParam();
  auto const right = fp64_weights(fault);
  ASSERT_EQ(prove_late(fault).verdict, Verdict::verified) << "without the fault";
  Chosen const chosen(fault.name);
  std::optional<Patience> patience;
  if (fault.changes == Changes::ending) patience.emplace();
  Verification result;
  try {
    EXPECT_EQ(fp64_weights(fault) != right, fault.changes == Changes::weights) << "what fp64 training comes to";
    result = prove_late(fault);
  } catch (RankFailure const& failure) {
    ASSERT_EQ(fault.part, "") << failure.what();
    EXPECT_NE(std::string(failure.what()).find(fault.tensor), std::string::npos) << failure.what();
    return;
  }
  EXPECT_EQ(result.verdict, Verdict::failed) << "it survived";
  double worst = 0;
  bool named = false;
  for (Check const& c : result.checks) {
    if (c.part != fault.part || c.verdict != Verdict::failed) continue;
    named = named || fault.tensor.empty() || c.tensor == fault.tensor;
    if (c.kind == CheckKind::bounded) worst = std::max(worst, c.ratio);
  }
  EXPECT_TRUE(named) << "not named by " << fault.part << "; first divergence: " << result.first_divergence;
  if (fault.part == gate) {
    EXPECT_FALSE(worst < 10) << "validation rule 3: a mutant keeps a ratio of 10 or more at the gate";
  }
}

INSTANTIATE_TEST_SUITE_P(All, PipelineMutants, ::testing::ValuesIn(faults),
                         [](auto const& of) { return fmt::format("{}_{}", of.param.name, int(of.param.kind)); });

double over(double numerator, int power) { return std::ldexp(numerator, -power); }

/// The fixture's second row: the losses are those of stashing, the first stage's weight is not.
TEST(PipelineFaults, case_69_no_stashing_shows_in_the_first_weight_alone) {
  ChainRun const run{plan_pipedream({3, 1}, Delay::stash), {1, 2, 1}, {1}, 4};
  ChainOutcome const right = run_chain(run);
  Chosen const chosen("latest_weights_in_backward");
  ChainOutcome const wrong = run_chain(run);
  EXPECT_EQ(wrong.losses, right.losses);
  EXPECT_EQ(right.weights[0], over(-12963675, 27));
  EXPECT_EQ(wrong.weights, (std::vector{over(-2992302393, 36), right.weights[1], right.weights[2]}));
}

/// Six samples whose gradient is 1, in three passes of two.
TEST(PipelineFaults, case_12_a_sum_that_is_rescaled_at_every_pass) {
  FixedBatches::Sample const sample{{1}, {0}};
  for (Schedule const& schedule : {plan_1f1b({2, 3}), plan_gpipe({2, 3}, BackwardOrder::oldest_first)}) {
    ChainRun const run{.coarse = schedule, .start = {1, 1}, .rows = {2, 2, 2}, .samples = {sample}, .rate = 1};
    EXPECT_EQ(run_chain(run).weights, (std::vector{1.0 - 1, 1.0 - 1}));
    Chosen const chosen("rescale_at_every_pass");
    EXPECT_EQ(run_chain(run).weights, (std::vector{1 - 1.75, 1 - 1.75}));
  }
}

/// Twelve sequences of eight tokens: the gradient of the sum is 96 times that of the mean.
TEST(PipelineFaults, case_13_an_unnormalised_sum_is_96_times_too_large) {
  Options options = options_of({.name = "", .kind = Kind::gpipe, .ranks = 2, .micros = 4, .changes = weights, .part = "", .tensor = ""});
  options.batch = 12;
  options.seq = 8;
  auto const data = build_dataset(options, 1, JobPurpose::training);  // every position counts
  auto const norm = [&] {
    std::vector<double> norms(2);
    on_ranks(build_job(options, *make_gpipe(), 2, DType::f64, JobPurpose::proof, data), [&](Rig& rig, int rank) {
      rig.program().advance(1);
      rig.program().drain();
      EXPECT_EQ(rig.program().last().counted, 96);
      norms[std::size_t(rank)] = rig.program().last().norm;
    });
    EXPECT_EQ(norms[0], norms[1]);
    return norms[0];
  };
  double serial = 0;
  on_ranks(serial_twin(build_job(options, *make_gpipe(), 2, DType::f64, JobPurpose::proof, data)), [&](Rig& rig, int) {
    rig.program().advance(1);
    rig.program().drain();
    serial = rig.program().last().norm;
  });
  EXPECT_EQ(norm(), serial);
  Chosen const chosen("unnormalised_loss");
  EXPECT_NEAR(norm() / serial, 96, 1e-9);
}

}  // namespace
}  // namespace shardmark::testing
