#include <cmath>
#include <nlohmann/json.hpp>

#include "verify/verification.hpp"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

/// NaN and infinity have no JSON: null, and the check's note says why.
Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }
Json text(std::string const& s) { return s.empty() ? Json(nullptr) : Json(s); }

Json to_json(Check const& c) {
  Json out;
  out["part"] = c.part;
  out["tensor"] = c.tensor;
  out["module"] = text(c.module);
  out["kind"] = name(c.kind);
  out["elements"] = c.elements;
  out["error"] = number(c.error);
  out["frobenius_error"] = number(c.frobenius);
  out["bound"] = number(c.bound);
  out["ratio"] = number(c.ratio);
  out["power"] = c.kind == CheckKind::bounded ? number(c.power) : Json(nullptr);
  out["index"] = c.index >= 0 ? Json(c.index) : Json(nullptr);
  out["rank"] = c.rank >= 0 ? Json(c.rank) : Json(nullptr);
  out["verdict"] = name(c.verdict);
  std::string reason = c.note;
  if (reason.empty() && !std::isfinite(c.error)) reason = "not finite";
  out["note"] = text(reason);
  return out;
}

}  // namespace

std::string to_json(Verification const& r, std::vector<std::pair<std::string, std::string>> const& environment) {
  Json out;
  out["verdict"] = name(r.verdict);
  out["strategy"] = r.strategy;
  out["dtype"] = name(r.dtype);
  out["steps"] = r.steps;
  out["ranks"] = r.ranks;
  out["reference"] = r.reference_backend + " fp64";
  out["candidate_backend"] = r.candidate_backend;
  out["checks"] = Json::array();
  for (Check const& c : r.checks) out["checks"].push_back(to_json(c));
  out["first_divergence"] = text(r.first_divergence);
  out["fingerprint"] = text(r.fingerprint);
  out["seconds"] = r.seconds;
  out["environment"] = Json::object();
  for (auto const& [key, value] : environment) out["environment"][key] = value;
  return out.dump();  // one line: files hold one result a line
}

}  // namespace shardmark
