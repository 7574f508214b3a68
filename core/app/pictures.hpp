#pragma once
// Pictures of schedules as files.

#include <optional>
#include <string>
#include <vector>

#include "metrics/trace.hpp"
#include "run/job.hpp"
#include "schedule/render.hpp"

namespace shardmark {

/// Refuses a path where something is, or that can't be written, before any work is done. @throws BadRequest
void require_new_file(std::string const& path, std::string const& option);

/// Times in ms, blocks joined to chunks.
SvgStyle picture_style(Job const& job, std::string title);

/// The first `batches` global batches after a start, as traced by rank, below their replay with `costs`; absent: as traced alone.
std::string measured_picture(Job const& job, std::vector<std::vector<TraceSpan>> const& by_rank, std::optional<Costs> const& costs,
                             int batches, std::string title);

}  // namespace shardmark
