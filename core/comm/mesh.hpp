#pragma once
// The mesh: all ranks on named axes. Every group is made at construction, eagerly, in one order on every rank.

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"

namespace shardmark {

struct MeshShape {
  int data = 1, pipeline = 1, tensor = 1;
  int ranks() const { return data * pipeline * tensor; }
  /// Tensor coordinates vary fastest, then data, then the pipeline's.
  int stage_of(int rank) const { return rank / (data * tensor); }
};

/// Extra groups: the pipeline stages that hold one tied weight. Members are pipeline coordinates.
struct NamedGroup {
  std::string name;
  std::vector<int> stages;
};

class Mesh {
 public:
  /// Rank order: tensor fastest, then data, then pipeline. @throws BadRequest when the product isn't the world's size.
  Mesh(Communicator& world, MeshShape shape, std::vector<NamedGroup> const& named = {});
  Communicator& world() { return world_; }
  /// The ranks that differ from this one only on `axes`; a group of one when those axes have extent 1.
  Communicator& over(Axes axes);
  /// @throws Error when no group of that name has this rank as a member.
  Communicator& named(std::string_view group);
  int coordinate(Axis axis) const;
  int extent(Axis axis) const;
  MeshShape shape() const { return shape_; }

 private:
  Communicator& world_;
  MeshShape shape_;
  std::array<std::unique_ptr<Communicator>, 8> over_;  // by set of axes; 0: this rank alone
  std::vector<std::pair<std::string, std::unique_ptr<Communicator>>> named_;
};

}  // namespace shardmark
