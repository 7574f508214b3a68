#include "app/traffic_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/rank_shares.hpp"
#include "app/replay_batch.hpp"

namespace shardmark {
namespace {

constexpr double mega = 1e-6;

TrafficForm const* form_of(DryRun::Traffic const& row, Prediction const& prediction) {
  auto const& forms = prediction.traffic;
  auto const at = std::find_if(forms.begin(), forms.end(), [&](TrafficForm const& form) {
    return form.axes == row.axes && form.what == row.what && form.purpose == row.purpose;
  });
  return at == forms.end() ? nullptr : &*at;
}

/// By collectives in which each rank sends alike.
bool sums_gradients(DryRun::Traffic const& row, Prediction const& prediction) {
  return row.purpose == "gradients" && row.what != Collective::gather && prediction.reductions > 0;
}

constexpr char const* columns = " {:<8} {:<28} {:<14} {:>5} {:>8} {:>8}";  // a line of 100 holds 21 more letters

std::string line(std::string_view axis, std::string_view purpose, std::string_view what, std::int64_t calls, double sent,
                 std::optional<double> formula, std::string_view text) {
  std::string const numbers = fmt::format(fmt::runtime(columns), axis, purpose, what, calls, fmt::format("{:.3f}", sent * mega),
                                          formula ? fmt::format("{:.3f}", *formula * mega) : "-");
  return fmt::format("{}{}{}\n", numbers, text.empty() ? "" : "  ", text);
}

}  // namespace

std::string axes_name(Axes axes) {
  std::string out;
  for (auto const& [axis, word] : {std::pair{Axis::data, "data"}, {Axis::pipeline, "pipeline"}, {Axis::tensor, "tensor"}})
    if ((axes & Axes(axis)) != 0) out += fmt::format("{}{}", out.empty() ? "" : "+", word);
  return out.empty() ? "-" : out;
}

std::optional<double> formula_bytes(DryRun::Traffic const& row, Job const& job, Prediction const& prediction) {
  double const samples = double(piece_of(job.global_batch, job.replicas, 0).size());
  if (TrafficForm const* form = form_of(row, prediction)) return form->sent_bytes(job.micros, samples);
  if (sums_gradients(row, prediction)) return prediction.wire_elements * double(width(accumulator(job.model->dtype)));
  return std::nullopt;
}

namespace {

std::string_view gradients_text(Job const& job) {
  return job.schedule.sum.inside == Inside::replicas ? "M 2 (n-1)/n x weights" : "2 (n-1)/n x weights";
}

}  // namespace

namespace {

/// Of P gradients, W weights, D samples of a rank (strategies/dp).
std::string_view centralised_text(std::string_view purpose) {
  if (purpose == "gradients") return "P, 0 at rank 0";
  return purpose == "weights" ? "W, 0 at the last rank" : "(n-1) D at rank 0";
}

}  // namespace

std::string traffic_table(DryRun const& counted, Job const& job, Prediction const& prediction, int rank) {
  std::string out = fmt::format(fmt::runtime(columns), "axis", "sent by a rank for", "by", "calls", "MB", "formula");
  out += "  formula, elements\n";
  for (DryRun::Traffic const& row : counted.collectives) {
    auto const centralised = job.scatters() ? formula_volume(job, rank, row.purpose) : std::nullopt;
    if (centralised) {
      out += line(axes_name(row.axes), row.purpose, name(row.what), row.calls, double(row.sent_bytes), double(centralised->sent),
                  centralised_text(row.purpose));
      continue;
    }
    TrafficForm const* const form = form_of(row, prediction);
    std::string_view const text = form != nullptr                   ? std::string_view(form->formula)
                                  : sums_gradients(row, prediction) ? gradients_text(job)
                                                                    : std::string_view("");
    out += line(axes_name(row.axes), row.purpose, name(row.what), row.calls, double(row.sent_bytes), formula_bytes(row, job, prediction),
                text);
  }
  if (counted.messages > 0)
    out += line(axes_name(axes(Axis::pipeline)), "activations, their gradients", "messages", counted.messages,
                double(counted.message_bytes), double(sent_by_formula(job, job.mesh.stage_of(rank)).bytes), "b s h a boundary");
  return out;
}

}  // namespace shardmark
