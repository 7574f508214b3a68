// Reads the text form of a coarse schedule. Input may be hostile: every number is bounded before anything is allocated by it.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "schedule/text.hpp"

namespace shardmark {
namespace {

// Far beyond any cluster; what they allow is checked and simulated in seconds.
constexpr int most_lanes = 1024, most_chunks = 4096, most_micros = 1 << 16;
constexpr std::int64_t most_cells = 100'000'000;  // (chunk, micro-batch) pairs and actions, times the windows that check() unrolls
constexpr int largest_id = 1'000'000;

constexpr Do written_by_hand[] = {Do::forward,   Do::backward, Do::backward_input, Do::backward_weight,
                                  Do::recompute, Do::reduce,   Do::update};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

struct Word {
  std::string_view text;
  int column = 1;  // from 1
};

/// What a message may repeat of the text: short, printable.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > 40 ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view shown) : text_(text), shown_(shown) {}

  Schedule parse() {
    while (next_line()) line();
    ++line_;
    words_.clear();
    require(named_, "no line 'schedule NAME'");
    require(!schedule_.lane_of_chunk.empty(), "no line 'chunks LANE LANE ...'");
    require(micros_, "no line 'micros NUMBER'");
    require(!schedule_.lanes.empty(), "no lanes");
    finish();
    return std::move(schedule_);
  }

 private:
  /// The words of the next line that has any.
  bool next_line() {
    while (!text_.empty()) {
      std::size_t const length = std::min(text_.find('\n'), text_.size());
      std::string_view const line = text_.substr(0, length);
      text_.remove_prefix(std::min(length + 1, text_.size()));
      ++line_;
      split(line.substr(0, line.find('#')));
      if (!words_.empty()) return true;
    }
    return false;
  }

  void split(std::string_view line) {
    words_.clear();
    at_ = 0;
    for (std::size_t i = 0; i < line.size();) {
      if (is_space(line[i])) {
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < line.size() && !is_space(line[end])) ++end;
      words_.push_back({line.substr(i, end - i), int(i) + 1});
      i = end;
    }
  }

  void line() {
    Word const first = word("a word");
    for (Section section : sections) {
      if (first.text == name(section)) return begin_section(section);
    }
    for (Do what : written_by_hand) {
      if (first.text == name(what)) return action(what);
    }
    if (first.text == "lane") return begin_lane();
    if (!schedule_.lanes.empty()) unknown(first);
    if (first.text == "schedule") return schedule_name();
    if (first.text == "chunks") return chunks();
    if (first.text == "micros") return micros();
    if (first.text == "updates") return updates();
    if (first.text == "leaves") return leaves();
    if (first.text == "sum") return sum();
    if (first.text == "weights") return weights();
    if (first.text == "decisions") return decisions();
    unknown(first);
  }

  [[noreturn]] void unknown(Word word) {
    for (Do what : {Do::fold, Do::post, Do::wait, Do::tie, Do::decide, Do::release}) {
      if (word.text == name(what)) fail(word, fmt::format("'{}' is inserted by the program; the coarse form has none", word.text));
    }
    fail(word, schedule_.lanes.empty() ? fmt::format("{} is unknown here", quoted(word.text))
                                       : fmt::format("{} is no action, section or lane", quoted(word.text)));
  }

  void schedule_name() {
    Word const given = word("a name");
    auto const fits = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
    };
    if (given.text.size() > 64 || !std::ranges::all_of(given.text, fits)) fail(given, "a name has up to 64 letters, digits and - _ .");
    schedule_.name = given.text;
    named_ = true;
    end_line();
  }

  void chunks() {
    schedule_.lane_of_chunk.clear();
    while (at_ < words_.size()) schedule_.lane_of_chunk.push_back(number(0, most_lanes - 1));
    if (int(schedule_.lane_of_chunk.size()) > most_chunks) fail(words_[0], fmt::format("more than {} chunks", most_chunks));
  }

  void micros() {
    schedule_.micros_per_window = number(1, most_micros);
    micros_ = true;
    end_line();
  }

  void updates() {
    schedule_.versions_per_window = number(1, most_micros);
    end_line();
  }

  void leaves() {
    schedule_.leaves.outer = number(1, most_micros);
    schedule_.leaves.inner = number(1, most_micros);
    if (std::int64_t(schedule_.leaves.outer) * schedule_.leaves.inner > most_micros) fail(words_[1], "too many leaves");
    leaves_ = true;
    end_line();
  }

  void sum() {
    schedule_.sum.micros = one_of({Fold::loop, Fold::tree});
    schedule_.sum.replicas = one_of({Fold::loop, Fold::tree});
    schedule_.sum.inside = one_of({Inside::micros, Inside::replicas});
    end_line();
  }

  void weights() {
    schedule_.weights = one_of({Weights::latest, Weights::delayed});
    end_line();
  }

  void decisions() {
    schedule_.decisions = one_of({Decisions::joint, Decisions::per_lane});
    end_line();
  }

  void begin_lane() {
    int const expected = int(schedule_.lanes.size());
    if (number(0, most_lanes - 1) != expected) fail(words_[1], fmt::format("lane {} comes next", expected));
    schedule_.lanes.emplace_back();
    section_ = Section::body;
    end_line();
  }

  void begin_section(Section section) {
    if (schedule_.lanes.empty()) fail(words_[0], "a section outside of a lane");
    section_ = section;
    end_line();
  }

  void action(Do what) {
    if (schedule_.lanes.empty()) fail(words_[0], "an action outside of a lane");
    Action action{.what = what};
    bool const computes = what != Do::reduce && what != Do::update;
    if (computes) action.chunk = {number_after("chunk", 0, most_chunks)};
    if (computes) action.micro = {number_after("micro", 0, largest_id)};
    if (what != Do::reduce) action.version = {number_after("version", -largest_id, largest_id)};
    if (what == Do::forward || what == Do::recompute) action.keeps = kept();
    schedule_.lanes.back()[section_].push_back(action);
    ++actions_;
    end_line();
  }

  Kept kept() {
    if (at_ == words_.size()) return Kept::stash;
    Word const given = word("'keeps'");
    if (given.text != "keeps") fail(given, fmt::format("{} where 'keeps' or nothing should stand", quoted(given.text)));
    return one_of({Kept::stash, Kept::selective, Kept::input, Kept::nothing});
  }

  void finish() {
    if (!leaves_) schedule_.leaves = {1, std::max(1, schedule_.micros_per_update())};
    for (int lane : schedule_.lane_of_chunk) {
      require(lane < int(schedule_.lanes.size()),
              fmt::format("a chunk is on lane {}, but there are {} lanes", lane, schedule_.lanes.size()));
    }
    std::int64_t const windows = std::int64_t(schedule_.lanes.size()) + 2;
    std::int64_t const cells = std::int64_t(schedule_.lane_of_chunk.size()) * schedule_.micros_per_window;
    require(std::max(cells, actions_) * windows <= most_cells, "the schedule is larger than can be checked");
  }

  Word word(char const* what) {
    if (at_ == words_.size()) fail(end(), fmt::format("the line ends where {} should stand", what));
    return words_[at_++];
  }

  int number(int least, int most) {
    Word const given = word("a number");
    int value = 0;
    auto const [rest, error] = std::from_chars(given.text.data(), given.text.data() + given.text.size(), value);
    bool const good = error == std::errc() && rest == given.text.data() + given.text.size() && value >= least && value <= most;
    if (!good) fail(given, fmt::format("{} is no number from {} to {}", quoted(given.text), least, most));
    return value;
  }

  int number_after(std::string_view keyword, int least, int most) {
    Word const given = word(keyword == "chunk" ? "'chunk'" : keyword == "micro" ? "'micro'" : "'version'");
    if (given.text != keyword) fail(given, fmt::format("{} where '{}' should stand", quoted(given.text), keyword));
    return number(least, most);
  }

  template <class Choice>
  Choice one_of(std::initializer_list<Choice> choices) {
    Word const given = word("a word");
    std::string names;
    for (Choice choice : choices) {
      if (given.text == name(choice)) return choice;
      names += fmt::format("{}{}", names.empty() ? "" : " or ", name(choice));
    }
    fail(given, fmt::format("{} where {} should stand", quoted(given.text), names));
  }

  void end_line() {
    if (at_ < words_.size()) fail(words_[at_], fmt::format("{} is too much", quoted(words_[at_].text)));
  }

  Word end() const {
    if (words_.empty()) return {};
    return {{}, words_.back().column + int(words_.back().text.size())};
  }

  void require(bool good, std::string const& problem) const {
    if (!good) fail(end(), problem);
  }

  [[noreturn]] void fail(Word word, std::string const& problem) const {
    throw BadRequest({fmt::format("{} line {}, column {}: {}", shown_, line_, word.column, problem), "", ""});
  }

  std::string_view text_, shown_;
  int line_ = 0;
  std::vector<Word> words_;  // of the line
  std::size_t at_ = 0;       // the next one
  Schedule schedule_;
  Section section_ = Section::body;
  bool named_ = false, micros_ = false, leaves_ = false;
  std::int64_t actions_ = 0;
};

}  // namespace

Schedule parse_schedule(std::string_view text, std::string_view shown) { return Parser(text, shown).parse(); }

}  // namespace shardmark
