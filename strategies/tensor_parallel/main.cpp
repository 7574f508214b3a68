#include "app/main.hpp"
#include "strategies/tensor_parallel/tensor_parallel.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_tensor_parallel(), argc, argv); }
