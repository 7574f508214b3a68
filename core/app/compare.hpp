#pragma once
// `shardmark compare`: strategies at the same model, global batch and seed in one job, in rounds of random order (docs/method.md).

#include <memory>
#include <string>
#include <vector>

#include "app/bench.hpp"
#include "metrics/statistics.hpp"

namespace shardmark {

/// A strategy in one comparison.
struct Entrant {
  Strategy const* strategy = nullptr;
  int ranks = 1;
  std::string left_out;  // why it doesn't take part; empty: it does
  record::Verdict verdict = record::Verdict::unverified;
  // one value a round
  std::vector<double> tokens_per_second, step_seconds, predicted_seconds, exposed_seconds;
  double loss = 0, first_loss = 0;
  std::vector<double> bubble;  // of pipelines
  std::int64_t peak_bytes = 0, planned_bytes = 0, sent_bytes = 0;
  std::optional<Evaluated> evaluated;
};

struct Comparison {
  std::vector<Entrant> entrants;
  int rounds = 0;
  double seconds = 0, verify_seconds = 0;
  std::int64_t updates = 0;  // of each run
};

/// The table; at most 100 columns.
std::string compare_table(Comparison const& comparison, Options const& options, ModelSpec const& spec, int ranks, std::string_view comm);

/// The program above the strategies: `shardmark compare [options]`. What one of them can't do leaves it out of the table.
/// @param needed what it can't do is refused before ranks start; its memory is as large as any
/// @returns the exit code
int run_shardmark(std::vector<std::unique_ptr<Strategy>> const& strategies, Strategy const& needed, int argc, char** argv);

}  // namespace shardmark
