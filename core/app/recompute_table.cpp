#include "app/recompute_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/describe.hpp"
#include "app/rounds.hpp"
#include "metrics/statistics.hpp"

namespace shardmark {
namespace {

constexpr std::int64_t least_warmup = 2, most_steps = 5;  // of each run in a round
constexpr std::int64_t costs_warmup = 6;                  // of the run that forwards' times come from
constexpr std::size_t most_points_drawn = 40;

Options with_rule(Options options, std::string const& rule) {
  options.recompute = rule;
  // What belongs to the run that was asked for.
  options.svg.clear();
  options.trace.clear();
  options.save.clear();
  options.resume.clear();
  options.inject.reset();
  options.evaluate = false;
  return options;
}

Job job_of(Options const& options, Strategy const& strategy, std::shared_ptr<Dataset const> const& data) {
  return build_job(options, strategy, 1, options.dtype, JobPurpose::training, data);
}

/// none first; then the one that was asked for, if it isn't among the usual ones.
std::vector<std::string> rules_for(Options const& options) {
  std::vector<std::string> rules{"none", "selective", "every:2", "sqrt", "all", "budget:75%", "budget:50%", "budget:least"};
  if (options.model != ModelKind::gpt) std::erase(rules, "selective");
  if (std::ranges::find(rules, options.recompute) == rules.end()) rules.insert(rules.begin() + 1, options.recompute);
  return rules;
}

/// Seconds that recomputations of one micro-batch take, from those of forwards by block.
double again_seconds(Job const& job, std::vector<double> const& forward_seconds) {
  auto const blocks = job.model->shapes();
  double out = 0;
  for (Action const& action : job.schedule.lanes.front().body) {
    if (action.what != Do::recompute) continue;
    auto const b = std::size_t(action.chunk.v);
    double const share = action.keeps == Kept::selective ? blocks[b].selective_cost / blocks[b].forward_cost : 1;
    out += share * forward_seconds[b];
  }
  return out / job.micros;
}

/// What every rule is compared with.
struct Base {
  std::vector<double> forward_seconds;  // by block and micro-batch
  double step_seconds = 0;
};

RuleRow planned_row(std::string const& rule, Job const& job, Base const& base) {
  RuleRow row;
  row.rule = rule;
  auto const& body = job.schedule.lanes.front().body;
  row.runs_again = std::ranges::count(body, Do::recompute, &Action::what) / job.micros;
  row.planned_bytes = dry_run(job, 0).peak[std::size_t(Book::activations)];
  row.planned_time = 1 + job.micros * again_seconds(job, base.forward_seconds) / base.step_seconds;
  return row;
}

/// One row a rule that works here: a percentage may be below the least.
std::vector<RuleRow> planned_rows(Options const& options, Strategy const& strategy, std::shared_ptr<Dataset const> const& data,
                                  Base const& base) {
  std::vector<RuleRow> rows;
  for (std::string const& rule : rules_for(options)) try {
      rows.push_back(planned_row(rule, job_of(with_rule(options, rule), strategy, data), base));
    } catch (BadRequest const&) {
      if (rule == options.recompute) throw;
    }
  return rows;
}

std::vector<RuleRow> curve_of(Options const& options, Strategy const& strategy, std::shared_ptr<Dataset const> const& data,
                              Base const& base) {
  Options const plain = with_rule(options, "none");
  auto const front = budget_choices(plain, strategy, job_of(plain, strategy, data), 1).front().plans.front();
  std::vector<RuleRow> out;
  std::size_t const points = std::min(front.size(), most_points_drawn);
  for (std::size_t i = 0; i < points; ++i) {
    auto const bytes = front[points == 1 ? 0 : i * (front.size() - 1) / (points - 1)].peak_bytes;
    Options const budget = with_rule(options, fmt::format("budget:{:.9f}", to_mib(bytes + 1)));
    out.push_back(planned_row(budget.recompute, job_of(budget, strategy, data), base));
  }
  return out;
}

void use_costs(Options& options, Base const& base) {
  options.forward_seconds = std::make_shared<std::vector<double> const>(base.forward_seconds);
}

/// The step of each rule in one round, in seconds; empty when a signal came.
std::vector<double> run_round(RankContext const& context, RuleTable& table, std::shared_ptr<Dataset const> const& data, int round) {
  std::vector<double> seconds(table.rows.size(), 0);
  for (std::size_t i : order_of_round(table.rows.size(), context.options.seed, round)) {
    Options const options = with_rule(context.options, table.rows[i].rule);
    fmt::print(stderr, "round {} of {}: --recompute {}\n", round + 1, table.rounds, table.rows[i].rule);
    BenchRun const run = time_run({options, context.strategy, context.world, context.board}, data);
    if (run.measured.stopped) return {};
    seconds[i] = median(run.measured.step_seconds);
    table.rows[i].measured_bytes = run.peak_by_book[std::size_t(Book::activations)];
  }
  return seconds;
}

}  // namespace

RuleTable plan_rules(Options const& asked, Strategy const& strategy) {
  Options options = asked;
  auto const data = build_dataset(options, 1, JobPurpose::training);
  Options const plain = with_rule(options, "none");
  Job const none = job_of(plain, strategy, data);
  Base base;  // in operations
  for (DryRun::Work const& work : dry_run(none, 0).work) base.step_seconds += work.flops;
  StagePlans const choices = budget_choices(plain, strategy, none, 1).front();
  for (ChainBlock const& block : choices.plans.chain()) base.forward_seconds.push_back(block.forward_seconds);
  use_costs(options, base);
  RuleTable out;
  out.rows = planned_rows(options, strategy, data, base);
  out.curve = curve_of(options, strategy, data, base);
  out.basis = "floating-point operations, counted by a dry run";
  return out;
}

RuleTable measure_rules(RankContext const& asked, std::shared_ptr<Dataset const> const& data) {
  Options options = asked.options;
  options.warmup = std::max(options.warmup, least_warmup);
  options.steps = std::min(options.steps, most_steps);
  RankContext const context{options, asked.strategy, asked.world, asked.board};
  Base base;
  {
    Options plain = with_rule(options, "none");
    plain.warmup = costs_warmup;
    BenchRun const run = time_run({plain, context.strategy, context.world, context.board}, data);
    base = {run.forward_seconds, median(run.measured.step_seconds)};
  }
  use_costs(options, base);
  RuleTable out;
  out.basis = "forwards measured by block, in a run of none before the rounds";
  out.rounds = options.rounds;
  out.warmup = options.warmup;
  out.steps = options.steps;
  out.rows = planned_rows(options, context.strategy, data, base);
  out.curve = curve_of(options, context.strategy, data, base);
  for (int round = 0; round < out.rounds; ++round) {
    auto const seconds = run_round(context, out, data, round);
    if (seconds.empty()) throw RankFailure(fmt::format("stopped by a signal in round {} of {}", round + 1, out.rounds));
    for (std::size_t i = 0; i < seconds.size(); ++i) out.rows[i].measured_times.push_back(seconds[i] / seconds.front());
  }
  return out;
}

namespace {

/// Two decimals, of small models four.
std::string mib(std::int64_t bytes) { return fmt::format("{:.{}f}", to_mib(bytes), to_mib(bytes) < 1 ? 4 : 2); }

}  // namespace

std::string to_text(RuleTable const& table) {
  bool const measured = table.rounds > 0;
  std::string out = "recomputation: memory of activations against time of a step\n";
  out += fmt::format(" {:<18}{:>12}{:>14}{:>14}", "rule", "runs again", "planned MiB", "planned time");
  out += measured ? fmt::format("{:>15}{:>8}{:>15}{:>8}\n", "measured MiB", "err %", "measured time", "points") : "\n";
  for (RuleRow const& row : table.rows) {
    out += fmt::format(" {:<18}{:>12}{:>14}{:>14.3f}", row.rule, row.runs_again, mib(row.planned_bytes), row.planned_time);
    if (measured) {
      double const time = median(row.measured_times);
      out += fmt::format("{:>15}{:>+8.1f}{:>15.3f} {:>+7.1f}", mib(row.measured_bytes),
                         (double(row.measured_bytes) / double(row.planned_bytes) - 1) * 100, time, (time - row.planned_time) * 100);
    }
    out += '\n';
  }
  out += " time relative to none; runs again: blocks, for each micro-batch";
  if (measured)
    out += fmt::format(";\n medians of {} of {} + {} steps, in random order; points: measured - planned time, in per cent of none's step",
                       count_of(table.rounds, "round"), table.warmup, table.steps);
  return out + fmt::format("\n planned time and budgets: {}\n", table.basis);
}

}  // namespace shardmark
