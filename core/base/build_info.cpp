#include "base/build_info.hpp"

#include <fmt/format.h>

#include "build_facts.hpp"  // made by cmake/BuildFacts.cmake at every build

namespace shardmark {

BuildInfo const& build_info() {
  static constexpr BuildInfo info{.version = facts::version,
                                  .commit = facts::commit,
                                  .compiler = facts::compiler,
                                  .flags = facts::flags,
                                  .build_type = facts::build_type,
                                  .sanitizer = facts::sanitizer};
  return info;
}

std::string version_text(std::string_view program) {
  BuildInfo const& info = build_info();
  std::string text = fmt::format("{} (shardmark) {}\n", program, info.version);
  text += fmt::format("commit      {}\n", info.commit);
  text += fmt::format("compiler    {}\n", info.compiler);
  text += fmt::format("flags       {}\n", info.flags);
  text += fmt::format("build type  {}\n", info.build_type);
  if (!info.sanitizer.empty()) text += fmt::format("sanitizer   {}\n", info.sanitizer);
  return text;
}

}  // namespace shardmark
