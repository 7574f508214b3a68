#include "base/error.hpp"

#include <fmt/format.h>

namespace shardmark {

std::string Refusal::text() const {
  std::string out = problem;
  if (!reason.empty()) out += fmt::format(" ({})", reason);
  if (!remedy.empty()) out += fmt::format("; {}", remedy);
  return out;
}

not_built::not_built(std::string_view what, std::string_view remedy)
    : Error(Exit::bad_request, fmt::format("{} is not built into this program; {}", what, remedy)) {}

void fail_input(Refusal const& refusal) { throw BadRequest(refusal); }

void fail_check(char const* kind, std::string_view message, CheckSite where) {
  std::string_view file = where.file;
  if (auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  throw Error(Exit::rank_failed,
              fmt::format("{} failed at {}:{}: {} (a bug in shardmark; please report it)", kind, file, where.line, message));
}

}  // namespace shardmark
