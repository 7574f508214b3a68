#include "app/data_request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/nearest.hpp"

namespace shardmark {
namespace {

struct KindName {
  DataKind kind;
  std::string_view word;
};
constexpr KindName kinds[] = {{DataKind::synthetic, "synthetic"},
                              {DataKind::text, "text"},
                              {DataKind::tokens, "tokens"},
                              {DataKind::idx, "idx"},
                              {DataKind::cifar10, "cifar10"}};

/// Cuts "IMAGES,LABELS" at its comma.
void take_labels(DataRequest& request, std::string const& origin) {
  std::size_t const comma = request.path.find(',');
  bool const one_comma = comma != std::string::npos && comma == request.path.rfind(',');
  require_input(one_comma && comma > 0 && comma + 1 < request.path.size(),
                {fmt::format("{} idx:{}", origin, printable(request.path)), "two files with one comma between them are expected",
                 "give idx:IMAGES,LABELS"});
  request.labels = request.path.substr(comma + 1);
  request.path.resize(comma);
}

}  // namespace

std::string_view name(DataKind kind) {
  auto const at = std::find_if(std::begin(kinds), std::end(kinds), [=](KindName const& k) { return k.kind == kind; });
  invariant(at != std::end(kinds), "every kind of data has a name");
  return at->word;
}

DataRequest parse_data(std::string const& data, std::string const& origin) {
  std::size_t const colon = std::min(data.find(':'), data.size());
  std::string_view const word = std::string_view(data).substr(0, colon);
  auto const at = std::find_if(std::begin(kinds), std::end(kinds), [=](KindName const& k) { return k.word == word; });
  bool const names_files = at != std::end(kinds) && at->kind != DataKind::synthetic;
  bool const complete = names_files ? colon + 1 < data.size() : colon == data.size();
  require_input(at != std::end(kinds) && complete,
                {fmt::format("{} {}", origin, printable(data)), "not a kind of data", fmt::format("use {}", data_forms)});
  DataRequest request{at->kind, names_files ? data.substr(colon + 1) : "", ""};
  if (request.kind == DataKind::idx) take_labels(request, origin);
  return request;
}

std::vector<ModelKind> models_for(DataKind kind) {
  switch (kind) {
    case DataKind::synthetic:
      return {ModelKind::mlp, ModelKind::convnet, ModelKind::gpt};
    case DataKind::text:
    case DataKind::tokens:
      return {ModelKind::gpt};
    case DataKind::idx:
    case DataKind::cifar10:
      return {ModelKind::mlp, ModelKind::convnet};
  }
  return {};
}

bool is_cut_by_share(DataKind kind) { return kind != DataKind::synthetic && kind != DataKind::cifar10; }

}  // namespace shardmark
