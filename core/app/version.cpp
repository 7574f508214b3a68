#include "app/version.hpp"

#include <dnnl.h>
#include <fmt/format.h>

#include "backend/backend.hpp"
#include "base/build_info.hpp"
#include "comm/fabric.hpp"

namespace shardmark {

std::string onednn_version() {
  dnnl_version_t const* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

std::string full_version_text(std::string_view program) {
  std::string out = version_text(program);
  auto const row = [&](std::string_view key, std::string const& value) { out += fmt::format("{:<12}{}\n", key, value); };
  row("MPI", fmt::format("compiled {}, loaded {}", MpiSession::header_version(), MpiSession::library_version()));
  row("oneDNN", fmt::format("compiled {}.{}.{}, loaded {}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH, onednn_version()));
  row("CUDA", "not built");
  row("instructions", make_cpu_backend(Determinism::deterministic)->instruction_set());
  return out;
}

}  // namespace shardmark
