#pragma once

#include <memory>

#include "app/strategy.hpp"

namespace shardmark {

std::unique_ptr<Strategy> make_dp();

}  // namespace shardmark
