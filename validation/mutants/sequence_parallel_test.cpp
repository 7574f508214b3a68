// Faults of layers that are cut by rows or along the vocabulary: each spoils the gradient that its row names, against one process that
// stays right.

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "base/mutant.hpp"
#include "validation/equivalence/core/parallel_gpt.hpp"

namespace shardmark::testing {
namespace {

static_assert(mutants_built, "this test links the mutant variants");

struct Mutant {
  std::string name, spoiled, unspoiled;  // empty: it spoils all
  friend std::ostream& operator<<(std::ostream& out, Mutant const& m) { return out << m.name; }
};

class SequenceMutants : public ::testing::TestWithParam<Mutant> {
 protected:
  ~SequenceMutants() override { choose_mutant(""); }
};

/// Names of gradients, whole on every rank or cut by rows of the matrix, in which some rank differs from one process.
std::set<std::string> differing(GptCase const& c, int parts) {
  GptRun const twin = run_twin(c, parts, TokenRows::cut);
  std::set<std::string> out;
  std::mutex guard;
  run_thread_ranks(parts, [&](Communicator& world) {
    TensorPart const held{parts, world.rank(), TokenRows::cut};
    GptRun const mine = run_rank(c, world, TokenRows::cut);
    Model const model = make_gpt(c.config, c.dtype, 11, InitialStyle::verifying, held);
    std::lock_guard const lock(guard);
    for (std::size_t g = 0; g < mine.gradients.size(); ++g)
      for (ParamSpec const& p : model.spec.params) {
        if (p.name != mine.gradients[g].first) continue;
        for (std::size_t i = 0; i < mine.gradients[g].second.size(); ++i)
          if (mine.gradients[g].second[i] != twin.gradients[g].second[std::size_t(p.layout()(std::int64_t(i)))]) out.insert(p.name);
      }
  });
  return out;
}

TEST_P(SequenceMutants, spoils_the_gradient_that_its_row_names_and_not_the_other) {
  GptCase const c;
  ASSERT_TRUE(differing(c, 2).empty()) << "without the fault";
  choose_mutant(GetParam().name);
  std::set<std::string> const found = differing(c, 2);
  EXPECT_TRUE(found.contains(GetParam().spoiled)) << GetParam().name << " survived";
  EXPECT_FALSE(found.contains(GetParam().unspoiled));
}

INSTANTIATE_TEST_SUITE_P(All, SequenceMutants,
                         ::testing::Values(Mutant{"padding_not_masked", "lm_head.weight", ""},
                                           Mutant{"layer_norm_of_own_rows", "h.0.ln_1.weight", "h.0.attn.q.weight"},
                                           Mutant{"input_not_gathered_again", "h.0.attn.q.weight", "h.0.ln_1.weight"}));

}  // namespace
}  // namespace shardmark::testing
