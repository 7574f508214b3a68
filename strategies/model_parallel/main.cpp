#include "app/main.hpp"
#include "strategies/model_parallel/model_parallel.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_model_parallel(), argc, argv); }
