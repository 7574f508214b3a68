#include "model/layer.hpp"

#include <algorithm>
#include <utility>

namespace shardmark {

void Stash::drop(Until done) {
  for (auto& [tensor, until] : slots_)
    if (done == Until::weight || until == Until::input) tensor = {};
}

std::vector<BlockShape> Model::shapes() const {
  std::vector<BlockShape> out;
  for (Block const& block : blocks) {
    BlockShape shape{.name = block.name, .produces = block.produces, .elements = {}};
    for (Segment s : block.produces) shape.elements.push_back(spec[s.unit].elements);
    shape.boundary_elements = 1;
    for (auto d : block.boundary) shape.boundary_elements *= d;
    shape.forward_cost = block.forward_flops;
    shape.input_cost = block.forward_flops;
    shape.weight_cost = block.forward_flops;
    shape.selective_cost = block.selective_flops;
    out.push_back(std::move(shape));
  }
  return out;
}

std::vector<Segment> Model::backward_order(int first, int last) const {
  std::vector<Segment> out;
  for (int b = last - 1; b >= first; --b)
    for (Segment s : blocks[std::size_t(b)].produces)
      if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
  return out;
}

std::vector<UnitId> Model::units_of(int first, int last) const {
  std::vector<UnitId> out;
  for (int b = first; b < last; ++b)
    for (UnitId u : blocks[std::size_t(b)].reads)
      if (std::find(out.begin(), out.end(), u) == out.end()) out.push_back(u);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace shardmark
