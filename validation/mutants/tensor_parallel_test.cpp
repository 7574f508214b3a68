// Wrong variants of tensor parallelism, each first shown to change what fp64 training comes to, then killed by the check that its row
// names.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/mutant.hpp"
#include "validation/equivalence/tensor_parallel/proofs.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

struct Fault {
  std::string name;
  std::string tensor;  // that the fp64 gate must name
  double clip_norm = 0;
  TokenRows rows = TokenRows::whole;
  std::int64_t vocab = 30;  // even slices: faults that add up slices would end at once on others
  friend std::ostream& operator<<(std::ostream& out, Fault const& f) { return out << f.name; }
};

// clang-format off
std::vector<Fault> const faults{
    {"row_bias_on_every_rank",           "output of h.0"},
    {"input_gradient_not_reduced",       "input gradient of h.1"},
    {"input_gradient_reduced_twice",     "input gradient of h.1"},
    {"complete_weight_gradient_reduced", "gradient of h.1.mlp.fc.weight"},
    {"norm_counts_copies",               "gradient norm", 0.1},
    {"qkv_split_contiguously",           "output of h.0"},
    {"padding_not_masked",               "loss gradient of head", 0, TokenRows::whole, 31},
    {"layer_norm_of_own_rows",           "gradient of h.1.ln_1.weight", 0, TokenRows::cut},
    {"input_not_gathered_again",         "gradient of h.1.mlp.fc.weight", 0, TokenRows::cut},
};
// clang-format on

class Chosen {
 public:
  explicit Chosen(std::string name) { choose_mutant(std::move(name)); }
  ~Chosen() { choose_mutant(""); }
  Chosen(Chosen const&) = delete;
};

class TensorParallelMutants : public ::testing::TestWithParam<std::tuple<Fault, int>> {};

TEST_P(TensorParallelMutants, is_killed_by_the_check_that_its_row_names) {
  auto const& [fault, ranks] = GetParam();
  Options options = small_gpt(2 * ranks);
  options.clip_norm = fault.clip_norm;
  options.vocab = fault.vocab;
  options.sequence_parallel = fault.rows == TokenRows::cut;
  options.seq = 6;
  auto const weights = [&, r = ranks] { return train(tensor_job(options, r, DType::f64), 2); };
  auto const right = weights();
  ASSERT_EQ(prove(options, ranks).verdict, Verdict::verified) << "without the fault";
  Chosen const chosen(fault.name);
  EXPECT_NE(weights(), right) << "what fp64 training comes to";
  Verification const result = prove(options, ranks);
  EXPECT_EQ(result.verdict, Verdict::failed) << "it survived";
  bool named = false;
  for (Check const& c : result.checks) {
    if (c.part != "fp64 gate" || c.verdict != Verdict::failed || c.tensor != fault.tensor) continue;
    named = true;
    EXPECT_FALSE(c.ratio < 10) << "validation rule 3: a mutant keeps a ratio of 10 or more at the gate";
  }
  EXPECT_TRUE(named) << "first divergence: " << result.first_divergence << " " << result.fingerprint;
}

INSTANTIATE_TEST_SUITE_P(All, TensorParallelMutants, ::testing::Combine(::testing::ValuesIn(faults), ::testing::Values(2, 3)),
                         [](auto const& of) { return fmt::format("{}_{}", std::get<0>(of.param).name, std::get<1>(of.param)); });

}  // namespace
}  // namespace shardmark::testing
