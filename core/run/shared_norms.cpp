#include "run/shared_norms.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace shardmark {

SharedNorms::SharedNorms(ParameterStore& store, Communicator& sharers, Tensor leaves, Backend& ops, Arena& arena, Stream& stream)
    : store_(store), sharers_(sharers), ops_(ops), stream_(stream), leaves_(std::move(leaves)) {
  std::int64_t at = 0;
  for (UnitId unit : store.held())
    for (ParamId id : store.spec()[unit].params) {
      find(unit, store.spec()[id], at);
      at += norm_leaves(store.spec()[id].elements());
    }
  if (!cut_.empty())
    raw_ = arena.make(accumulator(store.config().compute), {std::int64_t(cut_.size()), norm_leaf}, Book::workspace, stream);
}

void SharedNorms::find(UnitId unit, ParamSpec const& param, std::int64_t first_leaf) {
  for (std::int64_t leaf = 0; leaf < norm_leaves(param.elements()); ++leaf) {
    std::int64_t const begin = leaf * norm_leaf, end = std::min(begin + norm_leaf, param.elements());
    Range const where{param.offset + begin, param.offset + end};
    int const first = owner(unit, where.begin), last = owner(unit, where.end - 1);
    if (first != last) {
      cut_.push_back({unit, where, first_leaf + leaf});
    } else if (first == sharers_.rank()) {
      bool const follows = !whole_.empty() && whole_.back().unit == unit && whole_.back().where.end == where.begin && leaf > 0;
      if (follows)
        whole_.back().where.end = where.end;
      else
        whole_.push_back({unit, where, first_leaf + leaf});
    }
  }
}

int SharedNorms::owner(UnitId unit, std::int64_t element) const {
  return int(element / store_.config().shards.piece(store_.spec()[unit].elements));
}

View SharedNorms::mine(UnitId unit, Range where) const {
  Range const own = store_.own_range(unit);
  View const sum = store_.gradients().own(store_.gradients().summed(unit));
  std::int64_t const begin = std::clamp(where.begin, own.begin, own.end), end = std::clamp(where.end, begin, own.end);
  return slice(sum, 0, begin - own.begin, end - own.begin);
}

void SharedNorms::take() {
  ops_.run(stream_, Fill{leaves_.view, 0});
  for (Leaves const& w : whole_)
    ops_.run(stream_, NormLeaves{mine(w.unit, w.where), slice(leaves_.view, 0, w.first, w.first + norm_leaves(w.where.size()))});
  if (raw_) exchange_cut_leaves();
  sum(leaves_);
}

/// Sums with zeros: whatever their order, they are what one rank has.
void SharedNorms::exchange_cut_leaves() {
  ops_.run(stream_, Fill{raw_.view, 0});
  for (std::size_t i = 0; i < cut_.size(); ++i) {
    View const part = mine(cut_[i].unit, cut_[i].where);
    if (part.elements() == 0) continue;
    std::int64_t const skipped = std::max<std::int64_t>(0, store_.own_range(cut_[i].unit).begin - cut_[i].where.begin);
    ops_.run(stream_, Copy{part, slice(row(i), 0, skipped, skipped + part.elements())});
  }
  sum(raw_);
  for (std::size_t i = 0; i < cut_.size(); ++i) {
    Leaves const& c = cut_[i];
    bool const every_holder = mutant("norm_leaf_owner_twice") && mine(c.unit, c.where).elements() > 0;
    if (owner(c.unit, c.where.begin) != sharers_.rank() && !every_holder) continue;
    ops_.run(stream_, NormLeaves{slice(row(i), 0, 0, c.where.size()), slice(leaves_.view, 0, c.first, c.first + 1)});
  }
}

View SharedNorms::row(std::size_t cut_leaf) const {
  std::int64_t const at = std::int64_t(cut_leaf);
  return reshape(slice(raw_.view, 0, at, at + 1), {norm_leaf});
}

void SharedNorms::sum(Tensor const& tensor) {
  sharers_.post(stream_, Exchange{.what = Collective::all_reduce, .send = tensor, .recv = tensor, .purpose = "norms"}).wait(stream_);
}

}  // namespace shardmark
