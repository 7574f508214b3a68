#include "verify/sharing_cost.hpp"

#include "schedule/sharing_forms.hpp"

namespace shardmark {
namespace {

constexpr double alignment = 64;  // of the arena

Traffic::Count traffic_of(Candidate const& candidate, std::string_view purpose) {
  Traffic::Count out;
  for (auto const& [key, count] : candidate.traffic().collectives())
    if (key.purpose == purpose) {
      out.calls += count.calls;
      out.bytes += count.bytes;
      out.sent_bytes += count.sent_bytes;
    }
  return out;
}

}  // namespace

void count_sharing(Candidate& candidate, std::vector<Count>& out) {
  Program& program = candidate.rig().program();
  Schedule const& schedule = program.parts().schedule;
  if (schedule.sharing == Sharing::replicated || schedule.sharing == Sharing::root) return;
  int const ranks = program.store().config().shards.count, micros = schedule.micros_per_update();
  SharingForms const forms = sharing_forms(schedule.sharing, program.parts().model.shapes(), ranks, micros);
  DType const compute = program.parts().model.dtype, master = accumulator(compute);
  double const narrow = double(width(compute)), wide = double(width(master)), updates = double(program.history().size());

  Traffic::Count const sums = traffic_of(candidate, "gradients"), weights = traffic_of(candidate, "weights");
  out.push_back({"reduce-scatters per update", double(sums.calls) / updates, double(forms.reductions)});
  out.push_back(
      {"bytes sent for gradients per update", double(sums.sent_bytes) / updates, double(SharingForms::sent(forms.reduced, ranks)) * wide});
  out.push_back({"gathers of weights per update", double(weights.calls) / updates, double(forms.gathers)});
  out.push_back({"bytes sent for weights per update", double(weights.sent_bytes) / updates,
                 double(SharingForms::sent(forms.gathered, ranks)) * narrow});

  Ledger const& ledger = candidate.rig().ledger();
  double const buffers = program.store().buffers() ? double(program.store().buffers().view.bytes()) : 0;
  double const masters = compute == master ? 0 : double(forms.updated) * wide;
  int const states = program.parts().optimizer.states();
  // Each tensor is booked with what aligns the next one.
  double const slack = alignment * double(program.store().held().size());
  double const weights_kept = double(forms.weights) * narrow + masters + buffers;
  out.push_back({"bytes of weights kept", double(ledger.peak(Book::parameters)), weights_kept, 2 * slack + alignment});
  double const state = double(forms.updated) * wide * states;
  out.push_back({"bytes of optimizer state kept", double(ledger.peak(Book::optimizer)), state, states * slack});
  // More micro-batches have partial sums besides, as many as the tree is deep.
  double const sum = double(forms.sums) * wide;
  if (micros == 1) out.push_back({"bytes of gradients kept", double(ledger.peak(Book::gradients)), sum, alignment});
}

}  // namespace shardmark
