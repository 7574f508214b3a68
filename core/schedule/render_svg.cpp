#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "schedule/picture.hpp"
#include "schedule/render.hpp"

namespace shardmark {
namespace {

constexpr double margin_left = 96, margin_right = 24, strip_height = 26, strip_gap = 3, lane_gap = 10;
constexpr double least_width = 1080, largest_width = 2900, width_of_action = 29;  // of the plot
constexpr double top = 46;                                                        // of the first lane
constexpr double label_character = 6.4, later_chunk_opacity = 0.62;

/// Colours that stay apart for colour-blind readers.
struct Kind {
  Do what;
  char const* colour;
  char const* label;
};
constexpr std::array kinds{Kind{Do::forward, "#6aa5e8", "forward"},
                           Kind{Do::backward, "#58b99d", "backward"},
                           Kind{Do::backward_input, "#58b99d", "backward, input half"},
                           Kind{Do::backward_weight, "#efc050", "backward, weight half"},
                           Kind{Do::recompute, "#b79ad9", "recomputation"},
                           Kind{Do::wait, "#f3d6d3", "waiting"},
                           Kind{Do::reduce, "#9aa5b1", "reduction"},
                           Kind{Do::decide, "#75808c", "decision"},
                           Kind{Do::update, "#75808c", "update"}};

Kind const* kind_of(Do what) {
  auto const found = std::ranges::find(kinds, what, &Kind::what);
  return found == kinds.end() ? nullptr : &*found;
}

bool computes(Do what) {
  return what == Do::forward || what == Do::backward || what == Do::backward_input || what == Do::backward_weight || what == Do::recompute;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

/// Drops what takes no time, and draws the blocks of one chunk and micro-batch as one. Pauses below `unseen` don't show.
std::vector<Span> joined(std::span<Span const> spans, SvgStyle const& style, double unseen) {
  std::vector<int> const run = style.form == Form::coarse ? std::vector<int>{} : runs_of(style.lane_of_chunk);
  std::vector<Span> out;
  std::vector<std::ptrdiff_t> last;  // of each lane, in out
  for (Span span : spans) {
    if (span.end <= span.begin || kind_of(span.action.what) == nullptr) continue;
    if (computes(span.action.what) && std::size_t(span.action.chunk.v) < run.size()) {
      span.action.chunk = {run[std::size_t(span.action.chunk.v)]};
    }
    if (std::size_t(span.lane) >= last.size()) last.resize(std::size_t(span.lane) + 1, -1);
    std::ptrdiff_t& before = last[std::size_t(span.lane)];
    if (before >= 0) {
      Span& open = out[std::size_t(before)];
      bool const same = open.action.what == span.action.what && open.action.micro == span.action.micro &&
                        (!computes(span.action.what) || open.action.chunk == span.action.chunk);
      if (same && span.begin - open.end <= unseen) {
        open.end = span.end;
        continue;
      }
    }
    before = std::ptrdiff_t(out.size());
    out.push_back(span);
  }
  return out;
}

double end_of(std::span<Span const> spans) {
  double end = 0;
  for (Span const& span : spans) end = std::max(end, span.end);
  return end;
}

/// 1, 2 or 5 times a power of ten, about a tenth of the range.
double tick_distance(double range) {
  double const rough = range / 10, power = std::pow(10, std::floor(std::log10(rough)));
  for (double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough) return step * power;
  }
  return 10 * power;
}

class Svg {
 public:
  Svg(SvgStyle const& style, std::vector<std::vector<Span>> strips, double end)
      : style_(style), strips_(std::move(strips)), end_(end > 0 ? end : 1) {
    std::vector<int> actions;  // of each lane
    for (auto const& strip : strips_) {
      for (Span const& span : strip) {
        lanes_ = std::max(lanes_, span.lane + 1);
        actions.resize(std::size_t(lanes_));
        actions[std::size_t(span.lane)] += computes(span.action.what) ? 1 : 0;
      }
    }
    double const most = actions.empty() ? 0 : *std::ranges::max_element(actions) / double(strips_.size());
    plot_width_ = std::clamp(most * width_of_action, least_width, largest_width);
    suffixes_ = chunk_suffixes(style.form == Form::coarse ? style.lane_of_chunk : lanes_of_runs(style.lane_of_chunk));
  }

  std::string draw() {
    double const bottom = top + lanes_ * lane_height();
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" "
        "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        margin_left + plot_width_ + margin_right, bottom + 74);
    add("<text x=\"{}\" y=\"24\" font-size=\"15\" fill=\"#222222\">{}</text>\n", margin_left, escaped(style_.title));
    axis(bottom);
    for (int lane = 0; lane < lanes_; ++lane) lane_labels(lane);
    for (std::size_t strip = 0; strip < strips_.size(); ++strip) {
      for (Span const& span : strips_[strip]) box(strip, span);
    }
    legend(bottom + 52);
    return std::move(text_) + "</svg>\n";
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  double lane_height() const { return double(strips_.size()) * (strip_height + strip_gap) + lane_gap; }
  double y_of(int lane, std::size_t strip) const { return top + lane * lane_height() + double(strip) * (strip_height + strip_gap); }
  double x_of(double time) const { return margin_left + time / end_ * plot_width_; }

  void axis(double bottom) {
    double const step = tick_distance(end_ * style_.scale) / style_.scale;
    for (int i = 0; i * step <= end_ * (1 + 1e-9); ++i) {
      double const x = x_of(i * step);
      add("<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1:.2f}\" y2=\"{2:.2f}\" stroke=\"#e4e7ea\"/>\n", x, top - 6, bottom);
      add("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\" fill=\"#555555\">{:.6g}</text>\n", x, bottom + 14,
          i * step * style_.scale);
    }
    std::string const unit = style_.unit.empty() ? "" : ", " + escaped(style_.unit);
    add("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"end\" fill=\"#555555\">time{}</text>\n", margin_left + plot_width_, bottom + 30,
        unit);
  }

  void lane_labels(int lane) {
    double const middle = y_of(lane, 0) + (lane_height() - lane_gap - strip_gap) / 2 + 4;
    add("<text x=\"8\" y=\"{:.2f}\" fill=\"#222222\">stage {}</text>\n", middle, lane);
    if (strips_.size() < 2) return;
    for (std::size_t strip = 0; strip < strips_.size(); ++strip) {
      add("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"end\" font-size=\"8\" fill=\"#777777\">{}</text>\n", margin_left - 5,
          y_of(lane, strip) + strip_height / 2 + 3, strip == 0 ? "plan" : "run");
    }
  }

  std::string colour(Action const& action) const {
    if (style_.colours == Colours::kind || !computes(action.what)) return kind_of(action.what)->colour;
    // The golden angle keeps neighbouring micro-batches apart; backwards are lighter.
    double const hue = std::fmod(action.micro.v * 137.508, 360);
    return fmt::format("hsl({:.0f},55%,{}%)", hue, action.what == Do::forward ? 62 : action.what == Do::backward_weight ? 84 : 76);
  }

  std::string suffix(Action const& action) const {
    bool const known = computes(action.what) && std::size_t(action.chunk.v) < suffixes_.size();
    return known ? suffixes_[std::size_t(action.chunk.v)] : std::string();
  }

  void box(std::size_t strip, Span const& span) {
    Action const& action = span.action;
    double const x = x_of(span.begin), width = x_of(span.end) - x, y = y_of(span.lane, strip);
    bool const waits = action.what == Do::wait;
    std::string const chunk = suffix(action);
    double const inset = waits ? 9 : 0;  // thinner, so that work stands out
    add("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"{}{}>", x, y + inset, std::max(width, 0.4),
        strip_height - 2 * inset, colour(action), waits ? "" : " stroke=\"#ffffff\" stroke-width=\"0.8\"",
        chunk.empty() || chunk == "a" ? "" : fmt::format(" fill-opacity=\"{}\"", later_chunk_opacity));
    std::string const micro = action.micro.valid() ? fmt::format(" micro-batch {}", action.micro.v) : "";
    add("<title>stage {}: {}{}{}, {:.6g} to {:.6g}{}{}</title></rect>\n", span.lane, name(action.what), micro,
        chunk.empty() ? "" : " chunk " + chunk, span.begin * style_.scale, span.end * style_.scale, style_.unit.empty() ? "" : " ",
        escaped(style_.unit));
    if (waits) return;
    std::string const label = fmt::format("{}{}{}", letter(action.what), action.micro.valid() ? std::to_string(action.micro.v) : "", chunk);
    bool const plain = !action.micro.valid() || label.size() * label_character > width;
    std::string const shorter = action.micro.valid() ? std::to_string(action.micro.v) : label;
    std::string const& shown = plain ? shorter : label;
    if (double(shown.size()) * label_character > width) return;
    add("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\" fill=\"#1b1b1b\">{}</text>\n", x + width / 2, y + strip_height / 2 + 4,
        shown);
  }

  void legend(double y) {
    double x = margin_left;
    auto const entry = [&](std::string const& fill, std::string const& label, double opacity) {
      add("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"14\" height=\"12\" fill=\"{}\" fill-opacity=\"{}\"/>"
          "<text x=\"{:.2f}\" y=\"{:.2f}\" fill=\"#333333\">{}</text>\n",
          x, y - 10, fill, opacity, x + 19, y, label);
      x += 19 + double(label.size()) * label_character + 22;
    };
    for (Kind const& kind : kinds) {
      if (kind.what == Do::update && uses(Do::decide)) continue;
      if (!uses(kind.what)) continue;
      bool const by_micro = style_.colours == Colours::micro && computes(kind.what);
      if (!by_micro) entry(kind.colour, kind.what == Do::wait ? kind.label : fmt::format("{} {}", letter(kind.what), kind.label), 1);
    }
    if (std::ranges::find(suffixes_, "b") != suffixes_.end()) entry("#58b99d", "lighter: later chunks of a stage", later_chunk_opacity);
    if (style_.colours == Colours::micro) {
      for (int micro = 0; micro < std::min(micros(), 12); ++micro) {
        entry(colour({.what = Do::forward, .micro = {micro}}), fmt::format("micro-batch {}", micro), 1);
        if (x > margin_left + plot_width_ - 120) break;
      }
    }
  }

  bool uses(Do what) const {
    return std::ranges::any_of(
        strips_, [&](auto const& strip) { return std::ranges::any_of(strip, [&](Span const& s) { return s.action.what == what; }); });
  }

  int micros() const {
    int most = 0;
    for (auto const& strip : strips_) {
      for (Span const& span : strip) most = std::max(most, span.action.micro.v + 1);
    }
    return most;
  }

  SvgStyle const& style_;
  std::vector<std::vector<Span>> strips_;
  double end_;
  double plot_width_ = least_width;
  int lanes_ = 0;
  std::vector<std::string> suffixes_;
  std::string text_;
};

}  // namespace

std::string render_svg(std::span<Span const> spans, SvgStyle const& style) {
  double const end = end_of(spans);
  return Svg(style, {joined(spans, style, end * 1e-3)}, end).draw();
}

std::string render_svg(std::span<Span const> planned, std::span<Span const> measured, SvgStyle const& style) {
  double const end = std::max(end_of(planned), end_of(measured));
  return Svg(style, {joined(planned, style, end * 1e-3), joined(measured, style, end * 1e-3)}, end).draw();
}

}  // namespace shardmark
