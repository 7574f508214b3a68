#include "record/run_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/error.hpp"
#include "data/utf8.hpp"
#include "record/files.hpp"
#include "record/provenance.hpp"

namespace shardmark::record {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(fs::path const& folder, std::string const& reason, std::string const& remedy) {
  fail_input({fmt::format("can't make the run folder {}", escape_invalid_utf8(folder.native())), reason, remedy});
}

/// False when something of that name exists. Exclusive: of two runs that ask for one name at once, one gets it.
bool make(fs::path const& folder) {
  std::error_code error;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  if (error) refuse(folder, error.message(), "give --out a place that you may write to");
  if (fs::create_directory(folder, error)) return true;
  // An existing folder is no error to create_directory; another kind of file is one.
  if (!error || error == std::errc::file_exists) return false;
  refuse(folder, error.message(), "give --out a place that you may write to");
}

fs::path make_default(RunName const& name) {
  std::string const base = fmt::format("{}-{}-{}-{}", name.job, name.step, name.program, name.time);
  fs::path folder = fs::path("runs") / base;
  for (int number = 2; !make(folder); ++number) folder = fs::path("runs") / fmt::format("{}-{}", base, number);
  return folder;
}

std::string variable_or(char const* name, std::string const& otherwise) {
  char const* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

RunName run_name(std::string const& program) {
  std::string time = utc_now();
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });  // 20261204T093107Z
  return {.job = variable_or("SLURM_JOB_ID", "local"),
          .step = variable_or("SLURM_STEP_ID", std::to_string(getpid())),
          .program = program,
          .time = std::move(time)};
}

RunFolder::RunFolder(std::string const& out, RunName const& name) {
  if (out.empty()) {
    path_ = make_default(name);
  } else {
    path_ = out;
    if (!path_.has_filename()) path_ = path_.parent_path();  // "folder/" is "folder"
    if (!make(path_)) refuse(path_, "it exists, and runs are never written over", "give --out a new name or remove it");
  }
  log_.open(file("log.txt"));
  if (!log_) refuse(path_, "its log.txt can't be written", "check the file system");
}

void RunFolder::log(std::string_view line) {
  std::lock_guard lock(mutex_);
  log_ << line << '\n' << std::flush;
}

void RunFolder::write(Record const& record) {
  std::lock_guard lock(mutex_);
  replace(record);
}

std::optional<Record> RunFolder::end(State state, int exit_code) {
  std::lock_guard lock(mutex_);
  if (!last_ || last_->run.state != State::running) return std::nullopt;
  Record record = *last_;
  record.run.state = state;
  record.run.exit_code = exit_code;
  record.run.ended = utc_now();
  record.unofficial = reasons_against(record);
  replace(record);
  return record;
}

void RunFolder::replace(Record const& record) {
  replace_file(file("record.json"), to_json(record) + "\n");
  last_ = record;
}

}  // namespace shardmark::record
