// The program above the strategies. The widest strategy comes last: its needs are checked before ranks start.

#include "app/compare.hpp"
#include "strategies/ddp/ddp.hpp"
#include "strategies/serial/serial.hpp"

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<shardmark::Strategy>> strategies;
  strategies.push_back(shardmark::make_serial());
  strategies.push_back(shardmark::make_ddp());
  return shardmark::run_shardmark(strategies, argc, argv);
}
