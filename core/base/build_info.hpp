#pragma once
// What this program was built from, for --version and records.

#include <string>
#include <string_view>

namespace shardmark {

struct BuildInfo {
  std::string_view version;     // of the project
  std::string_view commit;      // full hash, "-dirty" behind it when tracked files were changed; "unknown" outside a repository
  std::string_view compiler;    // name and version
  std::string_view flags;       // as given to the compiler for optimised code, warnings left out
  std::string_view build_type;  // Release, Debug, ...
  std::string_view sanitizer;   // address, thread or empty
};

BuildInfo const& build_info();

/// The text of --version, up to the libraries: one "name  value" a line. The application adds what the libraries say of themselves.
std::string version_text(std::string_view program);

}  // namespace shardmark
