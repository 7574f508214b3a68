#pragma once
// What a test program's exit code says. A program that ran nothing has failed; one that skipped everything is skipped.

namespace shardmark::testing {

struct Verdict {
  bool passed;
  int tests_run;  // not counting disabled and filtered ones
  int skipped;
};

/// What GoogleTest knows once RUN_ALL_TESTS has returned `code`.
Verdict local_verdict(int code);

/// 0 passed, 1 failed or nothing ran, 77 all skipped. Explains the last two on stdout.
int exit_code(Verdict verdict);

}  // namespace shardmark::testing
