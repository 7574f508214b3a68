#include "app/rank_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/describe.hpp"
#include "verify/root_cost.hpp"

namespace shardmark {
namespace {

std::string pair_of(double counted, double formula) { return fmt::format("{:.2f} ({:.2f})", counted * 1e-6, formula * 1e-6); }

constexpr std::array<Book, 5> shown{Book::parameters, Book::gradients, Book::optimizer, Book::activations, Book::communication};

std::string memory_of(std::array<std::int64_t, books> const& peak) {
  std::string out;
  for (Book book : shown) out += fmt::format("{:>12.2f}", to_mib(peak[std::size_t(book)]));
  return out;
}

}  // namespace

Volume counted_volume(DryRun const& plan) {
  Volume out;
  for (DryRun::Traffic const& t : plan.collectives) {
    if (t.purpose != "gradients" && t.purpose != "weights" && t.purpose != "samples") continue;
    out.sent += t.sent_bytes;
    out.received += t.received_bytes;
  }
  return out;
}

std::optional<Volume> formula_volume(Job const& job, int rank, std::string_view purpose) {
  std::int64_t const others = job.mesh.data - 1;
  bool const root = rank == 0, alone = others == 0, last = rank == others;
  if (purpose == "gradients") {
    std::int64_t bytes = 0;  // one for each use of a tied weight
    for (BlockShape const& block : job.model->shapes())
      for (std::int64_t elements : block.elements) bytes += elements * std::int64_t(width(accumulator(job.model->dtype)));
    return root ? Volume{0, others * bytes} : Volume{bytes, 0};
  }
  if (purpose == "weights") {
    std::int64_t const bytes = job.model->spec.elements() * std::int64_t(width(job.model->dtype));
    return Volume{alone || last ? 0 : bytes, root ? 0 : bytes};
  }
  if (purpose == "samples") {
    std::int64_t const bytes = std::llround(bytes_of_samples(job));
    return root ? Volume{others * bytes, 0} : Volume{0, bytes};
  }
  return std::nullopt;
}

Volume formula_volume(Job const& job, int rank) {
  Volume out;
  for (std::string_view purpose : {"gradients", "weights", "samples"}) {
    Volume const of_purpose = *formula_volume(job, rank, purpose);
    out.sent += of_purpose.sent;
    out.received += of_purpose.received;
  }
  return out;
}

RankShares share_out(Communicator& world, Measurement const& measured, DryRun const& plan, Probe const& probe,
                     std::array<std::int64_t, books> const& peak, std::int64_t peak_total, Job const& all_reducing) {
  Volume const volume = counted_volume(plan);
  std::vector<double> mine{compute_seconds(plan, probe), double(peak_total), double(plan.peak_total), double(volume.sent),
                           double(volume.received)};
  mine.insert(mine.end(), peak.begin(), peak.end());
  HostExchange exchange(world);
  RankShares out;
  double const step = measured.loop_seconds / double(std::max<std::size_t>(1, measured.step_seconds.size()));
  for (auto const& numbers : exchange.gather(mine)) {
    Measurement::Blocked const& blocked = measured.blocked[out.ranks.size()];
    RankShare share;
    share.waiting_seconds = blocked.waiting_seconds + blocked.deciding_seconds;
    share.data_seconds = blocked.data_seconds;
    share.busy_seconds = step - share.waiting_seconds - share.data_seconds;
    share.predicted_busy_seconds = numbers[0];
    share.peak_total = std::int64_t(numbers[1]);
    share.planned_total = std::int64_t(numbers[2]);
    share.counted = {std::int64_t(numbers[3]), std::int64_t(numbers[4])};
    std::transform(numbers.begin() + 5, numbers.end(), share.peak.begin(), [](double x) { return std::int64_t(x); });
    out.ranks.push_back(share);
  }
  out.all_reduced = dry_run(all_reducing, 0);
  return out;
}

std::string share_table(RankShares const& shares, Job const& job) {
  std::string out = "  rank    busy ms (predicted)  waits ms  data ms     sent MB (formula)  received MB (formula)\n";
  for (std::size_t rank = 0; rank < shares.ranks.size(); ++rank) {
    RankShare const& r = shares.ranks[rank];
    Volume const formula = formula_volume(job, int(rank));
    out += fmt::format("  {:>4} {:>22} {:>9.2f} {:>8.2f} {:>21} {:>22}\n", rank,
                       fmt::format("{:.2f} ({:.2f})", r.busy_seconds * 1e3, r.predicted_busy_seconds * 1e3), r.waiting_seconds * 1e3,
                       r.data_seconds * 1e3, pair_of(double(r.counted.sent), double(formula.sent)),
                       pair_of(double(r.counted.received), double(formula.received)));
  }
  Volume const ring = counted_volume(shares.all_reduced);
  out += fmt::format("  {:>4} {:>22} {:>9} {:>8} {:>21} {:>22}\n", "ddp", "-", "-", "-", fmt::format("{:.2f}", double(ring.sent) * 1e-6),
                     fmt::format("{:.2f}", double(ring.received) * 1e-6));
  out += "  rank, MiB";
  for (Book book : shown) out += fmt::format("{:>{}}", name(book), 12 + (book == Book::communication ? 2 : 0));
  out += "    all (planned)\n";
  for (std::size_t rank = 0; rank < shares.ranks.size(); ++rank) {
    RankShare const& r = shares.ranks[rank];
    out += fmt::format("  {:>4}     {}  {:>15}\n", rank, memory_of(r.peak),
                       fmt::format("{:.2f} ({:.2f})", to_mib(r.peak_total), to_mib(r.planned_total)));
  }
  return out + fmt::format("  {:>4}     {}  {:>15}\n", "ddp", memory_of(shares.all_reduced.peak),
                           fmt::format("({:.2f})", to_mib(shares.all_reduced.peak_total)));
}

}  // namespace shardmark
