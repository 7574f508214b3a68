#include "verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>

#include "schedule/check.hpp"
#include "verify/bitwise.hpp"
#include "verify/cost.hpp"

namespace shardmark {
namespace {

/// Rule 4: agreement to the last bit between different orders of summation means that the reference isn't independent.
/// Judged on gradients of 256 elements or more; nothing when there are none, or when both sides sum in one order.
std::optional<Check> check_independence(std::vector<Check> const& checks, Catalogue const& catalogue, std::string const& part) {
  int judged = 0;
  bool exact = true;
  for (std::size_t t = 0; t < catalogue.tensors().size(); ++t) {
    if (catalogue[int(t)].kind != TensorKind::weight_gradient || checks[t].elements < 256) continue;
    ++judged;
    exact = exact && checks[t].error == 0;
  }
  if (judged == 0) return std::nullopt;
  Check check{.part = part, .tensor = "reference is independent", .module = "", .kind = CheckKind::count};
  check.error = exact ? 1 : 0;
  check.frobenius = check.ratio = check.power = std::numeric_limits<double>::quiet_NaN();
  check.elements = judged;
  if (!exact) return check;
  check.verdict = Verdict::unverified;
  check.note = "every gradient equals the reference's to the last bit although they are summed in different orders";
  return check;
}

/// The first failing module: tensors of step 1 before later steps, forward before backward before the update.
void name_first_divergence(Verification& result) {
  auto const stage = [](Check const& c) { return c.kind == CheckKind::count ? 2 : c.kind == CheckKind::bitwise ? 1 : 0; };
  Check const* first = nullptr;
  for (Check const& check : result.checks) {
    if (check.verdict != Verdict::failed) continue;
    if (first == nullptr || std::pair(stage(check), check.order) < std::pair(stage(*first), first->order)) first = &check;
  }
  if (first == nullptr) return;
  result.first_divergence = fmt::format("{}: {} ({})", first->module, first->tensor, first->part);
  result.fingerprint = first->note;
}

class Proving {
 public:
  Proving(VerifyRequest const& request, Communicator& world)
      : request_(request),
        world_(world),
        ranks_(world),
        reference_job_(request.make_job(DType::f64)),
        proof_(check(reference_job_.schedule, reference_job_.model->shapes())),
        catalogue_(reference_job_, request.scope),
        optimizer_(make_reference_backend()) {}

  Verification run() {
    Verification result;
    result.strategy = request_.strategy;
    result.dtype = request_.dtype;
    result.steps = request_.steps;
    result.ranks = world_.size();
    result.reference_backend = request_.reference_backend()->name();
    Job const twin = twin_of(reference_job_, Products::whole);
    bool const gate = request_.scope == Scope::full || request_.dtype == DType::f64;
    std::array<DType, 2> const types{request_.dtype, gate ? DType::f64 : request_.dtype};
    envelope_ = make_envelope({twin, catalogue_, request_.reference_backend, request_.beat, types}, ranks_);
    if (gate && request_.dtype != DType::f64) prove(DType::f64, "fp64 gate", 1, result);
    prove(request_.dtype, request_.dtype == DType::f64 ? "fp64 gate" : std::string(name(request_.dtype)),
          std::max<std::int64_t>(1, request_.steps), result);
    for (Check const& c : result.checks) result.verdict = worse(result.verdict, c.verdict);
    name_first_divergence(result);
    return result;
  }

 private:
  static Job twin_of(Job const& job, Products products) {
    Job twin = serial_twin(job, products);
    twin.prefetch = 0;
    return twin;
  }

  void prove(DType dtype, std::string const& part, std::int64_t steps, Verification& result) {
    Job const job = request_.make_job(dtype);
    auto const ops = request_.candidate_backend(dtype);
    result.candidate_backend = ops->name();
    Candidate candidate({.part = part,
                         .job = job,
                         .dtype = dtype,
                         .steps = steps,
                         .ops = *ops,
                         .world = world_,
                         .catalogue = catalogue_,
                         .envelope = envelope_,
                         .optimizer = *optimizer_,
                         .faults = request_.candidate_hooks ? request_.candidate_hooks() : std::vector<std::unique_ptr<Hook>>{},
                         .beat = request_.beat});
    auto const add = [&](std::vector<Check> checks) { std::move(checks.begin(), checks.end(), std::back_inserter(result.checks)); };
    std::vector<Check> bounded = conclude(candidate.comparison(), ranks_);
    if (dtype == DType::f64 && ops->name() != result.reference_backend)
      if (auto independence = check_independence(bounded, catalogue_, part)) bounded.push_back(std::move(*independence));
    add(std::move(bounded));
    if (dtype != request_.dtype) return;
    std::string const word(name(dtype));
    if (request_.steps > 0) {
      expect(job.reduction == Reduction::fixed_tree, "bit equality needs a fixed order of reduction");
      add(compare_bitwise(
          {word + " bitwise", twin_of(job, Products::as_parts), request_.candidate_backend, dtype, catalogue_, request_.beat}, candidate,
          ranks_));
    }
    add(check_costs(word + " cost", candidate, proof_, request_.traffic, ranks_));
  }

  VerifyRequest const& request_;
  Communicator& world_;
  Assembly ranks_;
  Job reference_job_;
  Proof proof_;
  Catalogue catalogue_;
  std::unique_ptr<Backend> optimizer_;
  Envelope envelope_;
};

}  // namespace

Verification verify(VerifyRequest const& request, Communicator& world) {
  auto const begin = std::chrono::steady_clock::now();
  Verification result = Proving(request, world).run();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace shardmark
