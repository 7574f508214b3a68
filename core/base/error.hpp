#pragma once
// Errors carry an exit code and say problem (reason) remedy. Four kinds of checks, all always on:
//   require_input  what a user or a file gave           -> exit 2
//   expect         a precondition of the called function -> exit 3, a bug in the caller
//   invariant      something this code believes          -> exit 3, a bug here
//   ensure         a postcondition                       -> exit 3, a bug here
// A rank that fails ends the job; nothing between two collectives catches and carries on.

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardmark {

/// The documented exit codes of every program.
enum class Exit : int { good = 0, verification_failed = 1, bad_request = 2, rank_failed = 3, expectation_missed = 4, no_hardware = 77 };

/// Something went wrong that has a documented exit code.
class Error : public std::runtime_error {
 public:
  Error(Exit code, std::string const& message) : std::runtime_error(message), code_(code) {}
  Exit code() const noexcept { return code_; }

 private:
  Exit code_;
};

/// The request can't be served: problem (reason); remedy. Exit 2, before any rank starts work.
struct Refusal {
  std::string problem;
  std::string reason;  // may be empty
  std::string remedy;  // may be empty
  std::string text() const;
};

class BadRequest : public Error {
 public:
  explicit BadRequest(Refusal const& refusal) : Error(Exit::bad_request, refusal.text()) {}
};

/// A backend or library that this build lacks.
class not_built : public Error {
 public:
  not_built(std::string_view what, std::string_view remedy);
};

/// A rank or the network failed while running.
class RankFailure : public Error {
 public:
  explicit RankFailure(std::string const& message) : Error(Exit::rank_failed, message) {}
};

[[noreturn]] void fail_input(Refusal const& refusal);
[[noreturn]] void fail_check(char const* kind, std::string_view message, std::source_location where);

inline void require_input(bool good, Refusal const& refusal) {
  if (!good) fail_input(refusal);
}
inline void expect(bool good, std::string_view message, std::source_location where = std::source_location::current()) {
  if (!good) [[unlikely]]
    fail_check("precondition", message, where);
}
inline void invariant(bool good, std::string_view message, std::source_location where = std::source_location::current()) {
  if (!good) [[unlikely]]
    fail_check("internal check", message, where);
}
inline void ensure(bool good, std::string_view message, std::source_location where = std::source_location::current()) {
  if (!good) [[unlikely]]
    fail_check("postcondition", message, where);
}

}  // namespace shardmark
