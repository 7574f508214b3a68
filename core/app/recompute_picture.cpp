// Memory against time as SVG: the curve of the best plans, the rules as points, planned and measured.

#include <fmt/format.h>

#include <algorithm>

#include "app/describe.hpp"
#include "app/recompute_table.hpp"
#include "metrics/statistics.hpp"

namespace shardmark {
namespace {

constexpr double page_width = 860, page_height = 520, left = 76, right = 30, top = 58, bottom = 64;
constexpr int ticks = 6;

struct PlotAxes {
  double most_mib = 1, most_time = 1.1;
  double x(double mib) const { return left + mib / most_mib * (page_width - left - right); }
  double y(double time) const { return page_height - bottom - (time - 1) / (most_time - 1) * (page_height - top - bottom); }
};

PlotAxes axes_for(RuleTable const& table) {
  PlotAxes axes;
  auto const take = [&](double mib, double time) {
    axes.most_mib = std::max(axes.most_mib, mib * 1.08);
    axes.most_time = std::max(axes.most_time, 1 + (time - 1) * 1.15);
  };
  for (RuleRow const& row : table.curve) take(to_mib(row.planned_bytes), row.planned_time);
  for (RuleRow const& row : table.rows) {
    take(to_mib(row.planned_bytes), row.planned_time);
    if (!row.measured_times.empty()) take(to_mib(row.measured_bytes), median(row.measured_times));
  }
  return axes;
}

std::string text(double x, double y, std::string const& anchor, std::string const& words, int size = 13) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor, size, words);
}

std::string grid(PlotAxes const& axes) {
  std::string out;
  for (int i = 0; i <= ticks; ++i) {
    double const mib = axes.most_mib * i / ticks, time = 1 + (axes.most_time - 1) * i / ticks;
    out += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}M{:.1f} {:.1f}H{:.1f}\" stroke=\"#dde3ea\"/>\n", axes.x(mib), top,
                       page_height - bottom, left, axes.y(time), page_width - right);
    out += text(axes.x(mib), page_height - bottom + 20, "middle", fmt::format("{:.3g}", mib));
    out += text(left - 8, axes.y(time) + 4, "end", fmt::format("{:.2f}", time));
  }
  out += text((left + page_width - right) / 2, page_height - 20, "middle", "activations at their peak, MiB");
  return out + text(left, top - 12, "start", "time of a step, relative to none");
}

/// From the least memory on, each plan holds until there is memory for the next.
std::string curve(RuleTable const& table, PlotAxes const& axes) {
  std::string path;
  for (RuleRow const& row : table.curve) {
    double const x = axes.x(to_mib(row.planned_bytes)), y = axes.y(row.planned_time);
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x, top) : fmt::format("H{:.1f}", x);
    path += fmt::format("V{:.1f}", std::max(y, top));
  }
  return fmt::format("<path d=\"{}H{:.1f}\" fill=\"none\" stroke=\"#6aa5e8\" stroke-width=\"2\"/>\n", path, page_width - right);
}

/// Hollow: planned. Filled: measured, with its name. Names of points that lie close together stand one above the other.
std::string points(RuleTable const& table, PlotAxes const& axes) {
  std::string out;
  std::vector<std::pair<double, double>> labels;
  for (RuleRow const& row : table.rows) {
    double x = axes.x(to_mib(row.planned_bytes)), y = axes.y(row.planned_time);
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" fill=\"none\" stroke=\"#d2691e\" stroke-width=\"1.5\"/>\n", x, y);
    if (!row.measured_times.empty()) {
      x = axes.x(to_mib(row.measured_bytes));
      y = axes.y(median(row.measured_times));
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"#d2691e\"/>\n", x, y);
    }
    double label = y - 10;
    auto const taken = [&](std::pair<double, double> const& other) {
      return std::abs(other.first - x) < 110 && std::abs(other.second - label) < 14;
    };
    while (std::ranges::any_of(labels, taken)) label -= 14;
    labels.emplace_back(x, label);
    out += text(x + (x > page_width - 120 ? -9 : 9), label, x > page_width - 120 ? "end" : "start", row.rule, 12);
  }
  return out;
}

}  // namespace

std::string to_svg(RuleTable const& table, std::string const& title) {
  PlotAxes const axes = axes_for(table);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" fill=\"#22303c\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      page_width, page_height);
  out += text(left, 24, "start", title, 15);
  out += grid(axes) + curve(table, axes) + points(table, axes);
  char const* key = table.rounds > 0 ? "line: the best plan for each budget; circles: rules as planned; dots: as measured"
                                     : "line: the best plan for each budget; circles: rules as planned";
  return out + text(page_width - right, top - 12, "end", key, 12) + "</svg>\n";
}

}  // namespace shardmark
