#pragma once
#include <string>
#include <string_view>

namespace shardmark {

/// What --version prints: the program, how it was built, and the libraries as compiled and as loaded.
std::string full_version_text(std::string_view program);
/// oneDNN as loaded, "2.6.3".
std::string onednn_version();

}  // namespace shardmark
