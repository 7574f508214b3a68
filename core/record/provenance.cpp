#include "record/provenance.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>

#include "base/build_info.hpp"
#include "data/sha256.hpp"

extern char** environ;

namespace shardmark::record {
namespace {

std::optional<std::string> variable(char const* name) {
  char const* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::int64_t> number(char const* name) {
  auto const text = variable(name);
  std::int64_t value = 0;
  if (!text) return std::nullopt;
  auto const [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

bool changes_results(std::string_view name) {
  constexpr std::array prefixes{"OMP_",          "GOMP_",          "DNNL_",  "ONEDNN_", "UCX_", "NCCL_",   "CUDA_",
                                "OMPI_MCA_btl_", "OMPI_MCA_coll_", "MPICH_", "I_MPI_",  "FI_",  "MALLOC_", "HWLOC_"};
  constexpr std::array whole{"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_coll", "GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH"};
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
         std::find(whole.begin(), whole.end(), name) != whole.end();
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    std::string_view const piece = text.substr(0, text.find(separator));
    if (!piece.empty()) out.emplace_back(piece);
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
  }
  return out;
}

Measured<std::string> hash_of_this_program() {
  std::ifstream program("/proc/self/exe", std::ios::binary);
  std::string const bytes{std::istreambuf_iterator<char>(program), {}};
  if (bytes.empty()) return Measured<std::string>::missing("/proc/self/exe is not readable");
  return sha256_hex(bytes);
}

}  // namespace

std::string new_record_id() {
  std::random_device entropy;
  std::array<std::uint32_t, 4> words{};
  for (std::uint32_t& word : words) word = entropy();
  words[1] = (words[1] & 0xFFFF0FFFu) | 0x00004000u;  // version 4
  words[2] = (words[2] & 0x3FFFFFFFu) | 0x80000000u;  // variant of RFC 4122
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", words[0], words[1] >> 16, words[1] & 0xFFFFu, words[2] >> 16,
                     words[2] & 0xFFFFu, words[3]);
}

std::string utc_now() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::optional<Slurm> read_slurm() {
  auto const job = number("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  return Slurm{.job_id = *job,
               .array_task = number("SLURM_ARRAY_TASK_ID"),
               .restarts = number("SLURM_RESTART_COUNT").value_or(0),
               .partition = variable("SLURM_JOB_PARTITION").value_or(""),
               .nodelist = variable("SLURM_JOB_NODELIST").value_or(""),
               .exclusive = Measured<bool>::missing("Slurm doesn't tell its jobs")};
}

Measured<std::string> read_launcher() {
  std::ifstream file(fmt::format("/proc/{}/cmdline", getppid()), std::ios::binary);
  std::string const text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words = split(text, '\0');
  if (words.empty()) return Measured<std::string>::missing("the parent process is not readable");
  words[0].erase(0, words[0].rfind('/') + 1);
  constexpr std::array launchers{"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "prun", "srun"};
  if (std::find(launchers.begin(), launchers.end(), words[0]) == launchers.end()) {
    return Measured<std::string>::missing("the parent process is no launcher");
  }
  return fmt::format("{}", fmt::join(words, " "));
}

Environment read_environment() {
  Environment out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view const text(*entry);
    std::string_view const name = text.substr(0, text.find('='));
    if (changes_results(name)) out.variables.emplace_back(name, text.substr(std::min(text.size(), name.size() + 1)));
  }
  std::sort(out.variables.begin(), out.variables.end());
  out.modules = split(variable("LOADEDMODULES").value_or(""), ':');
  return out;
}

Build read_build() {
  BuildInfo const& info = build_info();
  Build out;
  std::string_view commit = info.commit;
  bool const known = commit != "unknown", dirty = commit.ends_with("-dirty");
  if (dirty) commit.remove_suffix(std::string_view("-dirty").size());
  out.version = info.version;
  out.source = known ? "git" : "unknown";
  if (known) out.commit = std::string(commit);
  if (known) out.dirty = dirty;
  out.binary_sha256 = hash_of_this_program();
  out.type = info.build_type;
  std::transform(out.type.begin(), out.type.end(), out.type.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  out.compiler = info.compiler;
  out.flags = info.flags;
  return out;
}

System describe_system(HostInfo const& host) {
  System out;
  out.virtualised = host.virtualised;
  out.cgroup_cpu_quota = host.cgroup_cpu_quota;
  out.cpu = host.cpu_model;
  out.cores_per_node = host.cores;
  out.smt = host.smt();
  out.governor = host.governor;
  out.thp = host.thp;
  out.kernel = host.kernel;
  return out;
}

}  // namespace shardmark::record
