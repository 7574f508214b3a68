#pragma once
// The runs that PyTorch repeats: models, data, optimizers. One source for the export that PyTorch reads and for the test.

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "model/zoo.hpp"
#include "run/job.hpp"

namespace shardmark::golden {

inline constexpr std::int64_t updates = 5;
/// Updates whose gradients and new weights are stored.
inline constexpr std::int64_t stored_updates[] = {1, updates};

struct Case {
  std::string name;  // of its files
  std::variant<MlpConfig, GptConfig, ConvnetConfig> model;
  std::uint64_t seed = 1;  // of weights, data and order
  // 16 samples in batches of 7 are 7, 7, 2: the third update is short, and leaves the last of three replicas without a sample.
  std::int64_t samples = 16, batch = 7;
  std::int64_t parameters = 0, elements = 0;  // counted by hand: what must be compared
};
std::span<Case const> cases();

/// Settings under which nothing hides: the clip norm is below the norm of every update, decay and momentum are large.
/// AdamW's epsilon is of the gradients' order: it shows where epsilon enters, and bounds what rounding can do (golden_test.cpp).
OptimizerSettings settings(Rule rule);
inline constexpr Rule rules[] = {Rule::sgd, Rule::adamw};
std::string_view name(Rule rule);

std::shared_ptr<Model const> make_model(Case const& c);
std::shared_ptr<Dataset const> make_data(Case const& c);
/// In fp64. One replica: serial; more: data parallel, in buckets that are reduced while backward runs, with synchronised batch
/// normalisation, which makes replicas equal to PyTorch's full batch.
Job make_job(Case const& c, Rule rule, int replicas);

/// All that PyTorch needs to repeat the case, as JSON: sizes, settings, initial weights, the batch of each update. Numbers are exact.
std::string inputs_json(Case const& c);

}  // namespace shardmark::golden
