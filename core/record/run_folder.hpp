#pragma once
// The folder that every run writes by itself: record.json, log.txt and side files. Rank 0 alone has one.

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include "record/record.hpp"

namespace shardmark::record {

/// Parts of the default name, runs/<job>-<step>-<program>-<time>.
struct RunName {
  std::string job, step, program, time;
};
/// Job and step are Slurm's, or `local` and the process id.
RunName run_name(std::string const& program);

class RunFolder {
 public:
  /// Makes a new folder and what leads to it. `out` is what --out says; empty: the default name, with a number behind it when it is taken.
  /// @throws BadRequest when `out` exists, or can't be made: nothing is ever written over.
  RunFolder(std::string const& out, RunName const& name);
  RunFolder(RunFolder const&) = delete;
  RunFolder& operator=(RunFolder const&) = delete;

  std::filesystem::path const& path() const { return path_; }
  std::string file(std::string_view name) const { return (path_ / name).native(); }
  /// Adds a line to log.txt.
  void log(std::string_view line);
  /// Replaces record.json, whole or not at all; from the start it says `running`.
  void write(Record const& record);
  /// The run ends early: the record as last written, with this state, exit code and the time of now. From any thread; for watchdogs and
  /// signals. Keeps the first end it is told. @returns the record that was written, or nothing when there was none or the run had ended.
  std::optional<Record> end(State state, int exit_code);

 private:
  void replace(Record const& record);

  std::filesystem::path path_;
  std::mutex mutex_;
  std::ofstream log_;
  std::optional<Record> last_;
};

}  // namespace shardmark::record
