#include <fmt/format.h>

#include <array>

#include "record/record.hpp"

namespace shardmark::record {
namespace {

/// A field as RFC 4180 writes it: quoted when it holds a comma, a quote or a line end.
std::string quoted(std::string const& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string cell(std::string_view text) { return quoted(std::string(text)); }
std::string cell(std::string const& text) { return quoted(text); }
std::string cell(bool value) { return value ? "true" : "false"; }
std::string cell(std::int64_t value) { return std::to_string(value); }
std::string cell(int value) { return std::to_string(value); }
std::string cell(double value) { return fmt::format("{}", value); }  // the shortest text that reads back the same
template <class T>
std::string cell(Measured<T> const& value) {
  return value ? cell(*value) : std::string();
}
template <class T>
std::string cell(std::optional<T> const& value) {
  return value ? cell(*value) : std::string();
}

/// `part` of the result, or nothing while there is no result.
template <class Part>
std::string of_result(Record const& record, Part part) {
  return record.result ? cell(part(*record.result)) : std::string();
}

std::string end_of_interval(Record const& record, double Interval::*end) {
  if (!record.result || !record.result->step_seconds.ci95) return {};
  return cell((*record.result->step_seconds.ci95).*end);
}

struct Column {
  char const* name;
  std::string (*text)(Record const&);
};

constexpr std::array columns{
    Column{"record_id", [](Record const& r) { return cell(r.record_id); }},
    Column{"started", [](Record const& r) { return cell(r.run.started); }},
    Column{"state", [](Record const& r) { return cell(name(r.run.state)); }},
    Column{"verdict", [](Record const& r) { return cell(name(r.verdict)); }},
    Column{"official", [](Record const& r) { return cell(r.official()); }},
    Column{"strategy", [](Record const& r) { return cell(r.input.strategy); }},
    Column{"model", [](Record const& r) { return cell(r.input.model); }},
    Column{"layers", [](Record const& r) { return cell(r.input.layers); }},
    Column{"hidden", [](Record const& r) { return cell(r.input.hidden); }},
    Column{"seq", [](Record const& r) { return cell(r.input.seq); }},
    Column{"vocab", [](Record const& r) { return cell(r.input.vocab); }},
    Column{"dtype", [](Record const& r) { return cell(r.input.dtype); }},
    Column{"backend", [](Record const& r) { return cell(r.input.backend); }},
    Column{"comm", [](Record const& r) { return cell(r.input.comm); }},
    Column{"ranks", [](Record const& r) { return cell(r.input.ranks); }},
    Column{"dp", [](Record const& r) { return cell(r.input.dp); }},
    Column{"pp", [](Record const& r) { return cell(r.input.pp); }},
    Column{"tp", [](Record const& r) { return cell(r.input.tp); }},
    Column{"global_batch_size", [](Record const& r) { return cell(r.input.global_batch_size); }},
    Column{"micro_batch_size", [](Record const& r) { return cell(r.input.micro_batch_size); }},
    Column{"num_microbatches", [](Record const& r) { return cell(r.input.num_microbatches); }},
    Column{"timed_steps", [](Record const& r) { return cell(r.method.timed_steps); }},
    Column{"loop_seconds", [](Record const& r) { return of_result(r, [](Result const& x) { return x.loop_seconds.value; }); }},
    Column{"tokens_per_second", [](Record const& r) { return of_result(r, [](Result const& x) { return x.tokens_per_second; }); }},
    Column{"tps", [](Record const& r) { return of_result(r, [](Result const& x) { return x.tps; }); }},
    Column{"step_seconds_median", [](Record const& r) { return of_result(r, [](Result const& x) { return x.step_seconds.median; }); }},
    Column{"step_seconds_ci95_low", [](Record const& r) { return end_of_interval(r, &Interval::low); }},
    Column{"step_seconds_ci95_high", [](Record const& r) { return end_of_interval(r, &Interval::high); }},
    Column{"step_seconds_predicted",
           [](Record const& r) { return of_result(r, [](Result const& x) { return x.step_seconds.predicted; }); }},
    Column{"ledger_peak_bytes", [](Record const& r) { return of_result(r, [](Result const& x) { return x.memory_bytes.ledger_peak; }); }},
    Column{"pss_peak_bytes", [](Record const& r) { return of_result(r, [](Result const& x) { return x.memory_bytes.pss_peak; }); }},
    Column{"loss_first", [](Record const& r) { return of_result(r, [](Result const& x) { return x.loss.first; }); }},
    Column{"loss_last", [](Record const& r) { return of_result(r, [](Result const& x) { return x.loss.last; }); }},
    Column{"nonfinite_steps", [](Record const& r) { return of_result(r, [](Result const& x) { return x.loss.nonfinite_steps; }); }}};

}  // namespace

std::string csv_header() {
  std::vector<std::string> names;
  for (Column const& column : columns) names.emplace_back(column.name);
  return fmt::format("{}", fmt::join(names, ","));
}

std::string to_csv_line(Record const& record) {
  std::vector<std::string> cells;
  for (Column const& column : columns) cells.push_back(column.text(record));
  return fmt::format("{}", fmt::join(cells, ","));
}

}  // namespace shardmark::record
