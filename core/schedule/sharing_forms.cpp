#include "schedule/sharing_forms.hpp"

#include <map>

namespace shardmark {
namespace {

using Units = std::map<UnitId, std::int64_t>;  // padded elements

struct Total {
  std::int64_t count = 0, elements = 0;
  Total operator*(std::int64_t times) const { return {count * times, elements * times}; }
  Total operator+(Total other) const { return {count + other.count, elements + other.elements}; }
};

Total total(Units const& units) {
  Total out;
  for (auto const& [unit, elements] : units) out = out + Total{1, elements};
  return out;
}

Total common(Units const& a, Units const& b) {
  Total out;
  for (auto const& [unit, elements] : a)
    if (b.contains(unit)) out = out + Total{1, elements};
  return out;
}

/// All-gathers of Sharing::parameters: twice for each block and micro-batch, but for what the use before it has too.
Total gathers_of_uses(std::vector<Units> const& blocks, int micros) {
  Total uses, kept = common(blocks.back(), blocks.back()) * micros + common(blocks.front(), blocks.front()) * (micros - 1);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    uses = uses + total(blocks[b]) * 2 * micros;
    if (b > 0) kept = kept + common(blocks[b - 1], blocks[b]) * 2 * micros;
  }
  return uses + kept * -1;
}

}  // namespace

SharingForms sharing_forms(Sharing sharing, std::vector<BlockShape> const& blocks, int ranks, int micros) {
  auto const padded = [&](std::int64_t elements) { return (elements + ranks - 1) / ranks * ranks; };
  std::vector<Units> users;  // blocks with parameters
  Units all;
  Total segments;
  for (BlockShape const& block : blocks) {
    Units units;
    for (std::size_t i = 0; i < block.produces.size(); ++i) {
      units[block.produces[i].unit] = padded(block.elements[i]);
      segments = segments + Total{1, padded(block.elements[i])};
    }
    all.insert(units.begin(), units.end());
    if (!units.empty()) users.push_back(std::move(units));
  }
  bool const shared = sharing != Sharing::replicated, cut = sharing == Sharing::gradients || sharing == Sharing::parameters;
  Total const scattered = segments * (shared ? cut ? micros : 1 : 0);
  Total const gathered = !shared || users.empty() ? Total{} : sharing == Sharing::parameters ? gathers_of_uses(users, micros) : total(all);
  std::int64_t const whole = total(all).elements;
  SharingForms out;
  out.reductions = scattered.count;
  out.reduced = scattered.elements;
  out.gathers = gathered.count;
  out.gathered = gathered.elements;
  out.weights = sharing == Sharing::parameters ? whole / ranks : whole;
  out.updated = shared ? whole / ranks : whole;
  out.sums = cut ? segments.elements / ranks : segments.elements;
  return out;
}

}  // namespace shardmark
