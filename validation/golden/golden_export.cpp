// golden_export DIRECTORY: writes <case>.json for make_golden.py.

#include <cstdio>
#include <fstream>

#include "validation/golden/cases.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: golden_export DIRECTORY\n", stderr);
    return 2;
  }
  for (shardmark::golden::Case const& c : shardmark::golden::cases()) {
    std::string const path = std::string(argv[1]) + "/" + c.name + ".json";
    std::ofstream file(path, std::ios::binary);
    file << inputs_json(c);
    if (!file.flush()) {
      std::fprintf(stderr, "%s can't be written\n", path.c_str());
      return 1;
    }
  }
}
