#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verify/verification.hpp"

namespace shardmark {
namespace {

constexpr std::size_t quiet_rows = 10;
constexpr std::size_t tensor_width = 31, table_width = 100;

bool measured(Check const& c) { return c.kind != CheckKind::bitwise && c.kind != CheckKind::count; }

std::string number(double x, char const* form) { return std::isnan(x) ? "-" : fmt::format(fmt::runtime(form), x); }

std::string short_verdict(Check const& c) {
  if (c.verdict != Verdict::verified) return std::string(name(c.verdict));
  if (c.kind == CheckKind::null_gradient) return "ok, null";
  if (c.kind == CheckKind::factor) return "ok, factor";
  return measured(c) && c.ratio > drift_ratio ? "drift" : "ok";
}

/// Long names lose their middle: the end tells more (h.3.attn.q.weight).
std::string fit(std::string const& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t const head = (width - 2) / 3;
  return text.substr(0, head) + ".." + text.substr(text.size() - (width - 2 - head));
}

std::string row(Check const& c) {
  bool const power = c.kind == CheckKind::bounded;
  std::string const error = measured(c) ? number(c.error, "{:.1e}") : number(c.error, "{:.0f}");
  std::string const bound = measured(c) ? number(c.bound, "{:.1e}") : c.kind == CheckKind::count ? number(c.bound, "{:.0f}") : "0";
  std::string const where = c.index >= 0 ? fmt::format("{}@{}", c.index, c.rank) : c.rank >= 0 ? fmt::format("@{}", c.rank) : "-";
  std::string const line = fmt::format(" {:<12} {:<31} {:>7} {:>7} {:>7} {:>6} {:>12}  ", c.part, fit(c.tensor, tensor_width), error, bound,
                                       measured(c) ? number(c.ratio, "{:.2g}") : "-", power ? number(c.power, "{:.0e}") : "-", where);
  return line + short_verdict(c) + "\n";
}

std::string note(Check const& c) {
  return c.verdict == Verdict::verified || c.note.empty() ? "" : fmt::format("              ^ {}\n", c.note.substr(0, table_width - 16));
}

}  // namespace

std::string table(Verification const& r, Rows rows) {
  std::string out = fmt::format("verify {}  {}  {} rank{}  candidate {}, reference {} fp64\n", r.strategy, name(r.dtype), r.ranks,
                                r.ranks == 1 ? "" : "s", r.candidate_backend, r.reference_backend);
  out += fmt::format(" {:<12} {:<31} {:>7} {:>7} {:>7} {:>6} {:>12}  {}\n", "part", "tensor", "error", "bound", "ratio", "power",
                     "index@rank", "verdict");
  std::vector<Check const*> good, bad;
  for (Check const& c : r.checks) (c.verdict == Verdict::verified ? good : bad).push_back(&c);
  if (rows == Rows::worst) {
    std::erase_if(good, [](Check const* c) { return !measured(*c); });
    std::stable_sort(good.begin(), good.end(), [](Check const* a, Check const* b) { return a->ratio > b->ratio; });
    good.resize(std::min(good.size(), quiet_rows));
  }
  for (Check const* c : bad) out += row(*c) + note(*c);
  for (Check const* c : good) out += row(*c);
  std::size_t const hidden = r.checks.size() - good.size() - bad.size();
  if (hidden > 0) out += fmt::format(" ... and {} checks that passed\n", hidden);
  int const factor_tests = r.count(CheckKind::factor);
  std::string const factors = factor_tests > 0 ? fmt::format("{} factor, ", factor_tests) : "";
  out += fmt::format("{} checks: {} bounded (worst {:.2g}), {} null, {}{} bitwise over {} steps, {} counts; {:.1f} s\n", r.checks.size(),
                     r.count(CheckKind::bounded), r.worst_ratio(), r.count(CheckKind::null_gradient), factors, r.count(CheckKind::bitwise),
                     r.steps, r.count(CheckKind::count), r.seconds);
  if (!r.first_divergence.empty()) out += fmt::format("first divergence: {}\n", r.first_divergence);
  if (!r.fingerprint.empty()) out += fmt::format("fingerprint: {}\n", r.fingerprint);
  return out + fmt::format("{}\n", name(r.verdict));
}

}  // namespace shardmark
