#pragma once
// What --data asks for.

#include <string>
#include <string_view>
#include <vector>

#include "app/options.hpp"

namespace shardmark {

enum class DataKind : std::uint8_t { synthetic, text, tokens, idx, cifar10 };
std::string_view name(DataKind kind);

struct DataRequest {
  DataKind kind = DataKind::synthetic;
  std::string path;    // empty for synthetic
  std::string labels;  // of idx: the second file
};

/// How --data is written, for --help and messages.
inline constexpr char const* data_forms = "synthetic|text:PATH|tokens:FILE|idx:IMAGES,LABELS|cifar10:DIR";

/// @param origin the option as the user gave it, for the message
/// @throws BadRequest: not one of data_forms
DataRequest parse_data(std::string const& data, std::string const& origin);

/// The models that learn from this kind.
std::vector<ModelKind> models_for(DataKind kind);
/// --held-out cuts off a share of it; synthetic data have no held-out part, CIFAR-10 comes with one.
bool is_cut_by_share(DataKind kind);

}  // namespace shardmark
