#pragma once
// Names of files and arguments are bytes; JSON is UTF-8.

#include <string>
#include <string_view>

namespace shardmark {

/// The same text with every byte that isn't part of well-formed UTF-8 (RFC 3629) written as \xNN.
std::string escape_invalid_utf8(std::string_view bytes);

}  // namespace shardmark
