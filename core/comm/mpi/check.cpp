#include "comm/mpi/check.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.hpp"

namespace shardmark::mpi {

void check(int code, char const* function) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw RankFailure(fmt::format("MPI failed in {}: {}", function, std::string_view(text.data(), std::size_t(length))));
}

}  // namespace shardmark::mpi
