// ZeRO against ddp, which shares nothing, and across numbers of ranks.

#include "strategies/zero/zero.hpp"

#include "model/layers.hpp"
#include "validation/equivalence/resume/runs.hpp"

namespace shardmark::testing {
namespace {

struct Size {
  std::int64_t outputs, inputs;
  std::int64_t parameters() const { return outputs * (inputs + 1); }
};

/// y = W x + b, squared error, in one unit.
Model linear_model(Size size) {
  Model model{.spec = {}, .blocks = {}, .dtype = DType::f32, .seed = 3};
  UnitId const unit = model.spec.add_unit("u");
  ParamId const w = model.spec.add(unit, "w", {size.outputs, size.inputs}, {Initial::Kind::normal, 0.5}, true);
  ParamId const b = model.spec.add(unit, "b", {size.outputs}, {Initial::Kind::normal, 0.5}, false);
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Linear>(Linear::Parameters{w, b}, Activation::none, 0));
  layers.push_back(std::make_unique<SquaredErrorLoss>(Linear::slots));
  Block block;
  block.name = "u";
  block.slots = Linear::slots + SquaredErrorLoss::slots;
  block.body = std::make_unique<Chain>(std::move(layers));
  block.produces = {{unit, 0}};
  block.reads = {unit};
  block.boundary = {size.outputs};
  model.blocks.push_back(std::move(block));
  return model;
}

/// Other samples on every rank; one denominator for all.
class RankBatches final : public BatchSource {
 public:
  RankBatches(Size size, int rank, int ranks) : size_(size), random_(5, Purpose::synthetic_data, std::uint64_t(rank)), ranks_(ranks) {}
  HostBatch const& next() override {
    batch_ = {};
    batch_.rows = batch_.counted = 2;
    batch_.window_counted = 2 * ranks_;
    auto const fill = [&](std::vector<std::byte>& bytes, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        double const value = random_.normal(at_++);
        auto const* p = reinterpret_cast<std::byte const*>(&value);
        bytes.insert(bytes.end(), p, p + sizeof value);
      }
    };
    fill(batch_.input, 2 * size_.inputs);
    fill(batch_.target, 2 * size_.outputs);
    batch_.samples = {0, 0, 0, 1};
    return batch_;
  }

 private:
  Size size_;
  Randoms random_;
  std::int64_t ranks_;
  std::uint64_t at_ = 0;
  HostBatch batch_;
};

struct Trained {
  std::vector<std::byte> weights;  // of the unit, whole
  std::vector<double> norms;
  std::int64_t optimizer_bytes = 0;  // on the last rank
};

Trained train(Size size, Sharing sharing, int ranks) {
  Model const model = linear_model(size);
  auto const blocks = model.shapes();
  Schedule schedule = refine(plan_sequential("zero", 1), blocks, {0, 1});
  schedule.sharing = sharing;
  if (sharing == Sharing::gradients || sharing == Sharing::parameters) schedule.sum.inside = Inside::replicas;
  schedule = lower(bucket(schedule, blocks, {.cap_bytes = 1, .first_cap_bytes = 1}), blocks, axes(Axis::data), Overlap::on);
  check(schedule, blocks);
  OptimizerSettings const optimizer{.rule = Rule::adamw, .weight_decay = 0.1, .clip_norm = 0.5, .rate = {.base = 0.01}};
  Trained out;
  std::mutex mutex;
  run_thread_ranks(ranks, [&](Communicator& world) {
    auto ops = make_reference_backend();
    Bench bench(*ops, world, {.data = ranks});
    RankBatches batches(size, world.rank(), ranks);
    Program program(
        {.model = model,
         .schedule = schedule,
         .ops = *ops,
         .arena = bench.arena,
         .mesh = bench.mesh,
         .batches = batches,
         .samples = {.input_type = DType::f64, .target_type = DType::f64, .input = {size.inputs}, .target = {size.outputs}, .classes = 0},
         .optimizer = optimizer});
    program.advance(3);
    WholeState const whole = whole_state(program);
    std::lock_guard lock(mutex);
    if (world.rank() == ranks - 1) out.optimizer_bytes = bench.ledger.peak(Book::optimizer);
    if (world.rank() != 0) return;
    for (auto const& [name, bytes] : state_of(whole.held)) out.weights.insert(out.weights.end(), bytes.begin(), bytes.end());
    for (WindowResult const& r : program.history()) out.norms.push_back(r.norm);
  });
  return out;
}

// case 57: pieces that begin and end inside tensors, are empty, or end in padding.
TEST(Zero, case_57_pieces_of_few_parameters_train_as_the_whole_bitwise) {
  struct Shared {
    Size size;
    int ranks;
  };
  for (Shared const& c : {Shared{{3, 18}, 2}, {{1, 2}, 4}, {{1, 4}, 4}, {{3, 18}, 3}, {{3, 18}, 7}, {{3, 18}, 60}}) {
    Trained const whole = train(c.size, Sharing::replicated, c.ranks);
    ASSERT_EQ(whole.weights.size(), std::size_t(3 * c.size.parameters()) * sizeof(float)) << "weights and both moments";
    for (Sharing sharing : {Sharing::optimizer, Sharing::gradients, Sharing::parameters}) {
      Trained const pieces = train(c.size, sharing, c.ranks);
      std::string const where = std::to_string(c.size.parameters()) + " parameters on " + std::to_string(c.ranks) + " ranks, stage " +
                                std::to_string(int(sharing));
      EXPECT_EQ(pieces.weights, whole.weights) << where;
      EXPECT_EQ(pieces.norms, whole.norms) << where;
      if (c.size.parameters() == 57) {
        EXPECT_LT(pieces.optimizer_bytes, whole.optimizer_bytes) << where;
      }
    }
  }
}

class ZeroState : public ResumeTest {
 protected:
  Options options_of(int stage) {
    Options o = text_options();
    o.program = "zero";
    o.stage = stage;
    o.hidden = 15;  // tensors of odd sizes
    o.tied_embeddings = true;
    o.clip_norm = 0.3;
    o.micros = 2;
    return o;
  }
};

TEST_F(ZeroState, stages_have_the_bits_of_ddp_in_their_order_of_sums) {
  auto const zero = make_zero(), ddp = make_ddp();
  for (int stage : {1, 2, 3})
    for (int ranks : {1, 2, 3, 4}) {
      Options options = options_of(stage);
      Shown const pieces = run_leg(options, job_for(options, ranks, *zero), {.updates = 5, .from = {}, .to = {}});
      options.reduce_order = stage == 1 ? Inside::micros : Inside::replicas;
      Shown const whole = run_leg(options, job_for(options, ranks, *ddp), {.updates = 5, .from = {}, .to = {}});
      EXPECT_EQ(difference_between(whole, pieces), "") << "stage " << stage << " on " << ranks;
    }
}

TEST_F(ZeroState, what_three_ranks_saved_two_load_and_go_on_from_as_ddp_does) {
  auto const zero = make_zero(), ddp = make_ddp();
  for (DType dtype : {DType::f32, DType::bf16})
    for (int stage : {1, 2, 3}) {
      Options options = options_of(stage);
      options.dtype = dtype;
      auto const folder = folder_ / ("three-" + std::to_string(stage) + "-" + std::string(name(dtype)));
      Shown const saved = run_leg(options, job_for(options, 3, *zero), {.updates = 6, .from = {}, .to = folder});
      for (int ranks : {1, 2, 5}) {
        Job const job = job_for(options, ranks, *zero);
        EXPECT_EQ(run_leg(options, job, {.updates = 0, .from = folder, .to = {}}).state, saved.state) << stage << " on " << ranks;
        Shown const pieces = run_leg(options, job, {.updates = 4, .from = folder, .to = {}});
        Options replicas = options;
        replicas.reduce_order = stage == 1 ? Inside::micros : Inside::replicas;
        Shown const whole = run_leg(replicas, job_for(replicas, ranks, *ddp), {.updates = 4, .from = folder, .to = {}});
        EXPECT_EQ(difference_between(whole, pieces), "") << "stage " << stage << " on " << ranks;
      }
    }
}

}  // namespace
}  // namespace shardmark::testing
