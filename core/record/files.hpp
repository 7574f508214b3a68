#pragma once
// Writing so that nothing half-written is taken for whole, even when several programs write, or one is killed, or the disk is full.

#include <string>
#include <string_view>

namespace shardmark::record {

/// Appends `line` and a line end as one piece, durably (fsync). Any number of processes may append at the same time. A line that a killed
/// writer left unfinished is closed first, so that it doesn't spoil this one. @throws Error (exit 3) when it can't, for example because the
/// disk is full; earlier lines are intact, and what was written of this one is taken back.
void append_line(std::string const& path, std::string_view line);
/// As append_line; a file that is empty or new gets `header` as its first line.
void append_line_under(std::string const& path, std::string_view header, std::string_view line);

/// Replaces the whole file: readers see the old text or the new, never a part. Durable. @throws Error (exit 3)
void replace_file(std::string const& path, std::string_view text);

/// Refuses a path that append_line couldn't write to, before any work is done. Makes the file when it is new. @throws BadRequest
void require_appendable(std::string const& path, std::string_view option);

}  // namespace shardmark::record
