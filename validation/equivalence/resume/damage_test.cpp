// Checkpoints that were damaged after they were written, or that a program left unfinished, never load as good.

#include <sys/resource.h>

#include <csignal>
#include <random>

#include "data/sha256.hpp"
#include "runs.hpp"

namespace shardmark::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::array files{"model.safetensors", "optimizer.safetensors", "state.json", "SHA256SUMS"};

class Damage : public ResumeTest {
 protected:
  void SetUp() override {
    ResumeTest::SetUp();
    options_ = text_options();
    job_ = job_for(options_, 2);
    run_leg(options_, job_, {.updates = 6, .from = {}, .to = folder_ / "run"});
    update_ = folder_ / "run" / "update-6";
  }
  std::string outcome() const {
    return test::refusal_of([&] { Checkpoint(folder_ / "run").require_intact(*job_.model, job_.optimizer); });
  }
  void overwrite(std::string const& file, std::string const& bytes) const { std::ofstream(update_ / file, std::ios::binary) << bytes; }
  /// As somebody would who wants it to be taken for good.
  void sign() const {
    std::string sums;
    for (std::size_t i = 0; i < 3; ++i) sums += sha256_hex(test::text_of(update_ / files[i])) + "  " + files[i] + "\n";
    overwrite("SHA256SUMS", sums);
  }

  Options options_;
  Job job_;
  fs::path update_;
};

TEST_F(Damage, CutFilesAreRefused) {
  ASSERT_EQ(outcome(), "accepted");
  for (std::string const file : files) {
    std::string const whole = test::text_of(update_ / file);
    for (std::size_t size : {std::size_t(0), std::size_t(1), std::size_t(8), whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
      overwrite(file, whole.substr(0, size));
      EXPECT_THAT(outcome(), HasSubstr(file)) << size;
    }
    overwrite(file, whole + "\n");
    EXPECT_THAT(outcome(), HasSubstr(file)) << "longer";
    fs::remove(update_ / file);
    EXPECT_THAT(outcome(), HasSubstr(file)) << "absent";
    fs::create_directory(update_ / file);
    EXPECT_THAT(outcome(), HasSubstr("it is a folder"));
    fs::remove(update_ / file);
    overwrite(file, whole);
  }
  EXPECT_EQ(outcome(), "accepted");
}

TEST_F(Damage, FlippedBitsAreRefused) {
  std::mt19937 random(5);
  for (std::string const file : files) {
    std::string const whole = test::text_of(update_ / file);
    bool const small = whole.size() < 1000;
    for (std::size_t i = 0; i < (small ? whole.size() : 200); ++i) {
      std::size_t const at = small ? i : std::uniform_int_distribution<std::size_t>(0, whole.size() - 1)(random);
      std::string damaged = whole;
      damaged[at] = char(damaged[at] ^ char(1 << i % 8));
      overwrite(file, damaged);
      EXPECT_THAT(outcome(), HasSubstr("can't read ")) << file << " byte " << at;
    }
    overwrite(file, whole);
  }
  EXPECT_EQ(outcome(), "accepted");
}

TEST_F(Damage, StatesThatAreNoneAreRefused) {
  std::string const whole = test::text_of(update_ / "state.json");
  auto const with = [&](std::string const& from, std::string const& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    overwrite("state.json", text);
    sign();
    return outcome();
  };
  EXPECT_EQ(with("\"seed\"", "\"seed\""), "accepted") << "signed again";
  EXPECT_THAT(with("checkpoint/1", "checkpoint/2"), HasSubstr("found schema \"shardmark.checkpoint/2\""));
  EXPECT_THAT(with("\"updates\": 6", "\"updates\": 7"), HasSubstr("found updates 7; expected the update-6"));
  for (char const* count : {"-1", "6.5", "\"6\"", "99999999999", "null", "[]"})
    EXPECT_THAT(with("\"updates\": 6", std::string("\"updates\": ") + count), HasSubstr("expected a count below 2^31")) << count;
  EXPECT_THAT(with("\"updates\": 6", "\"other\": 6"), HasSubstr("found no updates"));
  EXPECT_THAT(with("\"updates\": 6", "\"updates\": 6, \"updates\": 6"), HasSubstr("twice"));
  EXPECT_THAT(with("\"learning_rate\": ", "\"learning_rate\": \"\", \"x\": "), HasSubstr("expected a number"));
  EXPECT_THAT(with("\"seed\": \"1\"", "\"seed\": 1"), HasSubstr("expected text"));
  EXPECT_THAT(with("\"seed\": \"1\"", "\"seed\": [[1]]"), HasSubstr("levels deep"));
  EXPECT_THAT(with("\"bytes\": {", "\"bytes\": {\"../../text\": 1,"), HasSubstr("../../text")) << "no way out of the folder";
  EXPECT_THAT(with("{", "["), HasSubstr("expected JSON"));
}

TEST_F(Damage, OtherTensorsAreRefused) {
  std::string const model = test::text_of(update_ / "model.safetensors"), moments = test::text_of(update_ / "optimizer.safetensors");
  std::string text = test::text_of(update_ / "state.json");
  auto const swap_sizes = [&](std::string const& from, std::string const& to) { text.replace(text.find(from), from.size(), to); };
  swap_sizes("\"model.safetensors\": " + std::to_string(model.size()), "\"model.safetensors\": " + std::to_string(moments.size()));
  overwrite("state.json", text);
  overwrite("model.safetensors", moments);
  sign();
  EXPECT_THAT(outcome(), HasSubstr("model.safetensors (found no \"wte.weight\""));
}

TEST_F(Damage, UnfinishedCheckpointsAreNeverTaken) {
  fs::copy(update_, folder_ / "run" / ".update-7.part");
  for (char const* name : {"update-", "update-08", "update-9x", "update--1", "update-99999999999999999999", "notes"})
    fs::create_directory(folder_ / "run" / name);
  EXPECT_EQ(Checkpoint(folder_ / "run").state().updates, 6);
  EXPECT_THAT(test::refusal_of([&] { Checkpoint(folder_ / "run" / "update-6"); }), HasSubstr("give its parent to --resume"));
  fs::rename(update_, folder_ / "run" / ".update-6.part");
  EXPECT_THAT(outcome(), HasSubstr("it holds no complete checkpoint"));
  EXPECT_THAT(test::refusal_of([&] { Checkpoint(folder_ / "none"); }), HasSubstr("check the path in --resume"));
}

/// Goes on from the checkpoint and saves in the same folder.
void save_again(Options const& options, Job const& job, fs::path const& folder) {
  auto world = make_self();
  auto ops = make_reference_backend();
  Rig rig(job, {.ops = *ops, .world = *world, .updates_before = 6});
  Checkpoint(folder).load(rig.program());
  rig.program().advance(1);
  rig.program().drain();
  CheckpointFolder(folder, CheckpointFolder::Existing::go_on)
      .save({.updates = 7, .learning_rate = 0, .fingerprint = fingerprint_of(options, job)}, rig.program(), held_state(rig.program()),
            [] {});
}

TEST_F(Damage, TheOlderGoesWhenTheNewerIsComplete) {
  fs::create_directory(folder_ / "run" / ".update-3.part");
  fs::create_directory(folder_ / "run" / "notes");
  Job const alone = job_for(options_, 1);
  save_again(options_, alone, folder_ / "run");
  EXPECT_EQ(Checkpoint(folder_ / "run").state().updates, 7);
  std::vector<std::string> names;
  for (auto const& entry : fs::directory_iterator(folder_ / "run")) names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("update-7", "notes")) << "what isn't ours stays";
  EXPECT_THAT(test::refusal_of([&] { CheckpointFolder(folder_ / "run", CheckpointFolder::Existing::refuse); }), HasSubstr("add --resume"));
}

TEST_F(Damage, WhatCannotBeWrittenLeavesTheOlder) {
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit const tight{2000, before.rlim_max};  // bytes: as a disk that becomes full
  std::string message;
  setrlimit(RLIMIT_FSIZE, &tight);
  try {
    save_again(options_, job_for(options_, 1), folder_ / "run");
  } catch (RankFailure const& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, HasSubstr("no checkpoint of update 7: can't write "));
  EXPECT_THAT(message, HasSubstr("File too large"));
  EXPECT_THAT(message, HasSubstr("update-6 is intact"));
  EXPECT_EQ(outcome(), "accepted");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "run"), fs::directory_iterator()), 1) << "nothing half-written stays";
}

}  // namespace
}  // namespace shardmark::testing
