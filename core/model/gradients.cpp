#include "model/gradients.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace shardmark {
namespace {

/// Under Fold::loop a node of the tree is a whole replica; under Fold::tree it is one leaf, and what is inside decides the groups.
SumShape tree_shape(SumOrder sum, SumShape leaves) {
  if (sum.micros == Fold::loop) return {1, leaves.outer};
  return sum.inside == Inside::micros ? leaves : SumShape{leaves.inner, leaves.outer};
}

}  // namespace

Gradients::Gradients(ModelSpec const& spec, std::vector<Segment> const& order, SumOrder sum, SumShape leaves, DType dtype, Shards shards,
                     Arena& arena, Backend& ops, Stream& stream)
    : sum_(sum), leaves_(leaves), dtype_(dtype), shards_(shards), arena_(arena), ops_(ops), order_(order) {
  expect(sum.inside == Inside::micros || sum.micros == Fold::tree, "leaves that are summed over replicas first have buffers of their own");
  std::int64_t offset = 0;
  for (Segment segment : order) {
    Entry entry;
    entry.offset = offset;
    entry.elements = spec[segment.unit].elements;
    entry.stored = shards.cut_gradients() ? shards.piece(entry.elements) : shards.padded(entry.elements);
    entry.tree = CanonicalTree(tree_shape(sum, leaves));
    entry.partial.reserve(64);
    entry.folded.assign(std::size_t(tree_shape(sum, leaves).leaves()), 0);
    offset += entry.stored;
    entries_.push_back(std::move(entry));
  }
  slab_ = arena.make(dtype, {offset}, Book::gradients, stream);
  ops.run(stream, Fill{slab_.view, 0});  // the padding stays zero
  if (!shards.cut_gradients())
    for (Entry& entry : entries_) entry.current = buffer(entry, 0);
  open_ = slab_;
}

std::size_t Gradients::index(Segment segment) const {
  auto const at = std::find(order_.begin(), order_.end(), segment);
  expect(at != order_.end(), "this rank holds no gradient of that unit and slot");
  return std::size_t(at - order_.begin());
}

/// Leaves are numbered by replica, then by micro-batch; nodes in the order of the tree.
int Gradients::node_of(int leaf) const {
  int const replica = leaf / leaves_.inner, micro = leaf % leaves_.inner;
  if (sum_.micros == Fold::loop) return replica;
  return sum_.inside == Inside::micros ? leaf : micro * leaves_.outer + replica;
}

bool Gradients::first_of_node(Entry const& entry, int leaf) const {
  return sum_.micros == Fold::tree || entry.folded[std::size_t(node_of(leaf))] == 0;
}

View Gradients::buffer(Entry const& entry, int node) const {
  return slice(storage(entry, node).view, 0, 0, shards_.cut_gradients() ? entry.stored : entry.elements);
}

Tensor Gradients::storage(Entry const& entry, int node) const {
  if (node == 0) return with_view(slab_, slice(slab_.view, 0, entry.offset, entry.offset + entry.stored));
  for (auto const& [lowest, tensor] : entry.partial)
    if (lowest == node) return tensor;
  invariant(false, "a partial sum has no buffer");
  return {};
}

void Gradients::begin(Segment segment, int leaf, Stream& stream) {
  Entry& e = entry(segment);
  int const node = node_of(leaf);
  bool const first = first_of_node(e, leaf);
  if (first && (node != 0 || reduces_leaves())) {
    Tensor buffer = room(e, node, stream);
    if (node != 0) e.partial.emplace_back(node, std::move(buffer));
  }
  if (shards_.cut_gradients()) {
    // What is given away is no sum yet: it is on its way.
    std::int64_t const padded = shards_.padded(e.elements);
    e.whole = arena_.make(dtype_, {padded}, Book::communication, stream);
    if (padded > e.elements) ops_.run(stream, Fill{slice(e.whole.view, 0, e.elements, padded), 0});
    e.node = node;
  }
  resume(segment, leaf);
}

/// For the sum of a node. Segments of a node that share memory give it back together, when the last of them is merged.
Tensor Gradients::room(Entry const& entry, int node, Stream& stream) {
  if (!reduces_leaves()) return arena_.make(dtype_, {entry.stored}, Book::gradients, stream);
  if (open_node_ != node) {
    open_ = {};
    open_ = node == 0 ? slab_ : arena_.make(dtype_, {slab_.view.elements()}, Book::gradients, stream);
    open_node_ = node;
  }
  return with_view(open_, slice(open_.view, 0, entry.offset, entry.offset + entry.stored));
}

void Gradients::resume(Segment segment, int leaf) {
  Entry& e = entry(segment);
  e.current = shards_.cut_gradients() ? slice(e.whole.view, 0, 0, e.elements) : buffer(e, node_of(leaf));
  e.write = first_of_node(e, leaf) ? Write::overwrite : Write::accumulate;
}

void Gradients::fold(Segment segment, int leaf, Stream& stream) {
  Entry& e = entry(segment);
  e.whole = {};
  if (sum_.micros == Fold::loop && ++e.folded[std::size_t(node_of(leaf))] < leaves_.inner) return;
  e.tree.arrive(node_of(leaf), [&](int into, int from) {
    std::array<View, 2> const in{buffer(e, into), buffer(e, from)};
    ops_.run(stream, SumTree{in, in[0]});
    if (mutant("bf16_accumulation")) {
      Tensor const narrow = arena_.make(DType::bf16, {in[0].elements()}, Book::workspace, stream);
      ops_.run(stream, Copy{in[0], narrow.view});
      ops_.run(stream, Copy{narrow.view, in[0]});
    }
    std::erase_if(e.partial, [&](auto const& p) { return p.first == from; });
  });
}

void Gradients::restart() {
  for (Entry& e : entries_) {
    invariant(e.partial.empty(), "a window ends with partial sums that were never merged");
    e.tree.reset();
    std::fill(e.folded.begin(), e.folded.end(), 0);
  }
  open_ = slab_;
  open_node_ = 0;
}

View Gradients::total(Segment segment) const {
  expect(!shards_.cut_gradients(), "a rank holds its piece of a sum, not the whole");
  return buffer(entry(segment), 0);
}

View Gradients::own(Segment segment) const {
  Entry const& e = entry(segment);
  View const piece = shards_.cut_gradients() ? buffer(e, 0) : scatter(segment).piece.view;
  return slice(piece, 0, 0, shards_.own(e.elements).size());
}

Segment Gradients::summed(UnitId unit) const {
  Segment out{unit, -1};
  for (Segment s : order_)
    if (s.unit == unit && (out.slot < 0 || s.slot < out.slot)) out = s;
  expect(out.slot >= 0, "this rank holds no gradient of that unit");
  return out;
}

Gradients::Scatter Gradients::scatter(Segment segment) const {
  Entry const& e = entry(segment);
  if (shards_.cut_gradients()) return {e.whole, storage(e, e.node)};
  Tensor const whole = storage(e, 0);
  std::int64_t const piece = shards_.piece(e.elements), begin = shards_.mine * piece;
  return {whole, with_view(whole, slice(whole.view, 0, begin, begin + piece))};  // in place
}

Tensor Gradients::range(Segment first, Segment last) const {
  Entry const& a = entry(first);
  Entry const& b = entry(last);
  expect(a.offset <= b.offset, "a bucket's segments stand in backward order");
  return with_view(open_, slice(open_.view, 0, a.offset, b.offset + b.stored));
}

}  // namespace shardmark
