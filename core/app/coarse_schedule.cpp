#include "app/coarse_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "app/nearest.hpp"
#include "app/strategy.hpp"
#include "schedule/check.hpp"
#include "schedule/text.hpp"

namespace shardmark {
namespace {

constexpr std::size_t longest_schedule_bytes = 64 << 20;

std::string shown(Options const& options) { return fmt::format("--schedule {}", printable(options.schedule_file)); }

void require_lanes(Options const& options, Schedule const& written, int ranks) {
  int const lanes = int(written.lanes.size());
  require_input(lanes == ranks, {fmt::format("{} has {} lanes, for {} ranks", shown(options), lanes, ranks), "each lane is a rank",
                                 fmt::format("use {} ranks", lanes)});
  for (int lane = 0; lane < lanes; ++lane)
    require_input(std::count(written.lane_of_chunk.begin(), written.lane_of_chunk.end(), lane) > 0,
                  {fmt::format("{} gives lane {} no chunk", shown(options), lane), "a rank without blocks has nothing to do",
                   "name it in the line 'chunks'"});
}

/// What the executor and the serial twin count on.
void require_shape_of(Options const& options, Schedule const& written, Schedule const& own) {
  auto const require_equal = [&](int found, int expected, char const* line, char const* remedy) {
    require_input(
        found == expected,
        {fmt::format("{} has {} {}, expected {}", shown(options), line, found, expected),
         fmt::format("{} with --mode {} and --microbatches {} needs it", options.program, name(options.mode), options.micros), remedy});
  };
  require_equal(written.micros_per_window, own.micros_per_window, "micros", "change the line, --microbatches or --mode");
  require_equal(written.versions_per_window, own.versions_per_window, "updates", "change the line 'updates'");
  require_equal(written.leaves.outer, own.leaves.outer, "groups of leaves", "leave the line 'leaves' out");
  require_equal(written.leaves.inner, own.leaves.inner, "leaves in a group", "leave the line 'leaves' out");
  require_input(written.weights == own.weights,
                {fmt::format("{} has weights {}", shown(options), name(written.weights)),
                 fmt::format("--mode {} has weights {}", name(options.mode), name(own.weights)), "change the line, or --mode"});
  require_input(options.mode == PipelineMode::flush || written.lane_of_chunk == own.lane_of_chunk,
                {fmt::format("{} has other chunks than one a lane in order", shown(options)),
                 fmt::format("--mode {} says of stages how far their weights lag", name(options.mode)), "use --mode flush"});
  require_input(options.mode != PipelineMode::flush || written.synchronous(),
                {fmt::format("{} has a prologue or an epilogue", shown(options)), "a schedule that never drains updates with older weights",
                 options.offers("mode") ? "use --mode stash, vertical or 2bw" : "run it by pipedream with --mode stash, vertical or 2bw"});
  require_input(written.decisions == own.decisions,
                {fmt::format("{} has decisions {}", shown(options), name(written.decisions)),
                 fmt::format("--mode {} with --clip-norm {} {} tied embeddings has decisions {}", name(options.mode), options.clip_norm,
                             options.tied_embeddings ? "and" : "and no", name(own.decisions)),
                 fmt::format("write the line 'decisions {}'", name(own.decisions))});
}

/// No recomputation, and each forward of update u reads version max(0, u - lag of its chunk).
void require_versions(Options const& options, Schedule const& written, Lag const& lag) {
  int const windows = int(written.lanes.size()) + 2;
  auto const require_action = [&](Action const& action) {
    require_input(action.what != Do::recompute, {fmt::format("{}: {}", shown(options), to_string(action)),
                                                 "recomputation is inserted by the program", "remove it, and use --recompute"});
    if (action.what != Do::forward || lag.of_chunk.empty()) return;
    int const behind = lag.of_chunk[std::size_t(action.chunk.v)];
    int const expected = std::max(0, action.micro.v / written.micros_per_update() - behind);
    require_input(action.version.v == expected,
                  {fmt::format("{}: {}", shown(options), to_string(action)),
                   fmt::format("with --mode {} this forward reads version {}", name(options.mode), expected), "change it, or --mode"});
  };
  for (Lane const& lane : written.lanes) {
    for (Action const& action : lane.prologue) require_action(shifted(action, written, 0));
    for (int window = 0; window < windows; ++window)
      for (Action const& action : lane.body) require_action(shifted(action, written, window));
    for (Action const& action : lane.epilogue) require_action(shifted(action, written, windows));
  }
}

}  // namespace

Schedule read_schedule(std::string const& file) {
  std::string const origin = fmt::format("--schedule {}", printable(file));
  require_input(!std::filesystem::is_directory(file), {origin, "it is a folder", ""});
  std::ifstream stream(file, std::ios::binary);
  require_input(stream.good(), {fmt::format("{} can't be read", origin), std::strerror(errno), ""});
  std::string text;
  std::string piece(std::size_t(1) << 16, '\0');
  while (stream.read(piece.data(), std::streamsize(piece.size())) || stream.gcount() > 0) {
    text.append(piece, 0, std::size_t(stream.gcount()));
    require_input(
        text.size() <= longest_schedule_bytes,
        {fmt::format("{} is too long", origin), fmt::format("it has more than {} bytes", longest_schedule_bytes), "is it the right file?"});
  }
  return parse_schedule(text, origin);
}

Schedule coarse_schedule(Strategy const& strategy, Options const& options, int ranks) {
  Schedule own = strategy.plan(options, ranks);
  if (!options.written) return own;
  Schedule const& written = *options.written;
  require_lanes(options, written, ranks);
  require_shape_of(options, written, own);
  try {
    check(written, {});
  } catch (BadSchedule const& problem) {
    fail_input({fmt::format("{}: {}", shown(options), problem.what()), "", ""});
  }
  require_versions(options, written, strategy.lag(options, ranks));
  return written;
}

}  // namespace shardmark
