#pragma once
// Words in messages: did you mean ...?

#include <span>
#include <string>
#include <string_view>

namespace shardmark {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate closest to `word`; empty when none is close (more than a third of its letters, at least two, differ).
std::string nearest(std::string_view word, std::span<std::string const> candidates);

/// "did you mean X?" or nothing: the remedy of an unknown name.
std::string did_you_mean(std::string_view word, std::span<std::string const> candidates);

/// `word` between quotation marks for a message: control characters and bytes outside ASCII escaped, long words cut.
std::string printable(std::string_view word);

}  // namespace shardmark
