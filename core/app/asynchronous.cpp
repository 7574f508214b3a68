#include "app/asynchronous.hpp"

#include <algorithm>

#include "run/watchdog.hpp"

namespace shardmark {

bool StopVote::stop() {
  if (program_.parts().schedule.decides_jointly()) return program_.last().stop;
  bool const agreed = result();
  *flag_.view.as<double>() = stop_requested() != 0 ? 1 : 0;
  request_ =
      exchange_.world().post(exchange_.stream(), Exchange{.what = Collective::all_reduce, .send = flag_, .recv = flag_, .purpose = "stop"});
  pending_ = true;
  return agreed;
}

bool StopVote::result() {
  if (!pending_) return false;
  request_.wait(exchange_.stream());
  pending_ = false;
  return *flag_.view.as<double>() > 0;
}

std::vector<WindowResult> windows_of_last_stage(std::vector<WindowResult> const& mine, Program& program, HostExchange& exchange) {
  constexpr std::size_t fields = 6;
  std::size_t const most = std::size_t(exchange.max(program.sees_loss() ? double(mine.size()) : 0));
  std::vector<double> numbers(1 + most * fields);
  if (program.sees_loss()) {
    numbers[0] = 1;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      WindowResult const& w = mine[i];
      double const of_window[fields] = {double(w.update), w.loss, double(w.counted), w.norm, w.rate, w.skipped ? 1.0 : 0.0};
      std::copy(std::begin(of_window), std::end(of_window), numbers.begin() + std::ptrdiff_t(1 + i * fields));
    }
  }
  auto const all = exchange.gather(numbers);
  auto const last = std::find_if(all.begin(), all.end(), [](auto const& of_rank) { return of_rank[0] == 1; });
  std::vector<WindowResult> out;
  for (std::size_t i = 0; i < most; ++i) {
    double const* const w = last->data() + 1 + i * fields;
    out.push_back(
        {.update = std::int64_t(w[0]), .loss = w[1], .counted = std::int64_t(w[2]), .norm = w[3], .rate = w[4], .skipped = w[5] != 0});
  }
  return out;
}

}  // namespace shardmark
