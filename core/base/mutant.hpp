#pragma once
// Faults on purpose, to prove that checks can fail. Compiled only into the mutant build of the core, which only tests link;
// in every other build `mutant(...)` is the constant false.
//
// One is chosen at run time, by choose_mutant() or the environment variable SHARDMARK_MUTANT. validation/mutants lists all of them
// with the check that must kill each.

#include <string>
#include <string_view>

namespace shardmark {

#ifdef SHARDMARK_WITH_MUTANTS
/// True when the fault `name` was chosen.
bool mutant(std::string_view name);
void choose_mutant(std::string name);
inline constexpr bool mutants_built = true;
#else
constexpr bool mutant(std::string_view) { return false; }
inline constexpr bool mutants_built = false;
#endif

}  // namespace shardmark
