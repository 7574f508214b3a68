#include "app/main.hpp"
#include "strategies/checkpointing/checkpointing.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_checkpointing(), argc, argv); }
