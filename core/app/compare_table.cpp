#include <fmt/format.h>

#include <algorithm>

#include "app/compare.hpp"
#include "app/describe.hpp"

namespace shardmark {
namespace {

std::string percent_off(double measured, double predicted) {
  return predicted > 0 ? fmt::format("{:+.1f}", (measured / predicted - 1) * 100) : "-";
}

/// Half the width of the median's interval, in per cent of it; "-" with too few rounds.
std::string half_width(std::vector<double> const& samples) {
  auto const ci = median_interval(samples);
  return ci ? fmt::format("{:.1f}", (ci->high - ci->low) / 2 / median(samples) * 100) : "-";
}

std::string row(Entrant const& e, Entrant const* base, bool tied_for_first) {
  double const rate = median(e.tokens_per_second), step = median(e.step_seconds);
  std::string const ratio =
      base == nullptr ? "-" : fmt::format("{:.2f}", paired_ratio(e.tokens_per_second, base->tokens_per_second).median);
  std::string const exposed = e.ranks > 1 ? fmt::format("{:.1f}", median(e.exposed_seconds) / step * 100) : "-";
  std::string const bubble = e.bubble.empty() ? "-" : fmt::format("{:.1f}", median(e.bubble) * 100);
  return fmt::format("{}{:<16} {:>2} {:>8.0f} {:>4} {:>5} {:>7.1f} {:>7} {:>6.0f} {:>5} {:>5} {:>6} {:>7.1f} {}\n",
                     tied_for_first ? '*' : ' ', e.strategy->name(), e.ranks, rate, half_width(e.tokens_per_second), ratio, step * 1e3,
                     percent_off(step, median(e.predicted_seconds)), to_mib(e.peak_bytes),
                     percent_off(double(e.peak_bytes), double(e.planned_bytes)), exposed, bubble, double(e.sent_bytes) * 1e-6,
                     record::name(e.verdict));
}

}  // namespace

std::string compare_table(Comparison const& c, Options const& o, ModelSpec const& spec, int ranks, std::string_view comm) {
  auto const title = [](std::string const& text) {
    return fmt::format(" {} {}\n", text, std::string(96 - std::min<std::size_t>(text.size(), 90), '-'));
  };
  std::string out = fmt::format("shardmark compare   {}\n", describe_run(o, "", spec, 1));
  out += fmt::format("{}   comm {}   link real   trace off   seed {}   optimizer {}\n", count_of(ranks, "rank"), comm, o.seed,
                     name(o.optimizer));
  out += fmt::format("{}, strategies in random order, {} + {} steps each   elapsed {:.0f} s, of which verify {:.0f} s\n\n",
                     count_of(c.rounds, "round"), o.warmup, o.steps, c.seconds, c.verify_seconds);
  out += fmt::format(" {:<16} {:>2} {:>8} {:>4} {:>5} {:>7} {:>7} {:>6} {:>5} {:>5} {:>6} {:>7} {}\n", "strategy", "R",
                     o.model == ModelKind::gpt ? "tok/s" : "smp/s", "+-%", "x ser", "step", "err", "peak", "err", "expos", "bubble", "sent",
                     "verdict");
  out += fmt::format(" {:<16} {:>2} {:>8} {:>4} {:>5} {:>7} {:>7} {:>6} {:>5} {:>5} {:>6} {:>7}\n", "", "", "", "", "", "ms", "%", "MiB",
                     "%", "%", "%", "MB");
  out += title("equal to serial");
  Entrant const* base = nullptr;
  Entrant const* fastest = nullptr;
  for (Entrant const& e : c.entrants) {
    if (!e.left_out.empty()) continue;
    if (e.strategy->name() == "serial") base = &e;
    if (fastest == nullptr || median(e.tokens_per_second) > median(fastest->tokens_per_second)) fastest = &e;
  }
  for (Entrant const& e : c.entrants) {
    if (!e.left_out.empty()) continue;
    auto const ci = paired_ratio(e.tokens_per_second, fastest->tokens_per_second).ci95;
    out += row(e, base, &e == fastest || (ci && ci->holds(1)));
  }
  bool const any_left = std::any_of(c.entrants.begin(), c.entrants.end(), [](Entrant const& e) { return !e.left_out.empty(); });
  if (any_left) out += title("left out");
  for (Entrant const& e : c.entrants)
    if (!e.left_out.empty()) out += fmt::format(" {:<16} {}\n", e.strategy->name(), e.left_out);
  out += median_interval(fastest->tokens_per_second)
             ? "\n *      not distinguishable from the fastest: paired ratio per round, 95 % interval holds 1\n"
             : fmt::format("\n *      fastest; no intervals from {} (6 or more are needed)\n", count_of(c.rounds, "round"));
  if (base != nullptr)
    out += fmt::format(" x ser  base {:.0f} {}/s: serial, 1 rank, same global batch, the other ranks asleep\n",
                       median(base->tokens_per_second), term_name(o));
  out += " err    measured over predicted; predicted from probes, not these steps.  peak, sent, bubble: max over ranks\n";
  for (Entrant const& e : c.entrants) {
    if (!e.left_out.empty()) continue;
    out += fmt::format(" loss   {:<14} {:.4f} -> {:.4f} after {} updates", e.strategy->name(), e.first_loss, e.loss, c.updates);
    if (e.evaluated)
      out += fmt::format(";  held out {:.4f}, next {} right {:.1f} %", e.evaluated->loss, term_name(o), e.evaluated->accuracy * 100);
    out += '\n';
  }
  return out;
}

}  // namespace shardmark
