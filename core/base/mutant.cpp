#include "base/mutant.hpp"

#include <cstdlib>

namespace shardmark {
#ifdef SHARDMARK_WITH_MUTANTS
namespace {
std::string& chosen() {
  static std::string name = [] {
    char const* text = std::getenv("SHARDMARK_MUTANT");
    return std::string(text == nullptr ? "" : text);
  }();
  return name;
}
}  // namespace

bool mutant(std::string_view name) { return chosen() == name; }
void choose_mutant(std::string name) { chosen() = std::move(name); }
#endif
}  // namespace shardmark
