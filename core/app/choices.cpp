#include "app/choices.hpp"

#include <fmt/format.h>

#include "app/nearest.hpp"

namespace shardmark {

void refuse_choice(std::string_view word, bool later_version, std::string_view known, std::string const& origin) {
  std::string const problem = fmt::format("{} {}", origin, printable(word));
  if (later_version) fail_input({problem, "not in this version", fmt::format("choose one of {}", known)});
  fail_input({problem, "not one of its values", fmt::format("choose one of {}", known)});
}

std::string_view name(Command command) { return word_of(command); }
std::string_view name(ModelKind model) { return word_of(model); }
std::string_view name(OptimizerKind optimizer) { return word_of(optimizer); }
std::string_view name(BackendKind backend) { return word_of(backend); }
std::string_view name(CommKind comm) { return word_of(comm); }
std::string_view name(LrSchedule schedule) { return word_of(schedule); }
std::string_view name(BatchNormPolicy policy) { return word_of(policy); }
std::string_view name(PipelineMode mode) { return word_of(mode); }
std::string_view name(LayerAlone layer) { return word_of(layer); }
std::string_view name(SplitBackward split) { return word_of(split); }
std::string_view name(BackwardOrder order) { return word_of(order); }

}  // namespace shardmark
