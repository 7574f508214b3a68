// Training under every rule of recomputation: the bits of keeping everything, what hooks see, and the bytes that a rule spares.

#include <gmock/gmock.h>

#include <map>

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
      std::vector<std::string> rules{"all", "every:2", "every:3", "sqrt"};
      if (model == ModelKind::gpt) rules.emplace_back("selective");
      for (std::string const& rule : rules)
        EXPECT_EQ(trained(small(model, rule, micros)), want) << rule << ", " << micros << " micro-batches";
    }
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
  auto const peak = [](Options const& options) { return dry_run(job_of(options), 0).peak[std::size_t(Book::activations)]; };
  std::int64_t const none = peak(o);
  o.recompute = "selective";
  std::int64_t const output = o.batch * o.seq * o.hidden * 4, per_head = o.batch * o.seq * o.heads * 4;
  // At the peak, the last transformer block has its stash whole.
  EXPECT_EQ(none - peak(o), (o.layers - 1) * (output + per_head));
}

}  // namespace
}  // namespace shardmark::testing
