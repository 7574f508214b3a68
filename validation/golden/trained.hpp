#pragma once
// The same runs by the executor.

#include "validation/golden/golden_file.hpp"

namespace shardmark::golden {

/// Which of the executor's ways a run takes.
struct Way {
  std::string name;
  std::unique_ptr<Backend> (*backend)();
  int replicas = 1;  // thread ranks
};
std::span<Way const> ways();

struct Trained {
  Scalars scalars;
  Tensors tensors;
};
/// What each rank came to.
std::vector<Trained> train(Case const& c, Rule rule, Way const& way);

}  // namespace shardmark::golden
