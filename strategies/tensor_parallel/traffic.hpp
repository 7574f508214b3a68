#pragma once

#include "app/strategy.hpp"

namespace shardmark {

/// What the layers of a model that is cut over `ranks` exchange. @param blocks of the whole model
std::vector<TrafficForm> tensor_traffic(Options const& options, std::vector<BlockShape> const& blocks, int ranks);

}  // namespace shardmark
