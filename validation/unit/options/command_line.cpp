// Options from the command line: defaults, values, refusals.

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "validation/unit/options/parse.hpp"

namespace shardmark::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Defaults, VerifyIsSmallAndDeterministic) {
  Options const options = parse({"verify"});
  EXPECT_EQ(options.command, Command::verify);
  EXPECT_EQ(options.model, ModelKind::gpt);
  EXPECT_EQ(std::vector({options.layers, options.hidden, options.heads, options.seq, options.vocab}),
            (std::vector<std::int64_t>{4, 256, 4, 128, 256}));
  EXPECT_EQ(options.optimizer, OptimizerKind::sgd);
  EXPECT_EQ(options.lr, 0.1);
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.steps, 20);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(options.data, "synthetic");
  EXPECT_EQ(options.held_out, 0) << "nothing is evaluated, so every window is proved on";
}

TEST(Defaults, BenchTrainsOnRealText) {
  Options const options = parse({"bench"});
  EXPECT_EQ(options.optimizer, OptimizerKind::adamw);
  EXPECT_EQ(options.lr, 3e-4);
  EXPECT_FALSE(options.deterministic);
  EXPECT_EQ(options.steps, 20);
  EXPECT_EQ(options.warmup, 3);
  EXPECT_EQ(options.data, "text:/usr/share/common-licenses");
  EXPECT_EQ(options.held_out, 0.1);
  EXPECT_TRUE(options.verify_in_bench);
  EXPECT_TRUE(options.overlap);
}

TEST(Defaults, PlanDescribesWhatBenchWouldDo) {
  Options const plan = parse({"plan", "--ranks", "4"}), bench = parse({"bench"});
  EXPECT_EQ(plan.ranks, 4);
  EXPECT_EQ(plan.optimizer, bench.optimizer);
  EXPECT_EQ(plan.deterministic, bench.deterministic);
  EXPECT_EQ(plan.data, bench.data);
}

TEST(Defaults, MlpHasItsOwn) {
  Options const options = parse({"bench", "--model", "mlp"});
  EXPECT_EQ(options.layers, 4);
  EXPECT_EQ(options.hidden, 128);
  EXPECT_EQ(options.data, "synthetic");
}

TEST(Defaults, ConvnetHasItsOwn) {
  Options const options = parse({"bench", "--model", "convnet"});
  EXPECT_EQ(options.layers, 3);
  EXPECT_EQ(options.hidden, 16);
  EXPECT_EQ(options.data, "synthetic");
  EXPECT_EQ(options.batch_norm, BatchNormPolicy::per_micro);
  EXPECT_EQ(parse({"bench", "--model", "convnet", "--layers", "5", "--batch-norm", "sync"}).layers, 5);
  EXPECT_EQ(parse({"bench", "--model", "convnet", "--batch-norm", "deferred"}).batch_norm, BatchNormPolicy::deferred);
}

TEST(Defaults, LearningRateFollowsTheOptimizer) {
  EXPECT_EQ(parse({"verify", "--optimizer", "adamw"}).lr, 3e-4);
  EXPECT_EQ(parse({"bench", "--optimizer", "sgd"}).lr, 0.1);
  EXPECT_EQ(parse({"bench", "--optimizer", "sgd", "--lr", "0.5"}).lr, 0.5);
}

TEST(Defaults, ThreadRanksShareMemory) {
  EXPECT_EQ(parse({"verify", "--ranks-as-threads", "3"}).comm, CommKind::peer);
  EXPECT_EQ(parse({"verify"}).comm, CommKind::mpi);
}

TEST(Defaults, CompareHasNoCommandsAndItsOwnSteps) {
  Usage const usage{
      .program = "shardmark compare", .commands = Usage::Commands::no, .bench_steps = 10, .bench_warmup = 2, .left_out = {"verify"}};
  Options const options = parse_line(usage, {"--batch", "4"}).options.value();
  EXPECT_EQ(options.command, Command::bench);
  EXPECT_EQ(options.steps, 10);
  EXPECT_EQ(options.warmup, 2);
  EXPECT_EQ(options.batch, 4);
  EXPECT_THROW(parse_line(usage, {"--no-verify"}), BadRequest);
  EXPECT_THROW(parse_line(usage, {"bench"}), BadRequest);
}

TEST(Values, EveryOptionArrives) {
  Options const o = parse({"bench",
                           "--model=gpt",
                           "--layers",
                           "2",
                           "--hidden",
                           "48",
                           "--heads",
                           "3",
                           "--seq",
                           "17",
                           "--vocab",
                           "300",
                           "--dropout",
                           "0.1",
                           "--tied-embeddings",
                           "--data",
                           "text:/etc/fstab",
                           "--held-out",
                           "0.25",
                           "--eval",
                           "--batch-per-replica",
                           "10",
                           "--accumulate",
                           "4",
                           "--steps",
                           "7",
                           "--warmup",
                           "1",
                           "--optimizer",
                           "sgd",
                           "--lr",
                           "1e-2",
                           "--momentum",
                           "0.9",
                           "--nesterov",
                           "--weight-decay",
                           "0.01",
                           "--clip-norm",
                           "1",
                           "--lr-schedule",
                           "cosine",
                           "--seed",
                           "99",
                           "--dtype",
                           "fp64",
                           "--backend",
                           "reference",
                           "--deterministic",
                           "--bucket-mb",
                           "0.5",
                           "--no-overlap",
                           "--timeout",
                           "12.5",
                           "--no-verify",
                           "--dry-run",
                           "--ranks-as-threads",
                           "2",
                           "--out",
                           "a",
                           "--json",
                           "b",
                           "--csv",
                           "c",
                           "--trace",
                           "d"});
  EXPECT_EQ(std::vector({o.layers, o.hidden, o.heads, o.seq, o.vocab}), (std::vector<std::int64_t>{2, 48, 3, 17, 300}));
  EXPECT_EQ(o.dropout, 0.1);
  EXPECT_TRUE(o.tied_embeddings);
  EXPECT_EQ(o.data, "text:/etc/fstab");
  EXPECT_EQ(o.held_out, 0.25);
  EXPECT_TRUE(o.evaluate);
  EXPECT_EQ(o.batch, 10);
  EXPECT_TRUE(o.batch_is_per_replica);
  EXPECT_EQ(o.micros, 4);
  EXPECT_EQ(o.steps, 7);
  EXPECT_EQ(o.warmup, 1);
  EXPECT_EQ(o.optimizer, OptimizerKind::sgd);
  EXPECT_EQ(std::vector({o.lr, o.momentum, o.weight_decay, o.clip_norm}), (std::vector<double>{1e-2, 0.9, 0.01, 1}));
  EXPECT_TRUE(o.nesterov);
  EXPECT_EQ(o.lr_schedule, LrSchedule::cosine);
  EXPECT_EQ(o.seed, 99u);
  EXPECT_EQ(o.dtype, DType::f64);
  EXPECT_EQ(o.backend, BackendKind::reference);
  EXPECT_TRUE(o.deterministic);
  EXPECT_EQ(o.bucket_mib, 0.5);
  EXPECT_FALSE(o.overlap);
  EXPECT_EQ(o.timeout_seconds, 12.5);
  EXPECT_FALSE(o.verify_in_bench);
  EXPECT_TRUE(o.dry_run);
  EXPECT_EQ(o.ranks_as_threads, 2);
  EXPECT_EQ(o.out + o.json + o.csv + o.trace, "abcd");
  EXPECT_EQ(o.argv.front(), "ddp");
}

TEST(Values, JsonWithoutAFileIsStdout) {
  EXPECT_EQ(parse({"verify", "--json"}).json, "-");
  EXPECT_EQ(parse({"verify", "--json", "--steps", "3"}).json, "-");
  EXPECT_EQ(parse({"verify", "--json", "file"}).json, "file");
}

TEST(Values, PresetGivesWayToOptions) {
  Options const seed = parse({"bench", "--heads", "4", "--preset", "seed"});
  EXPECT_EQ(std::vector({seed.layers, seed.hidden, seed.heads, seed.vocab}), (std::vector<std::int64_t>{8, 512, 4, 10000}));
}

TEST(Values, PresetMayBeOfAnotherModel) {
  Options const seed = parse({"plan", "--preset", "seed-checkpoint", "--batch", "3", "--model", "mlp"});
  EXPECT_EQ(seed.model, ModelKind::mlp);
  EXPECT_EQ(std::vector({seed.layers, seed.hidden, seed.features, seed.batch}), (std::vector<std::int64_t>{17, 2048, 784, 3}));
  EXPECT_EQ(seed.data, "synthetic");
}

TEST(Values, FaultsHaveParts) {
  Fault const flip = parse({"verify", "--inject", "bitflip:rank=3,tensor=blocks.0.attn.bias,step=2"}).inject.value();
  EXPECT_EQ(flip.kind, Fault::Kind::bitflip);
  EXPECT_EQ(flip.rank, 3);
  EXPECT_EQ(flip.tensor, "blocks.0.attn.bias");
  EXPECT_EQ(flip.step, 2);
  Fault const delay = parse({"verify", "--inject=delay:seconds=0.5"}).inject.value();
  EXPECT_EQ(delay.kind, Fault::Kind::delay);
  EXPECT_EQ(delay.seconds, 0.5);
  EXPECT_EQ(parse({"verify", "--inject", "drop-reduction"}).inject->kind, Fault::Kind::drop_reduction);
}

struct Refused {
  std::vector<std::string> words;
  std::vector<std::string> says;  // parts of the message
};

class Refusals : public ::testing::TestWithParam<Refused> {};

TEST_P(Refusals, SayProblemReasonRemedy) {
  std::string const message = refusal(GetParam().words);
  for (std::string const& part : GetParam().says) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(Words, Refusals,
                         ::testing::Values(Refused{{}, {"no command", "plan, verify or bench"}},
                                           Refused{{"vreify"}, {"vreify", "plan, verify, bench"}},
                                           Refused{{"verify", "--stesp", "3"}, {"--stesp", "did you mean --steps?"}},
                                           Refused{{"verify", "--bacth=3"}, {"--bacth", "did you mean --batch?"}},
                                           Refused{{"verify", "extra"}, {"extra", "options begin with --"}},
                                           Refused{{"verify", "--steps", "3", "--steps", "4"}, {"--steps is given twice"}},
                                           Refused{{"verify", "--overlap", "--no-overlap"}, {"--overlap", "--no-overlap", "contradict"}},
                                           Refused{{"verify", "--steps"}, {"--steps"}},
                                           Refused{{"verify", "--steps", "many"}, {"--steps", "many", "whole number"}},
                                           Refused{{"verify", "--steps", "3.5"}, {"--steps", "3.5", "whole number"}},
                                           Refused{{"verify", "--lr", "nan"}, {"--lr", "nan", "number"}},
                                           Refused{{"verify", "--config", "a", "--config", "b"}, {"--config is given twice"}},
                                           Refused{{"bench", "--out", ""}, {"--out is empty"}}));

INSTANTIATE_TEST_SUITE_P(Numbers, Refusals,
                         ::testing::Values(Refused{{"verify", "--batch", "0"}, {"--batch 0 is too small", "at least 1"}},
                                           Refused{{"verify", "--batch", "-3"}, {"--batch -3 is too small"}},
                                           Refused{{"bench", "--warmup=-1"}, {"--warmup -1 is too small", "at least 0"}},
                                           Refused{{"verify", "--lr", "0"}, {"--lr 0 is too small", "above 0"}},
                                           Refused{{"verify", "--dropout", "1"}, {"--dropout 1 is too large"}},
                                           Refused{{"verify", "--seed", "-1"}, {"--seed -1"}},
                                           Refused{{"verify", "--timeout", "0"}, {"--timeout 0"}},
                                           Refused{{"verify", "--batch", "99999999999999999999"}, {"--batch", "whole number"}},
                                           Refused{{"verify", "--layers", "1000000000"}, {"--layers", "too large"}}));

INSTANTIATE_TEST_SUITE_P(
    Choices, Refusals,
    ::testing::Values(Refused{{"verify", "--model", "resnet"}, {"--model", "resnet", "mlp, convnet, gpt"}},
                      Refused{{"verify", "--model", "convnet", "--batch-norm", "full"}, {"full", "per-micro, deferred, sync"}},
                      Refused{{"verify", "--batch-norm", "sync"}, {"--batch-norm", "model gpt", "--model convnet"}},
                      Refused{{"verify", "--model", "convnet", "--heads", "2"}, {"--heads", "model convnet", "--model gpt"}},
                      Refused{{"verify", "--dtype", "float"}, {"float", "fp64, fp32, bf16"}},
                      Refused{{"verify", "--backend", "cuda"}, {"cuda", "not in this version", "reference, cpu"}},
                      Refused{{"verify", "--comm", "nccl"}, {"nccl", "not in this version"}},
                      Refused{{"verify", "--optimizer", "adam"}, {"adam", "sgd, adamw"}},
                      Refused{{"verify", "--lr-schedule", "step"}, {"step", "constant, linear, cosine"}},
                      Refused{{"verify", "--memory-timeline", "a"}, {"--memory-timeline", "not in this version"}},
                      Refused{{"bench", "--preset", "big"}, {"big", "seed, seed-checkpoint"}},
                      Refused{{"bench", "--preset", "seed", "--model", "mlp"}, {"are both given", "of model gpt"}},
                      Refused{{"verify", "--features", "7"}, {"--features", "model gpt", "--model mlp"}},
                      Refused{{"verify", "--model", "mlp", "--data", "cifar10:a", "--features", "7"}, {"--features", "of its own size"}},
                      Refused{{"verify", "--inject", "bitflop"}, {"bitflop", "bitflip, nan, kill"}},
                      Refused{{"verify", "--inject", "nan:rnak=1"}, {"rnak", "did you mean rank?"}},
                      Refused{{"verify", "--inject", "nan:rank=-1"}, {"rank -1"}},
                      Refused{{"verify", "--inject", "nan:step=0"}, {"step 0", "from 1"}},
                      Refused{{"verify", "--inject", "nan:seconds=1"}, {"seconds", "only delay"}}));

INSTANTIATE_TEST_SUITE_P(
    Combinations, Refusals,
    ::testing::Values(Refused{{"verify", "--hidden", "250"}, {"hidden 250 for 4 heads", "not be whole", "--heads 1, 2, 5, 10, 25, 50"}},
                      Refused{{"bench", "--vocab", "100"}, {"vocabulary 100 for text", "bytes", "256"}},
                      Refused{{"verify", "--data", "text:a", "--vocab", "255"}, {"vocabulary 255"}},
                      Refused{{"verify", "--data", "token:a"}, {"token:a", "not a kind of data", "tokens:FILE"}},
                      Refused{{"verify", "--data", "tokens:"}, {"tokens:"}}, Refused{{"verify", "--data", "synthetic:a"}, {"synthetic:a"}},
                      Refused{{"verify", "--model", "mlp", "--data", "idx:a"}, {"idx:", "one comma", "idx:IMAGES,LABELS"}},
                      Refused{{"verify", "--model", "mlp", "--data", "idx:a,b,c"}, {"one comma"}},
                      Refused{{"verify", "--model", "mlp", "--data", "idx:,b"}, {"one comma"}},
                      Refused{{"verify", "--data", "idx:a,b"}, {"idx for model gpt", "takes tokens", "--model mlp"}},
                      Refused{{"verify", "--data", "cifar10:a"}, {"cifar10 for model gpt"}},
                      Refused{{"verify", "--model", "mlp", "--data", "tokens:a"}, {"tokens for model mlp", "takes vectors", "--model gpt"}},
                      Refused{{"bench", "--model", "mlp", "--data", "cifar10:a", "--held-out", "0.1"}, {"--held-out", "test batch"}},
                      Refused{{"verify", "--data", "wikipedia"}, {"wikipedia", "text:PATH"}},
                      Refused{{"verify", "--data", "text:"}, {"text:"}},
                      Refused{{"verify", "--model", "mlp", "--data", "text:a"}, {"text for model mlp"}},
                      Refused{{"verify", "--model", "mlp", "--heads", "2"}, {"--heads", "nothing for model mlp"}},
                      Refused{{"verify", "--held-out", "0.5"}, {"--held-out", "synthetic"}},
                      Refused{{"bench", "--eval", "--held-out", "0"}, {"nothing held out"}},
                      Refused{{"verify", "--microbatches", "2", "--accumulate", "2"}, {"--microbatches and --accumulate"}},
                      Refused{{"verify", "--batch", "2", "--batch-per-replica", "2"}, {"--batch and --batch-per-replica"}},
                      Refused{{"verify", "--batch", "3", "--microbatches", "4"}, {"4 micro-batches of 3 samples", "--microbatches 3"}},
                      Refused{{"bench", "--momentum", "0.9"}, {"--momentum", "adamw"}},
                      Refused{{"verify", "--nesterov"}, {"without momentum"}},
                      Refused{{"verify", "--no-verify"}, {"--no-verify", "nothing in verify"}},
                      Refused{{"verify", "--ranks", "2"}, {"--ranks", "nothing in verify"}},
                      Refused{{"plan", "--inject", "nan"}, {"--inject", "nothing in plan"}},
                      Refused{{"verify", "--ranks-as-threads", "2", "--comm", "mpi"}, {"don't use MPI"}},
                      Refused{{"verify", "--ranks-as-threads", "2", "--inject", "nan:rank=2"}, {"rank 2 of 2"}},
                      Refused{{"verify", "--save", "x"}, {"--save", "nothing in verify"}},
                      Refused{{"bench", "--save-every", "2"}, {"--save-every", "without --save"}},
                      Refused{{"bench", "--save", "x", "--save-every", "0"}, {"--save-every 0", "at least 1"}},
                      Refused{{"verify", "--mutant", "x"}, {"--mutant"}}));

TEST(Refusals, OptionsOfLaterVersionsAreNamed) {
  for (char const* option : {"--link", "--zero", "--pp", "--dp", "--tp", "--expect", "--micro-batch-size"})
    EXPECT_THAT(refusal({"verify", option, "2"}), AllOf(StartsWith(option), HasSubstr("not in this version"))) << option;
}

Usage const pipeline{.program = "pipedream", .extra = {"mode", "balance", "split-points", "recompute"}, .micros = 4};

TEST(Pipelines, OfferOptionsOfTheirOwn) {
  Options const options = parse_line(pipeline, {"verify", "--mode", "2bw", "--balance", "2,1"}).options.value();
  EXPECT_EQ(options.mode, PipelineMode::two_buffers);
  EXPECT_EQ(options.micros, 4);
  EXPECT_EQ(options.recompute, "none");
  for (char const* option : {"--mode", "--balance", "--virtual-stages", "--recompute"})
    EXPECT_THAT(refusal({"verify", option, "2"}), AllOf(StartsWith(option), HasSubstr("means nothing in ddp"))) << option;
  EXPECT_THROW(parse_line(pipeline, {"verify", "--virtual-stages", "2"}), BadRequest);
  EXPECT_THROW(parse_line(pipeline, {"verify", "--mode", "flash"}), BadRequest);
  parse_line(pipeline, {"verify", "--split-points", "h.1"});
  EXPECT_THROW(parse_line(pipeline, {"verify", "--balance", "1,2", "--split-points", "h.1"}), BadRequest);
}

TEST(Ranks, MoreMicroBatchesThanTheLargestReplicaHasAreRefused) {
  Options const options = parse({"verify", "--batch", "10", "--microbatches", "3"});
  require_fit(options, 4);  // the largest replica has 3
  EXPECT_THROW(require_fit(options, 5), BadRequest);
  require_fit(parse({"verify", "--batch", "3"}), 4);  // a rank without samples contributes nothing (case 50)
  EXPECT_EQ(global_batch(options, 5), 10);
  Options const weak = parse({"verify", "--batch-per-replica", "2", "--accumulate", "2"});
  require_fit(weak, 100);
  EXPECT_EQ(global_batch(weak, 100), 200);
}

TEST(Help, FitsEightyColumnsAndNamesEveryOption) {
  ParseResult const result = parse_line(Usage{.program = "ddp", .summary = "Data parallelism."}, {"--help"});
  EXPECT_FALSE(result.options.has_value());
  std::istringstream lines(result.text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (char const* part :
       {"ddp <plan|verify|bench> [options]", "Data parallelism.", "--batch-per-replica N", "--json [FILE]", "--config FILE"})
    EXPECT_THAT(result.text, HasSubstr(part));
  EXPECT_THAT(parse_line(Usage{.program = "ddp"}, {"bench", "--batch", "2", "-h"}).text, HasSubstr("Usage:"));
}

TEST(Help, VersionNamesProgramAndCompiler) {
  std::string const text = parse_line(Usage{.program = "ddp"}, {"--version"}).text;
  EXPECT_THAT(text, AllOf(StartsWith("ddp (shardmark) "), HasSubstr("compiler"), HasSubstr("commit")));
}

}  // namespace
}  // namespace shardmark::testing
