#include <fmt/format.h>

#include <algorithm>

#include "base/mutant.hpp"
#include "data/sha256.hpp"
#include "data/utf8.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/layout.hpp"
#include "run/checkpoint/strict_json.hpp"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t digits = 64;  // of a SHA-256
constexpr std::array<char const*, 3> summed{layout::model_file, layout::optimizer_file, layout::state_file};

std::string_view text_of(MappedFile const& file) { return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()}; }

/// Exactly what save() writes: a line `SUM  FILE` for each file.
std::vector<std::pair<std::string, std::string>> read_sums(fs::path const& path) {
  MappedFile const file(path);
  std::string_view rest = text_of(file);
  std::vector<std::pair<std::string, std::string>> out;
  for (char const* name : summed) {
    std::string const tail = fmt::format("  {}\n", name);
    bool const good = rest.size() >= digits + tail.size() && rest.substr(digits).starts_with(tail);
    if (!good) refuse_content(path, shown(std::string(rest.substr(0, digits + tail.size()))), fmt::format("the sum of {}", name));
    out.emplace_back(name, rest.substr(0, digits));
    rest.remove_prefix(digits + tail.size());
  }
  if (!rest.empty()) refuse_content(path, fmt::format("{} bytes behind the sums", rest.size()), "none");
  return out;
}

void require_sum(fs::path const& path, std::string const& found, std::string const& expected) {
  if (found != expected) refuse_content(path, fmt::format("SHA-256 {}", found), expected);
}

void load_tensors(SafetensorsFile const& file, std::vector<StoredTensor> const& tensors, std::vector<NamedPiece> const& pieces) {
  file.require(tensors);
  for (NamedPiece const& piece : pieces) file.read(piece.name, piece.slice, {piece.view.data, piece.view.bytes()});
}

}  // namespace

std::optional<std::string> difference(Fingerprint const& saved, Fingerprint const& mine) {
  auto const value_in = [](Fingerprint const& fingerprint, std::string const& name) {
    auto const found = std::find_if(fingerprint.begin(), fingerprint.end(), [&](Agreed const& agreed) { return agreed.name == name; });
    return found == fingerprint.end() ? std::string("not given") : found->value;
  };
  auto const text = [&](std::string const& name) {
    return fmt::format("its {} is {}, this run's is {}", name, value_in(saved, name), value_in(mine, name));
  };
  for (Agreed const& agreed : mine)
    if (value_in(saved, agreed.name) != agreed.value) return text(agreed.name);
  for (Agreed const& agreed : saved)
    if (value_in(mine, agreed.name) != agreed.value) return text(agreed.name);
  return std::nullopt;
}

Checkpoint::Checkpoint(fs::path const& folder) {
  if (!fs::exists(folder)) refuse_file(folder, "No such file or directory", "check the path in --resume");
  auto const newest = layout::newest(folder);
  if (!newest && layout::updates_of(fs::canonical(folder).filename().native()))
    refuse_file(folder, "it is one checkpoint, not the folder that holds them", "give its parent to --resume");
  if (!newest) refuse_file(folder, "it holds no complete checkpoint", "remove it and start without --resume");
  path_ = *newest;
  sums_ = read_sums(path_ / layout::sums_file);
  fs::path const state = path_ / layout::state_file;
  MappedFile const file(state);
  require_sum(state, sha256_hex(file.bytes()), sums_.back().second);
  auto const [read, sizes] = layout::from_json(text_of(file), state);
  state_ = read;
  if (layout::name_of(state_.updates) != path_.filename())
    refuse_content(state, fmt::format("updates {}", state_.updates), fmt::format("the {} of its folder's name", path_.filename().native()));
  for (auto const& [name, bytes] : sizes) {
    if (std::find(summed.begin(), summed.end(), name) == summed.end())
      refuse_content(state, fmt::format("bytes of {}", shown(name)), "none");
    std::int64_t const found = File(path_ / name).size();
    if (found != bytes) refuse_content(path_ / name, fmt::format("{} bytes", found), fmt::format("{}", bytes));
  }
}

std::string Checkpoint::text() const { return escape_invalid_utf8(path_.native()); }

void Checkpoint::require_intact(Model const& model, OptimizerSettings const& optimizer) const {
  for (auto const& [name, sum] : sums_) require_sum(path_ / name, layout::sum_of(path_ / name, [] {}), sum);
  StoredState const stored = stored_state(model, optimizer);
  SafetensorsFile(path_ / layout::model_file).require(stored.weights);
  SafetensorsFile(path_ / layout::optimizer_file).require(stored.moments);
}

void Checkpoint::load(Program& program) const {
  expect(program.parts().updates_before == state_.updates, "a program that stands where the checkpoint does");
  StoredState const stored = stored_state(program.parts().model, program.parts().optimizer);
  HeldState const held = held_state(program);
  program.stream().synchronize();
  load_tensors(SafetensorsFile(path_ / layout::model_file), stored.weights, held.weights);
  if (!mutant("resume_without_moments")) load_tensors(SafetensorsFile(path_ / layout::optimizer_file), stored.moments, held.moments);
  refresh_compute_weights(program);
}

}  // namespace shardmark
