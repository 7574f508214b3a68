#include "comm/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardmark {
namespace {

struct Place3 {
  int data, pipeline, tensor;
};

Place3 place_of(MeshShape shape, int rank) {
  return {rank / shape.tensor % shape.data, rank / (shape.tensor * shape.data), rank % shape.tensor};
}

/// Ranks get the same colour when they differ only on `axes`.
int colour_of(MeshShape shape, Place3 at, Axes axes) {
  auto const fixed = [axes](Axis axis) { return (axes & Axes(axis)) == 0; };
  int colour = fixed(Axis::pipeline) ? at.pipeline : 0;
  colour = colour * shape.data + (fixed(Axis::data) ? at.data : 0);
  return colour * shape.tensor + (fixed(Axis::tensor) ? at.tensor : 0);
}

template <class Colour>
std::vector<int> colours(MeshShape shape, Colour&& colour) {
  std::vector<int> out;
  for (int rank = 0; rank < shape.ranks(); ++rank) out.push_back(colour(place_of(shape, rank)));
  return out;
}

/// A group of the mesh: says of each exchange on which axes it is.
class OnAxes final : public Communicator {
 public:
  OnAxes(std::unique_ptr<Communicator> group, Axes axes) : group_(std::move(group)), axes_(axes) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  Request post(Stream& producer, std::span<Message const> messages) override { return group_->post(producer, messages); }
  Request post(Stream& producer, Exchange const& exchange) override {
    Exchange placed = exchange;
    placed.axes = axes_;
    return group_->post(producer, placed);
  }
  void progress() override { group_->progress(); }
  int outstanding() const override { return group_->outstanding(); }
  void abort(std::string_view reason) noexcept override { group_->abort(reason); }
  std::unique_ptr<Communicator> split(std::span<int const> colours) override { return group_->split(colours); }
  std::optional<Region> symmetric(std::size_t bytes) override { return group_->symmetric(bytes); }
  std::string_view name() const override { return group_->name(); }

 private:
  std::unique_ptr<Communicator> group_;
  Axes axes_;
};

}  // namespace

Mesh::Mesh(Communicator& world, MeshShape shape, std::vector<NamedGroup> const& named) : world_(world), shape_(shape) {
  require_input(shape.data >= 1 && shape.pipeline >= 1 && shape.tensor >= 1 && shape.ranks() == world.size(),
                {fmt::format("a mesh of {} x {} x {} ranks doesn't fit {} ranks", shape.data, shape.pipeline, shape.tensor, world.size()),
                 "data x pipeline x tensor must be the number of ranks", "change --dp, --pp or --tp, or start as many ranks"});
  for (Axes set = 0; set < over_.size(); ++set)
    over_[set] = std::make_unique<OnAxes>(world.split(colours(shape, [&](Place3 at) { return colour_of(shape, at, set); })), set);
  for (NamedGroup const& group : named) {
    auto const colour = [&](Place3 at) {
      bool const member = std::find(group.stages.begin(), group.stages.end(), at.pipeline) != group.stages.end();
      return member ? at.data * shape.tensor + at.tensor : -1;
    };
    // Absent on ranks that aren't members.
    if (auto members = world.split(colours(shape, colour)))
      named_.emplace_back(group.name, std::make_unique<OnAxes>(std::move(members), axes(Axis::pipeline)));
  }
}

Communicator& Mesh::over(Axes axes) {
  expect(axes < over_.size(), "a mesh has three axes");
  return *over_[axes];
}

Communicator& Mesh::named(std::string_view group) {
  for (auto const& [name, communicator] : named_)
    if (name == group) return *communicator;
  throw Error(Exit::rank_failed, fmt::format("this rank isn't a member of the group {}", group));
}

int Mesh::coordinate(Axis axis) const {
  Place3 const at = place_of(shape_, world_.rank());
  switch (axis) {
    case Axis::data:
      return at.data;
    case Axis::pipeline:
      return at.pipeline;
    case Axis::tensor:
      return at.tensor;
  }
  return 0;
}

int Mesh::extent(Axis axis) const {
  switch (axis) {
    case Axis::data:
      return shape_.data;
    case Axis::pipeline:
      return shape_.pipeline;
    case Axis::tensor:
      return shape_.tensor;
  }
  return 0;
}

}  // namespace shardmark
