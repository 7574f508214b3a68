#include "backend/cpu/matmul_paths.hpp"

#include <fmt/format.h>

#include <ctime>
#include <map>
#include <mutex>

namespace shardmark::cpu {
namespace {

constexpr double worth_it = 1.02;

/// Entries stay where they are: a map's nodes don't move.
struct Choices {
  std::mutex mutex;
  std::map<ProductShape, MatmulChoice> by_shape;
};
Choices& choices() {
  static Choices all;
  return all;
}

}  // namespace

std::string_view name(Path path) {
  switch (path) {
    case Path::library:
      return "library";
    case Path::packed:
      return "packed";
    case Path::own:
      return "own";
  }
  return "?";
}

std::string to_string(ProductShape const& s) {
  auto const letter = [](Transpose transpose) { return transpose == Transpose::yes ? 'T' : 'N'; };
  std::string_view const operands = shardmark::name(s.operands), output = shardmark::name(s.output);
  return fmt::format("{}x{}x{} {}{} {}{}", s.m, s.n, s.k, letter(s.ta), letter(s.tb), operands,
                     s.operands == s.output ? "" : fmt::format(" to {}", output));
}

std::vector<MatmulChoice> matmul_choices() {
  std::lock_guard const lock(choices().mutex);
  std::vector<MatmulChoice> out;
  for (auto const& [shape, choice] : choices().by_shape) out.push_back(choice);
  return out;
}

MatmulChoice const* find_choice(ProductShape const& shape) {
  std::lock_guard const lock(choices().mutex);
  auto const at = choices().by_shape.find(shape);
  return at == choices().by_shape.end() ? nullptr : &at->second;
}

void choose_path(ProductShape const& shape, std::span<Path const> tried, std::array<double, paths> const& rates) {
  MatmulChoice choice{shape, tried.front(), rates};
  for (Path path : tried) {
    double const margin = choice.path == tried.front() ? worth_it : 1.0;
    if (rates[std::size_t(path)] > margin * rates[std::size_t(choice.path)]) choice.path = path;
  }
  std::lock_guard const lock(choices().mutex);
  choices().by_shape.emplace(shape, choice);
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

}  // namespace shardmark::cpu
