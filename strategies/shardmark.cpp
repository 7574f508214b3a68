// The program above the strategies.

#include "app/compare.hpp"
#include "strategies/ddp/ddp.hpp"
#include "strategies/dp/dp.hpp"
#include "strategies/gpipe/gpipe.hpp"
#include "strategies/model_parallel/model_parallel.hpp"
#include "strategies/pipedream/pipedream.hpp"
#include "strategies/serial/serial.hpp"
#include "strategies/tensor_parallel/tensor_parallel.hpp"

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<shardmark::Strategy>> strategies;
  strategies.push_back(shardmark::make_serial());
  strategies.push_back(shardmark::make_ddp());
  strategies.push_back(shardmark::make_dp());
  strategies.push_back(shardmark::make_model_parallel());
  strategies.push_back(shardmark::make_gpipe());
  strategies.push_back(shardmark::make_pipedream());
  strategies.push_back(shardmark::make_tensor_parallel());
  return shardmark::run_shardmark(strategies, *strategies[1], argc, argv);
}
