#include "app/main.hpp"
#include "strategies/accumulation/accumulation.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_accumulation(), argc, argv); }
