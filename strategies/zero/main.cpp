#include "app/main.hpp"
#include "strategies/zero/zero.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_zero(), argc, argv); }
