#include "app/main.hpp"
#include "strategies/ddp/ddp.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_ddp(), argc, argv); }
