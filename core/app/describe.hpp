#pragma once
// Words and numbers that plan, verify and bench print alike.

#include <string>

#include "app/options.hpp"
#include "model/spec.hpp"

namespace shardmark {

/// "gpt L4 H256 a4 S128 V256 (3.2 M)"
std::string describe_model(Options const& options, ModelSpec const& spec);
/// "ddp verify  gpt L4 ... fp32  global batch 8 = 1024 tokens"
std::string describe_run(Options const& options, std::string const& what, ModelSpec const& spec, int replicas);
/// Loss terms of one full update: tokens, or samples.
std::int64_t terms_per_update(Options const& options, int replicas);
std::string_view term_name(Options const& options);  // "token" or "sample"
/// "1 rank", "4 ranks"
std::string count_of(std::int64_t n, std::string_view noun);
double to_mib(std::int64_t bytes);
/// Of token and position tables, which do no matrix work.
std::int64_t embedding_parameters(ModelSpec const& spec);

}  // namespace shardmark
