#pragma once
// Names and text forms of a checkpoint's files; private to this folder.

#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/checkpoint/checkpoint.hpp"

namespace shardmark::layout {

inline constexpr char const* model_file = "model.safetensors";
inline constexpr char const* optimizer_file = "optimizer.safetensors";
inline constexpr char const* state_file = "state.json";
inline constexpr char const* sums_file = "SHA256SUMS";

inline std::string name_of(std::int64_t updates) { return "update-" + std::to_string(updates); }

/// The update of a complete checkpoint's name.
inline std::optional<std::int64_t> updates_of(std::string const& name) {
  std::int64_t updates = 0;
  std::string_view const prefix = "update-";
  if (!name.starts_with(prefix)) return std::nullopt;
  auto const [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), updates);
  return error == std::errc() && updates >= 0 && name_of(updates) == name ? std::optional(updates) : std::nullopt;
}

/// The name of what is being made, or removed.
inline std::string unfinished(std::string const& name) { return "." + name + ".part"; }

/// The newest complete checkpoint in a folder.
std::optional<std::filesystem::path> newest(std::filesystem::path const& folder);

/// SHA-256 of a file; `beat` is called now and then.
std::string sum_of(std::filesystem::path const& file, std::function<void()> const& beat);

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;  // file, bytes
std::string to_json(CheckpointState const& state, Sizes const& sizes);
/// @throws BadRequest naming `path`
std::pair<CheckpointState, Sizes> from_json(std::string_view text, std::filesystem::path const& path);

}  // namespace shardmark::layout
