// Faults of tensor parallelism that people reported elsewhere.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "validation/equivalence/tensor_parallel/proofs.hpp"

namespace shardmark::testing {
namespace {

Options narrow_mlp(std::int64_t layers, std::int64_t hidden) {
  Options o = small_mlp(7);
  o.program = "tensor_parallel";
  o.layers = layers;
  o.hidden = hidden;
  return o;
}

/// Replaces every gradient before the decision: 3 in one element of a copy, 16 ones in a cut weight, whoever has them; zeros elsewhere.
class ThreeAndFour final : public Hook {
 public:
  void before(Program& program, Action const& action, std::int64_t) override {
    if (action.what != Do::decide) return;
    program.stream().synchronize();
    ModelSpec const& spec = program.store().spec();
    for (UnitId unit : program.store().held()) {
      View const total = program.store().gradients().total({unit, 0});
      for (ParamId id : spec[unit].params) {
        double* const g = total.as<double>() + spec[id].offset;
        std::fill_n(g, spec[id].elements(), 0.0);
        if (spec[id].name == "layers.1.bias") g[2] = 3;
        if (spec[id].name == "layers.0.weight") std::fill_n(g, 16 / program.parts().mesh.extent(Axis::tensor), 1.0);
      }
    }
  }
};

TEST(TensorParallelCases, case_11_copies_enter_the_norm_once) {
  for (int ranks : {1, 2, 4}) {
    Job const job = tensor_job(narrow_mlp(2, 8), ranks, DType::f64);
    std::vector<ThreeAndFour> planted(static_cast<std::size_t>(ranks));
    std::vector<Hook*> hooks;
    for (ThreeAndFour& hook : planted) hooks.push_back(&hook);
    on_ranks(
        job,
        [](Rig& rig, int) {
          rig.program().advance(1);
          EXPECT_EQ(rig.program().last().norm, 5);
          rig.program().drain();
        },
        hooks);
  }
}

TEST(TensorParallelCases, case_22_each_logical_matrix_is_cut_by_itself) {
  Options o = small_gpt(2);  // six features, three a head
  Verification const result = prove(o, 2);
  EXPECT_EQ(result.verdict, Verdict::verified) << table(result);
  o.heads = o.hidden = 3;
  auto const refusal = make_tensor_parallel()->refuse(o, 2);
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->text().find("start 1, 3 ranks"), std::string::npos) << refusal->text();
}

/// Full tensors put together from what the ranks start with.
std::vector<std::vector<double>> gathered(Job const& job, int ranks) {
  std::vector<std::vector<double>> out;
  for (ParamSpec const& whole : job.model->spec.params) out.emplace_back(std::size_t(whole.elements()), std::nan(""));
  for (int rank = 0; rank < ranks; ++rank) {
    Model const& model = job.model_of(rank);
    for (std::size_t p = 0; p < out.size(); ++p) {
      ParamSpec const& param = model.spec.params[p];
      auto const values = initial_values(param, model.seed);
      SliceLayout const layout = param.layout();
      for (std::size_t i = 0; i < values.size(); ++i) out[p].at(std::size_t(layout(std::int64_t(i)))) = values[i];
    }
  }
  return out;
}

TEST(TensorParallelCases, case_23_initial_weights_are_slices_of_the_full_matrix) {
  for (auto const& options : {small_gpt(4), narrow_mlp(3, 12)})
    for (auto const purpose : {JobPurpose::training, JobPurpose::proof}) {
      auto const data = build_dataset(options, 1, JobPurpose::proof);
      auto const start = [&](int ranks) {
        return gathered(build_job(options, *make_tensor_parallel(), ranks, DType::f32, purpose, data), ranks);
      };
      auto const serial = start(1);
      for (int ranks : {2, 4}) EXPECT_EQ(start(ranks), serial) << ranks;
    }
}

/// Every sample that this rank read.
class Reads final : public Hook {
 public:
  void read(Program&, HostBatch const& batch) override { ids.insert(ids.end(), batch.samples.begin(), batch.samples.end()); }
  std::vector<std::int64_t> ids;
};

TEST(TensorParallelCases, case_49_all_ranks_of_a_group_read_the_same_samples) {
  std::vector<Reads> reads(3);
  std::vector<Hook*> hooks{&reads[0], &reads[1], &reads[2]};
  on_ranks(
      tensor_job(small_gpt(3), 3), [](Rig& rig, int) { rig.program().advance(3), rig.program().drain(); }, hooks);
  EXPECT_GT(reads[0].ids.size(), 10u);
  EXPECT_EQ(reads[1].ids, reads[0].ids);
  EXPECT_EQ(reads[2].ids, reads[0].ids);
}

Job with_dropout(int ranks, DType dtype) {
  Options const options = narrow_mlp(4, 12);
  Job job = tensor_job(options, ranks, dtype);
  auto const model = [&](TensorPart part) {
    MlpConfig const config{.layers = 4, .hidden = 12, .features = 64, .classes = 10, .dropout = 0.3};
    return std::make_shared<Model const>(make_mlp(config, dtype, options.seed, InitialStyle::verifying, part));
  };
  job.model = model({});
  for (std::size_t p = 0; p < job.parts.size(); ++p) job.parts[p] = model({ranks, int(p)});
  if (job.in_parts) job.in_parts = model({ranks, TensorPart::all_parts});
  return job;
}

/// Behind a layer cut by columns each rank drops other elements, behind one cut by rows all drop the same; both as serial does.
TEST(TensorParallelDropout, MasksGoByTheIndexInTheFullTensor) {
  for (int ranks : {1, 2, 3, 4}) {
    Options const options = narrow_mlp(4, 12);
    auto const forms = make_tensor_parallel()->predict(options, tensor_job(options, ranks).model->shapes(), ranks).traffic;
    Verification const result = prove([=](DType dtype) { return with_dropout(ranks, dtype); }, 4, ranks, forms);
    EXPECT_EQ(result.verdict, Verdict::verified) << table(result);
  }
}

/// Counts can fail: one all-reduce too few in the formula, and one purpose without any.
TEST(TensorParallelTraffic, IsHeldAgainstItsFormula) {
  Options const options = small_gpt(2);
  auto const make = [=](DType dtype) { return tensor_job(options, 2, dtype); };
  auto const forms = make_tensor_parallel()->predict(options, make(DType::f32).model->shapes(), 2).traffic;
  auto const failed = [&](std::vector<TrafficForm> const& held) {
    std::set<std::string> out;
    for (Check const& check : prove(make, 0, 2, held).checks)
      if (check.verdict == Verdict::failed) out.insert(check.tensor);
    return out;
  };
  EXPECT_TRUE(failed(forms).empty());
  auto fewer = forms;
  fewer.front().calls -= 1;
  fewer.front().elements_per_sample *= 0.75;
  std::string const what = fmt::format("{} for {}", name(fewer.front().what), fewer.front().purpose);
  EXPECT_EQ(failed(fewer), (std::set<std::string>{what, "bytes of " + what, "bytes sent by " + what}));
  EXPECT_EQ(failed({forms.begin() + 1, forms.end()}), (std::set<std::string>{"exchanges of layers without a formula"}));
}

/// A rank's element of a cut weight is named by its place in the full tensor.
TEST(TensorParallelProof, NamesElementsByTheirPlaceInTheFullTensor) {
  class Spoil final : public Hook {
   public:
    void before(Program& program, Action const& action, std::int64_t) override {
      if (!makes_first(action) || program.parts().mesh.coordinate(Axis::tensor) != 1) return;
      program.stream().synchronize();
      ModelSpec const& spec = program.store().spec();
      for (std::size_t p = 0; p < spec.params.size(); ++p)
        if (spec.params[p].name == "h.1.mlp.proj.weight") {
          View const total = program.store().gradients().total({spec.params[p].unit, 0});
          std::size_t const at = std::size_t(spec.params[p].offset + 2 * spec.params[p].shape[1] + 5);  // row 2, column 5 of this slice
          if (total.dtype == DType::f64) total.as<double>()[at] += 1;
          if (total.dtype == DType::f32) total.as<float>()[at] += 1;
        }
    }
    static bool makes_first(Action const& action) { return action.what == Do::decide && action.version.v == 1; }
  };
  VerifyRequest request;
  Options const options = small_gpt(2);
  request.strategy = "tensor_parallel";
  request.make_job = [=](DType dtype) { return tensor_job(options, 2, dtype); };
  request.steps = 0;
  request.candidate_backend = [](DType) { return make_cpu_backend(Determinism::deterministic); };
  request.reference_backend = [] { return make_reference_backend(); };
  request.candidate_hooks = [] {
    std::vector<std::unique_ptr<Hook>> hooks;
    hooks.push_back(std::make_unique<Spoil>());
    return hooks;
  };
  run_thread_ranks(2, [&](Communicator& world) {
    Verification const result = verify(request, world);
    EXPECT_EQ(result.verdict, Verdict::failed);
    EXPECT_EQ(result.first_divergence, "h.1: gradient of h.1.mlp.proj.weight (fp64 gate)");
    for (Check const& check : result.checks) {
      if (check.part != "fp64 gate" || check.tensor != "gradient of h.1.mlp.proj.weight") continue;
      EXPECT_EQ(check.index, 2 * 24 + 12 + 5);
      EXPECT_EQ(check.rank, 1);
    }
  });
}

}  // namespace
}  // namespace shardmark::testing
