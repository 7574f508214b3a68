// Every mutant is killed by the check that its row names, with the tensor or count named; one that survives fails the test.

#include <gtest/gtest.h>

#include "backend/bfloat16.hpp"
#include "base/mutant.hpp"
#include "comm/fixed_tree.hpp"
#include "validation/equivalence/verify/cases.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

struct Mutant {
  std::string name;
  int replicas, micros;
  Net net;
  BatchNormPolicy batch_norm;
  std::string part;    // the part of verify that must see it
  std::string tensor;  // what it must name; empty: any
  std::string why;
  Recompute recompute = Recompute::no;
  Sharing sharing = Sharing::replicated;
  friend std::ostream& operator<<(std::ostream& out, Mutant const& m) { return out << m.name; }
};

// clang-format off
constexpr Net gpt = Net::gpt, convnet = Net::convnet;
constexpr BatchNormPolicy micro = BatchNormPolicy::per_micro, sync = BatchNormPolicy::sync;
constexpr Recompute again = Recompute::all, not_again = Recompute::no;
std::vector<Mutant> const mutants{
    {"skip_reduction",        2, 1, gpt,     micro, "fp64 gate",    "gradient of lm_head.weight",       "one bucket is never reduced"},
    {"reduce_twice",          2, 1, gpt,     micro, "fp64 gate",    "gradient of lm_head.weight",       "every gradient is R times too large"},
    {"divide_twice",          3, 1, gpt,     micro, "fp64 gate",    "gradient of lm_head.weight",       "a mean of means: 1/R too small"},
    {"sum_for_mean",          3, 2, gpt,     micro, "fp64 gate",    "gradient of lm_head.weight",       "R times too large"},
    {"local_denominator",     3, 1, gpt,     micro, "fp64 gate",    "gradient of lm_head.weight",       "each rank divides by its own count"},
    {"same_data_everywhere",  2, 1, gpt,     micro, "fp64 gate",    "",                                 "all ranks read rank 0's samples"},
    {"bf16_accumulation",     2, 2, gpt,     micro, "fp64 gate",    "gradient of lm_head.weight",       "sums of micro-batches are rounded to bf16"},
    {"ring_for_tree",         4, 1, gpt,     micro, "fp32 bitwise", "",                                 "ranks are summed one after the other"},
    {"buffers_of_last_rank",  3, 2, convnet, micro, "fp32 bitwise", "final layers.0.bn.running_mean",   "the wrong rank's running statistics"},
    {"buffers_not_broadcast", 3, 2, convnet, micro, "fp32 cost",    "broadcasts of buffers per update", "every rank keeps its own"},
    {"merge_by_local_count",  2, 1, convnet, sync,  "fp64 gate",    "output of layers.0",               "unequal pieces weigh the same"},
    {"recompute_moves_statistics", 1, 2, convnet, micro, "fp32 bitwise", "final layers.0.bn.running_mean", "twice for a micro-batch", again},
    {"optimizer_shard_off_by_one",   3, 1, gpt, micro, "fp64 gate",    "updated lm_head.weight",          "gradients one element behind", not_again, Sharing::optimizer},
    {"weights_not_gathered",         2, 1, gpt, micro, "fp32 cost",    "replicas with other weights",     "others' pieces stay old", not_again, Sharing::gradients},
    {"reduce_twice",                 3, 2, gpt, micro, "fp32 cost",    "reduce-scatters per update",      "right sums, twice the traffic", not_again, Sharing::gradients},
    {"weights_gathered_twice",       3, 2, gpt, micro, "fp32 cost",    "gathers of weights per update",    "right weights, twice the traffic", not_again, Sharing::parameters},
    {"unused_state_kept",            2, 1, gpt, micro, "fp32 cost",    "bytes of optimizer state kept",    "memory that no rule needs", not_again, Sharing::optimizer},
    {"gathered_weights_freed_early", 2, 2, gpt, micro, "fp64 gate",    "input gradient of h.1",           "backward finds other data", not_again, Sharing::parameters},
    {"norm_leaf_owner_twice",        3, 1, gpt, micro, "fp64 gate",    "gradient norm",                   "a leaf on two ranks counts twice", not_again, Sharing::gradients},
};
// clang-format on

class Mutants : public ::testing::TestWithParam<Mutant> {
 protected:
  ~Mutants() override { choose_mutant(""); }
  static Case small(Mutant const& m) {
    return {.net = m.net,
            .replicas = m.replicas,
            .micros = m.micros,
            .batch = 9,
            .steps = 3,
            .batch_norm = m.batch_norm,
            .recompute = m.recompute,
            .sharing = m.sharing};
  }
};

TEST_P(Mutants, is_killed_by_the_check_that_its_row_names) {
  Mutant const& m = GetParam();
  ASSERT_EQ(prove(small(m)).verdict, Verdict::verified) << "without the fault";
  choose_mutant(m.name);
  Verification result;
  try {
    result = prove(small(m));
  } catch (RankFailure const& ledger) {
    // Counting is a check too: the wrong samples have another number of loss terms.
    EXPECT_EQ(m.name, "same_data_everywhere") << ledger.what();
    return;
  }
  EXPECT_EQ(result.verdict, Verdict::failed) << m.name << " survived: " << m.why;
  double worst = 0;
  bool named = false;
  for (Check const& c : result.checks) {
    if (c.part != m.part || c.verdict != Verdict::failed) continue;
    named = named || m.tensor.empty() || c.tensor == m.tensor;
    if (c.kind == CheckKind::bounded) worst = std::max(worst, c.ratio);
  }
  EXPECT_TRUE(named) << m.name << " was not named by " << m.part << "; first divergence: " << result.first_divergence;
  if (m.part == "fp64 gate") {
    EXPECT_GE(worst, 10) << "validation rule 3: a mutant keeps a ratio of 10 or more at the gate";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(mutants),
                         [](auto const& of) { return of.param.name + (of.param.sharing == Sharing::replicated ? "" : "_shared"); });

/// Case 33 can fail: each hop's rounding loses ones.
TEST(FixedTree, bf16_accumulation_is_killed_by_256_and_seven_ones) {
  std::vector<bfloat16> values(8, bfloat16(1));
  values[0] = bfloat16(256);
  std::vector<std::byte const*> in;
  for (bfloat16 const& v : values) in.push_back(reinterpret_cast<std::byte const*>(&v));
  bfloat16 out;
  auto const sum = [&] {
    sum_fixed_tree(DType::bf16, in, reinterpret_cast<std::byte*>(&out), 1);
    return float(out);
  };
  EXPECT_EQ(sum(), 264);
  choose_mutant("bf16_accumulation");
  EXPECT_NE(sum(), 264);
  choose_mutant("");
}

/// Both sides of verify share the operation, so the closed form of case 16 is what sees it.
TEST(Operations, variance_biased_is_killed_by_case_16) {
  double unbiased[] = {0, 0};
  for (int faulty : {0, 1}) {
    choose_mutant(faulty == 1 ? "variance_biased" : "");
    for (auto const& ops : {make_reference_backend(), make_cpu_backend(Determinism::deterministic)}) {
      HostStream stream(0);
      double moments[] = {4, 4.5, 45}, mean[] = {0}, variance[] = {0};
      std::int64_t batches = 0, one = 1, three = 3;
      auto const view = [](auto* at, std::int64_t& n, DType type) {
        return view_at(reinterpret_cast<std::byte*>(at), nullptr, type, {&n, 1});
      };
      ops->run(stream, RunningUpdate{view(moments, three, DType::f64), view(mean, one, DType::f64), view(variance, one, DType::f64),
                                     view(&batches, one, DType::i64), 1});
      unbiased[faulty] = variance[0];
    }
  }
  choose_mutant("");
  EXPECT_EQ(unbiased[0], 15);
  EXPECT_EQ(unbiased[1], 11.25);
}

TEST(Ledger, drop_sample_is_killed_by_the_count_of_loss_terms) {
  choose_mutant("drop_sample");
  try {
    prove(Case{.net = Net::gpt, .replicas = 2, .micros = 2, .batch = 9, .steps = 3});
    ADD_FAILURE() << "a dropped sample survived";
  } catch (RankFailure const& error) {
    EXPECT_NE(std::string(error.what()).find("loss terms were counted"), std::string::npos) << error.what();
  }
  choose_mutant("");
}

}  // namespace
}  // namespace shardmark::testing
