#include "run/checkpoint/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/sha256.hpp"
#include "run/checkpoint/strict_json.hpp"

namespace shardmark::layout {
namespace {

using Json = nlohmann::json;

constexpr char const* schema = "shardmark.checkpoint/1";
constexpr int deepest = 1;
constexpr std::size_t beat_bytes = std::size_t(1) << 26;

Json const& member(Json const& json, char const* name, std::filesystem::path const& path) {
  auto const found = json.find(name);
  if (found == json.end()) refuse_content(path, fmt::format("no {}", name), fmt::format("a state of schema {}", schema));
  return *found;
}

std::int64_t count(Json const& json, std::string const& name, std::filesystem::path const& path) {
  bool const good = json.is_number_unsigned() && json.get<std::uint64_t>() <= std::uint64_t(std::numeric_limits<std::int32_t>::max());
  if (!good) refuse_content(path, fmt::format("{} {}", name, shown(json)), "a count below 2^31");
  return json.get<std::int64_t>();
}

}  // namespace

std::optional<std::filesystem::path> newest(std::filesystem::path const& folder) {
  std::optional<std::int64_t> best;
  std::error_code error;
  for (auto const& entry : std::filesystem::directory_iterator(folder, error))
    if (auto const updates = updates_of(entry.path().filename().native())) best = std::max(*updates, best.value_or(0));
  if (!best) return std::nullopt;
  return folder / name_of(*best);
}

std::string sum_of(std::filesystem::path const& file, std::function<void()> const& beat) {
  MappedFile const mapped(file);
  Sha256 sum;
  for (std::span<std::byte const> rest = mapped.bytes(); !rest.empty(); rest = rest.subspan(std::min(rest.size(), beat_bytes))) {
    sum.add(rest.first(std::min(rest.size(), beat_bytes)));
    beat();
  }
  return sum.hex();
}

std::string to_json(CheckpointState const& state, Sizes const& sizes) {
  nlohmann::ordered_json json = {{"schema", schema}, {"updates", state.updates}, {"learning_rate", state.learning_rate}};
  json["agreed"] = nlohmann::ordered_json::object();
  for (Agreed const& agreed : state.fingerprint) json["agreed"][agreed.name] = agreed.value;
  for (auto const& [file, bytes] : sizes) json["bytes"][file] = bytes;
  return json.dump(1) + "\n";
}

std::pair<CheckpointState, Sizes> from_json(std::string_view text, std::filesystem::path const& path) {
  Json const json = parse_object(text, deepest, path, "the state");
  Json const& version = member(json, "schema", path);
  if (version != schema) refuse_content(path, fmt::format("schema {}", shown(version)), schema);
  CheckpointState state;
  state.updates = count(member(json, "updates", path), "updates", path);
  Json const &rate = member(json, "learning_rate", path), &agreed = member(json, "agreed", path), &bytes = member(json, "bytes", path);
  if (!rate.is_number()) refuse_content(path, fmt::format("learning_rate {}", shown(rate)), "a number");
  state.learning_rate = rate.get<double>();
  if (!agreed.is_object() || !bytes.is_object()) refuse_content(path, "agreed or bytes that are no objects", "objects");
  for (auto const& [name, value] : agreed.items()) {
    if (!value.is_string()) refuse_content(path, fmt::format("agreed {} {}", shown(name), shown(value)), "text");
    state.fingerprint.push_back({name, value.get<std::string>()});
  }
  Sizes sizes;
  for (auto const& [file, size] : bytes.items()) {
    if (!size.is_number_unsigned()) refuse_content(path, fmt::format("bytes {} of {}", shown(size), shown(file)), "a count");
    sizes.emplace_back(file, size.get<std::int64_t>());
  }
  return {std::move(state), std::move(sizes)};
}

}  // namespace shardmark::layout
