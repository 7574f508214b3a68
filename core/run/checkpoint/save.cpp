#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/durable.hpp"
#include "data/utf8.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/layout.hpp"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

std::string text_of(fs::path const& path) { return escape_invalid_utf8(path.native()); }

[[noreturn]] void fail(fs::path const& path, int error) {
  throw RankFailure(fmt::format("can't write {} ({})", text_of(path), std::strerror(error)));
}

void write_text(fs::path const& path, std::string_view text) {
  Descriptor const file(path.native(), O_WRONLY | O_CREAT | O_EXCL);
  if (file < 0) fail(path, errno);
  int error = write_all(file, text);
  if (error == 0) error = sync_file(file);
  if (error != 0) fail(path, error);
}

void write_tensors(fs::path const& path, std::vector<StoredTensor> const& tensors, std::vector<NamedPiece> const& pieces,
                   std::function<void()> const& beat) {
  SafetensorsWriter writer(path, tensors, {{"format", "pt"}});  // readers of PyTorch's weights look for this word
  for (NamedPiece const& piece : pieces) {
    writer.write(piece.name, piece.slice, {piece.view.data, piece.view.bytes()});
    beat();
  }
  writer.finish();
}

}  // namespace

void CheckpointFolder::require_new(fs::path const& path) {
  if (!fs::exists(fs::symlink_status(path))) return;
  auto const newest = layout::newest(path);
  fail_input({fmt::format("--save {} exists", text_of(path)),
              newest ? fmt::format("it holds a checkpoint, {}", text_of(newest->filename())) : "nothing is ever written over",
              newest ? fmt::format("add --resume {} to go on from it, or give --save a new name", text_of(path))
                     : "give --save a new name or remove it"});
}

CheckpointFolder::CheckpointFolder(fs::path path, Existing existing) : path_(std::move(path)) {
  if (existing == Existing::refuse) require_new(path_);
  std::error_code error;
  fs::create_directories(path_, error);
  require_input(!error,
                {fmt::format("can't make the folder {}", text_of(path_)), error.message(), "give --save a place that you may write to"});
}

std::int64_t CheckpointFolder::save(CheckpointState const& state, Program& program, HeldState const& held,
                                    std::function<void()> const& beat) {
  std::string const name = layout::name_of(state.updates);
  fs::path const part = path_ / layout::unfinished(name), whole = path_ / name;
  try {
    fs::remove_all(part);
    fs::create_directory(part);
    write(part, state, program, held, beat);
    if (int const error = sync_folder(part.native())) fail(part, error);
    std::int64_t bytes = 0;
    for (auto const& entry : fs::directory_iterator(part)) bytes += std::int64_t(entry.file_size());
    fs::rename(part, whole);
    if (int const error = sync_folder(path_.native())) fail(path_, error);
    retire(name);
    return bytes;
  } catch (std::exception const& error) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    auto const newest = layout::newest(path_);
    throw RankFailure(fmt::format("no checkpoint of update {}: {}; {}", state.updates, error.what(),
                                  newest ? fmt::format("{} is intact", text_of(*newest)) : "there is no earlier one"));
  }
}

void CheckpointFolder::write(fs::path const& part, CheckpointState const& state, Program& program, HeldState const& held,
                             std::function<void()> const& beat) {
  program.stream().synchronize();
  StoredState const stored = stored_state(program.parts().model, program.parts().optimizer);
  write_tensors(part / layout::model_file, stored.weights, held.weights, beat);
  write_tensors(part / layout::optimizer_file, stored.moments, held.moments, beat);
  layout::Sizes sizes;
  for (char const* file : {layout::model_file, layout::optimizer_file}) sizes.emplace_back(file, std::int64_t(fs::file_size(part / file)));
  write_text(part / layout::state_file, layout::to_json(state, sizes));
  std::string sums;
  for (char const* file : {layout::model_file, layout::optimizer_file, layout::state_file})
    sums += fmt::format("{}  {}\n", layout::sum_of(part / file, beat), file);
  write_text(part / layout::sums_file, sums);
}

/// Removes older checkpoints and what killed runs left. Renamed first: a folder called update-N is complete at every moment. What can't
/// be removed is in nobody's way.
void CheckpointFolder::retire(std::string const& newest) {
  std::error_code ignored;
  std::vector<std::string> names;
  for (auto const& entry : fs::directory_iterator(path_, ignored)) names.push_back(entry.path().filename().native());
  for (std::string const& name : names) {
    if (!layout::updates_of(name) || name == newest) continue;
    fs::rename(path_ / name, path_ / layout::unfinished(name), ignored);
  }
  for (std::string const& name : names) {
    bool const part = name.starts_with('.') && name.ends_with(".part") && layout::updates_of(name.substr(1, name.size() - 6));
    if (part) fs::remove_all(path_ / name, ignored);
    if (layout::updates_of(name) && name != newest) fs::remove_all(path_ / layout::unfinished(name), ignored);
  }
}

}  // namespace shardmark
