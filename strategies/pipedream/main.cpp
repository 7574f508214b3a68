#include "app/main.hpp"
#include "strategies/pipedream/pipedream.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_pipedream(), argc, argv); }
