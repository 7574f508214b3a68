#pragma once

#include "app/strategy.hpp"

namespace shardmark {

std::unique_ptr<Strategy> make_tensor_parallel();

}  // namespace shardmark
