#include "app/main.hpp"
#include "strategies/serial/serial.hpp"

int main(int argc, char** argv) { return shardmark::run_strategy(*shardmark::make_serial(), argc, argv); }
