#pragma once
// Errors carry an exit code and say problem (reason) remedy. Four kinds of checks, all always on:
//   require_input  what a user or a file gave           -> exit 2
//   expect         a precondition of the called function -> exit 3, a bug in the caller
//   invariant      something this code believes          -> exit 3, a bug here
//   ensure         a postcondition                       -> exit 3, a bug here
// A rank that fails ends the job; nothing between two collectives catches and carries on.

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

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

/// Where a check stands: a default argument, so that it names the caller.
struct CheckSite {
  char const* file;
  int line;
};

[[noreturn]] void fail_input(Refusal const& refusal);
[[noreturn]] void fail_check(char const* kind, std::string_view message, CheckSite where);

inline void require_input(bool good, Refusal const& refusal) {
  if (!good) fail_input(refusal);
}

// A message is text, or a function that makes it when the check fails: checks in a step build nothing.
template <class Message>
void check_that(bool good, char const* kind, Message const& message, CheckSite where) {
  if (good) [[likely]]
    return;
  if constexpr (std::is_invocable_v<Message const&>)
    fail_check(kind, message(), where);
  else
    fail_check(kind, message, where);
}
template <class Message>
void expect(bool good, Message const& message, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  check_that(good, "precondition", message, {file, line});
}
template <class Message>
void invariant(bool good, Message const& message, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  check_that(good, "internal check", message, {file, line});
}
template <class Message>
void ensure(bool good, Message const& message, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  check_that(good, "postcondition", message, {file, line});
}

}  // namespace shardmark
