// What a user of the installed libraries writes.
#include <base/build_info.hpp>
#include <base/sums.hpp>
#include <cstdio>
#include <data/dataset.hpp>

int main() {
  auto const data = shardmark::make_synthetic_tokens(1, 3, 4, 5, shardmark::Ragged::no);
  std::printf("depth %d samples %d version %s\n", shardmark::tree_depth(8), int(data->size()), shardmark::build_info().version.data());
}
