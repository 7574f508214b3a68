#include "app/main.hpp"
#include "strategies/dp/dp.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_dp(), argc, argv); }
