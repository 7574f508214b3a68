#include "app/traced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "metrics/clock.hpp"
#include "metrics/host.hpp"

namespace shardmark {
namespace {

constexpr std::size_t fields = 6;  // of a span, as numbers

/// The action that a span's name, a literal of name(Do), stands for.
int action_of(char const* literal) {
  for (int what = 0; what <= int(Do::update); ++what)
    if (name(Do(what)).data() == literal) return what;
  invariant(false, "a span that no action made");
  return 0;
}

/// Spans as numbers, since ranks exchange numbers; names travel as the action they stand for.
std::vector<double> as_numbers(std::span<TraceSpan const> spans, std::int64_t origin) {
  std::vector<double> out;
  for (TraceSpan const& s : spans)
    out.insert(out.end(), {double(s.phase), double(s.block), double(s.micro), double(s.begin_ns - origin), double(s.end_ns - origin),
                           double(action_of(s.name))});
  return out;
}

std::vector<TraceSpan> as_spans(std::vector<double> const& numbers, std::size_t count) {
  std::vector<TraceSpan> out;
  for (std::size_t i = 0; i < count; ++i) {
    double const* n = numbers.data() + i * fields;
    out.push_back(
        {name(Do(n[5])).data(), TracePhase(n[0]), std::int32_t(n[1]), std::int32_t(n[2]), std::int64_t(n[3]), std::int64_t(n[4])});
  }
  return out;
}

}  // namespace

void write_trace(std::string const& file, std::vector<std::vector<TraceSpan>> const& spans) {
  std::vector<RankTrace> ranks;
  std::string const host = read_host_info().hostname;
  for (std::size_t r = 0; r < spans.size(); ++r) ranks.push_back({int(r), host, 0, spans[r]});
  std::ofstream out(file);
  write_chrome_trace(out, ranks);
  out.flush();
  if (!out) fmt::print(stderr, "shardmark: the trace could not be written to {}; the measurements go on without it\n", file);
}

TracedUpdates trace_updates(Rig& rig, TraceHook& hook, Communicator& world, Gather gather) {
  HostExchange exchange(world, std::size_t(1) << 26);
  exchange.sync();
  std::int64_t const origin = now_ns();
  double const blocked = rig.data_blocked_seconds();
  hook.record(true);
  rig.program().advance(traced_updates * rig.job().updates_per_batch());
  rig.program().drain();
  hook.record(false);
  double const total = seconds_between(origin, now_ns()) / traced_updates;
  auto const spans = hook.trace().spans();
  auto const seconds = phase_seconds(spans);
  auto const of = [&](TracePhase phase) { return exchange.max(seconds[std::size_t(phase)] / traced_updates); };
  TracedUpdates traced;
  record::PhasesSeconds& out = traced.phases;
  out.data = exchange.max((rig.data_blocked_seconds() - blocked) / traced_updates);
  out.forward = of(TracePhase::forward) - out.data;
  out.backward = of(TracePhase::backward);
  out.comm_exposed = of(TracePhase::communication);
  out.optimizer = of(TracePhase::optimizer);
  out.other = std::max(0.0, exchange.max(total) - out.data - out.forward - out.backward - out.comm_exposed - out.optimizer);
  if (gather == Gather::yes) {
    std::size_t const most = std::size_t(exchange.max(double(spans.size())));
    std::vector<double> mine = as_numbers(spans, origin);
    mine.resize(most * fields);
    auto const counts = exchange.gather({double(spans.size())});
    auto const all = exchange.gather(mine);
    for (std::size_t r = 0; r < all.size(); ++r) traced.by_rank.push_back(as_spans(all[r], std::size_t(counts[r][0])));
  }
  return traced;
}

}  // namespace shardmark
