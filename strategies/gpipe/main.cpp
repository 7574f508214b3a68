#include "app/main.hpp"
#include "strategies/gpipe/gpipe.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_gpipe(), argc, argv); }
