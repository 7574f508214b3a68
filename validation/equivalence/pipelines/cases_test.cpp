// Faults that users of other systems met in pipelines, as cases: through the programs' own jobs, on thread ranks.
// What the faults would come to: validation/mutants/pipelines_test.cpp.

#include <gtest/gtest.h>

#include "app/asynchronous.hpp"
#include "strategies/gpipe/gpipe.hpp"
#include "strategies/model_parallel/model_parallel.hpp"
#include "strategies/pipedream/pipedream.hpp"
#include "validation/equivalence/core/scalar_chain.hpp"
#include "validation/equivalence/ddp/rigs.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

/// A small gpt on data with ragged counts.
Options small_gpt(std::int64_t batch, int micros) {
  Options o;
  o.layers = 4;
  o.hidden = 12;
  o.heads = 3;
  o.seq = 5;
  o.vocab = 31;
  o.batch = batch;
  o.micros = micros;
  o.lr = 0.1;
  o.data = "synthetic";
  o.deterministic = true;
  o.dropout = 0.1;
  return o;
}

Job job_of(Strategy const& strategy, Options const& options, int ranks, DType dtype = DType::f32) {
  return build_job(options, strategy, ranks, dtype, JobPurpose::proof, build_dataset(options, 1, JobPurpose::proof));
}

/// What each rank saw of a run: rows of the micro-batches that it read, results, and the latest weights by unit.
struct Seen {
  std::vector<std::int64_t> rows;
  std::vector<WindowResult> windows;
  std::map<std::int32_t, std::vector<double>> weights;
};

class Rows final : public Hook {
 public:
  void read(Program&, HostBatch const& batch) override { rows.push_back(batch.rows); }
  std::vector<std::int64_t> rows;
};

std::vector<Seen> run(Job const& job, std::int64_t windows) {
  std::vector<Seen> out(std::size_t(job.mesh.ranks()));
  std::vector<Rows> rows(out.size());
  std::vector<Hook*> hooks;
  for (Rows& r : rows) hooks.push_back(&r);
  on_ranks(
      job,
      [&](Rig& rig, int rank) {
        Program& program = rig.program();
        program.advance(windows);
        program.drain();
        Seen& seen = out[std::size_t(rank)];
        seen.windows = program.history();
        for (UnitId unit : program.store().held()) seen.weights[unit.v] = weights_of(program, unit);
      },
      hooks);
  for (std::size_t r = 0; r < out.size(); ++r) out[r].rows = rows[r].rows;
  return out;
}

/// Every holder of a weight has serial's, bit for bit; every rank reports serial's losses.
void expect_serial(std::vector<Seen> const& ranks, Job const& job, std::int64_t windows) {
  Seen const serial = run(serial_twin(job), windows).front();
  ASSERT_EQ(std::int64_t(serial.windows.size()), windows);
  std::size_t held = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (auto const& [unit, weights] : ranks[r].weights) EXPECT_EQ(weights, serial.weights.at(unit)) << "unit " << unit << " on rank " << r;
    held += ranks[r].weights.size();
    ASSERT_EQ(ranks[r].windows.size(), serial.windows.size());
    for (std::size_t w = 0; w < serial.windows.size(); ++w) {
      EXPECT_EQ(ranks[r].windows[w].loss, serial.windows[w].loss) << "rank " << r;
      EXPECT_EQ(ranks[r].windows[w].counted, serial.windows[w].counted) << "rank " << r;
    }
  }
  EXPECT_GE(held, serial.weights.size());
  EXPECT_NE(serial.windows.front().loss, serial.windows.back().loss);
}

TEST(PipelineCases, case_12_a_gradient_is_scaled_once) {
  // Six samples whose gradient is 1, whatever the passes: 1.
  FixedBatches::Sample const sample{{1}, {0}};
  for (std::vector<std::int64_t> const& rows : std::vector<std::vector<std::int64_t>>{{2, 2, 2}, {3, 2, 1}, {1, 1, 4}})
    for (Schedule const& schedule : {plan_1f1b({2, 3}), plan_gpipe({2, 3}), plan_model_parallel({2, 3})})
      for (double w : run_chain({.coarse = schedule, .start = {1, 1}, .rows = rows, .samples = {sample}, .rate = 0.75}).weights)
        EXPECT_DOUBLE_EQ(w, 0.25);
}

TEST(PipelineCases, case_13_the_denominator_is_that_of_serial) {
  Options const options = small_gpt(12, 4);
  for (int ranks : {2, 3, 4}) {
    Job const job = job_of(*make_gpipe(), options, ranks, DType::f64);
    auto const got = run(job, 1), want = run(serial_twin(job), 1);
    for (Seen const& rank : got) EXPECT_EQ(rank.windows[0].norm, want[0].windows[0].norm);
    EXPECT_GT(got[0].windows[0].counted, 12) << "terms are tokens";
  }
}

TEST(PipelineCases, case_14_tied_copies_stay_equal_to_serial) {
  Options options = small_gpt(9, 4);
  options.tied_embeddings = true;
  options.optimizer = OptimizerKind::adamw;
  options.lr = 1e-2;
  for (int ranks : {2, 3}) {
    for (auto const& strategy : {make_gpipe(), make_pipedream()}) {
      Job const job = job_of(*strategy, options, ranks);
      auto const got = run(job, 5);
      expect_serial(got, job, 5);
      std::vector<std::int32_t> shared;
      for (auto const& [unit, weights] : got.front().weights)
        if (got.back().weights.contains(unit)) shared.push_back(unit);
      EXPECT_EQ(shared.size(), 1u) << "the first and the last stage hold the table";
    }
  }
}

TEST(PipelineCases, case_20_and_43_micro_batches_of_unequal_size) {
  struct Row {
    std::int64_t batch;
    int micros;
    std::vector<std::int64_t> sizes;
  };
  for (Row const& row : {Row{8, 3, {3, 3, 2}}, Row{5, 4, {2, 1, 1, 1}}}) {
    for (auto const& strategy : {make_gpipe(), make_pipedream(), make_model_parallel()}) {
      for (int ranks : {2, 3}) {
        Job const job = job_of(*strategy, small_gpt(row.batch, row.micros), ranks);
        auto const got = run(job, 4);  // the third update of an epoch is a short one
        expect_serial(got, job, 4);
        for (Seen const& rank : got)
          EXPECT_EQ(std::vector(rank.rows.begin(), rank.rows.begin() + row.micros), row.sizes) << strategy->name();
      }
    }
  }
}

TEST(PipelineCases, case_43_more_micro_batches_than_samples_are_refused) {
  EXPECT_THROW(job_of(*make_gpipe(), small_gpt(3, 4), 2), BadRequest);
}

TEST(PipelineCases, case_27_every_stage_reports_serials_loss) {
  for (auto const& strategy : {make_gpipe(), make_pipedream(), make_model_parallel()}) {
    Job const job = job_of(*strategy, small_gpt(8, 3), 3);
    expect_serial(run(job, 4), job, 4);
  }
}

TEST(PipelineCases, case_27_the_last_stage_of_an_asynchronous_pipeline_tells_the_others) {
  Options options = small_gpt(8, 3);
  options.mode = PipelineMode::stash;
  Job const job = job_of(*make_pipedream(), options, 3);
  Seen const serial = run(serial_twin(job), 6).front();
  run_thread_ranks(3, [&](Communicator& world) {
    auto ops = make_reference_backend();
    Rig rig(job, {.ops = *ops, .world = world});
    rig.program().advance(6);
    rig.program().drain();
    EXPECT_EQ(rig.program().sees_loss(), world.rank() == 2);
    HostExchange exchange(world);
    auto const told = windows_of_last_stage(rig.program().history(), rig.program(), exchange);
    ASSERT_GE(told.size(), 6u);
    for (std::size_t w = 0; w < 6; ++w) EXPECT_EQ(told[w].loss, serial.windows[w].loss) << "rank " << world.rank();
  });
}

/// One block a stage, so that what is kept at once counts micro-batches.
Options four_blocks(int micros) {
  Options o;
  o.model = ModelKind::mlp;
  o.layers = 3;
  o.hidden = 16;
  o.batch = micros;
  o.micros = micros;
  o.data = "synthetic";
  o.deterministic = true;
  return o;
}

TEST(PipelineCases, case_29_live_activations_of_the_executor) {
  for (int micros : {8, 3}) {
    Options const options = four_blocks(micros);
    auto const peaks = [&](Strategy const& strategy) {
      Job const job = job_of(strategy, options, 4);
      EXPECT_EQ(job.model->blocks.size(), 4u);
      std::vector<int> out(4);
      on_ranks(job, [&](Rig& rig, int rank) {
        rig.program().advance(3);
        rig.program().drain();
        out[std::size_t(rank)] = rig.program().peak_stashes();
      });
      return out;
    };
    EXPECT_EQ(peaks(*make_gpipe()), std::vector<int>(4, micros));
    EXPECT_EQ(peaks(*make_model_parallel()), std::vector<int>(4, 1));
    EXPECT_EQ(peaks(*make_pipedream()), micros == 8 ? (std::vector{4, 3, 2, 1}) : (std::vector{3, 3, 2, 1}));
  }
}

TEST(PipelineCases, case_29_gradient_buffers_grow_with_the_logarithm) {
  for (bool deterministic : {true, false}) {
    Options options = four_blocks(8);
    options.deterministic = deterministic;
    for (auto const& strategy : {make_gpipe(), make_pipedream()}) {
      on_ranks(job_of(*strategy, options, 4), [&](Rig& rig, int) {
        rig.program().advance(3);
        rig.program().drain();
        double const one = double(rig.ledger().live(Book::gradients));
        double const buffers = double(rig.ledger().peak(Book::gradients)) / one;
        if (deterministic) {
          EXPECT_TRUE(buffers > 1.5 && buffers <= 5) << buffers;  // floor(log2 8) + 2
        } else {
          EXPECT_EQ(buffers, 1);
        }
      });
    }
  }
}

TEST(PipelineCases, case_42_interleaving_of_micro_batches_that_the_stages_dont_divide) {
  Options options = small_gpt(7, 3);
  options.virtual_stages = 2;
  for (int ranks : {2, 3}) {
    Job const job = job_of(*make_pipedream(), options, ranks);
    EXPECT_EQ(job.schedule.lanes.size(), std::size_t(ranks));
    expect_serial(run(job, 5), job, 5);
  }
}

/// Versions that each stage's forwards read, as the program plans them and the executor runs them.
TEST(PipelineCases, case_69_forward_versions_of_three_stages) {
  class Versions final : public Hook {
   public:
    void before(Program&, Action const& action, std::int64_t) override {
      if (action.what != Do::forward || action.micro.v >= 4) return;
      if (seen.size() <= std::size_t(action.micro.v)) seen.push_back(action.version.v);
    }
    std::vector<int> seen;
  };
  Options options = small_gpt(8, 2);
  options.mode = PipelineMode::stash;
  std::vector<Versions> versions(3);
  on_ranks(job_of(*make_pipedream(), options, 3),
           [](Rig& rig, int) {
             rig.program().advance(4);
             rig.program().drain();
           },
           {&versions[0], &versions[1], &versions[2]});
  auto const read = [&](std::size_t stage) {
    std::vector<int> out;
    for (int v : versions[stage].seen) out.push_back(std::max(0, v));
    return out;
  };
  EXPECT_EQ(read(0), (std::vector{0, 0, 0, 1}));
  EXPECT_EQ(read(1), (std::vector{0, 0, 1, 2}));
  EXPECT_EQ(read(2), (std::vector{0, 1, 2, 3}));
}

}  // namespace
}  // namespace shardmark::testing
