// --tp-chunks: the sum of each piece of a row-cut product is under way while the next piece is made.

#include <gtest/gtest.h>

#include "validation/equivalence/core/parallel_gpt.hpp"

namespace shardmark::testing {
namespace {

/// Counts the exchanges for one purpose that were posted and not yet waited for.
class Watching final : public Communicator {
 public:
  Watching(Communicator& inner, std::string_view purpose) : inner_(inner), purpose_(purpose) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Request post(Stream& producer, std::span<Message const> group) override { return inner_.post(producer, group); }
  Request post(Stream& producer, Exchange const& exchange) override {
    if (exchange.purpose != purpose_) return inner_.post(producer, exchange);
    most = std::max(most, ++open_);
    return Request(std::make_shared<Watched>(inner_.post(producer, exchange), open_));
  }
  void progress() override { inner_.progress(); }
  int outstanding() const override { return inner_.outstanding(); }
  void abort(std::string_view reason) noexcept override { inner_.abort(reason); }
  std::unique_ptr<Communicator> split(std::span<int const> colours) override { return inner_.split(colours); }
  std::optional<Region> symmetric(std::size_t bytes) override { return inner_.symmetric(bytes); }
  std::string_view name() const override { return inner_.name(); }

  int most = 0;

 private:
  class Watched final : public RequestState {
   public:
    Watched(Request request, int& open) : request_(std::move(request)), open_(open) {}
    bool poll() override { return request_.test(); }
    void order(Stream& consumer) override {
      request_.wait(consumer);
      --open_;
    }

   private:
    Request request_;
    int& open_;
  };
  Communicator& inner_;
  std::string_view purpose_;
  int open_ = 0;
};

TEST(Overlap, each_sum_but_the_last_is_under_way_while_the_next_product_is_made) {
  for (TokenRows const rows : {TokenRows::whole, TokenRows::cut})
    for (int const chunks : {1, 2, 5}) {
      GptCase c;
      c.chunks = chunks;
      run_thread_ranks(2, [&](Communicator& world) {
        Watching watching(world, "row output");
        run_rank(c, watching, rows);
        EXPECT_EQ(watching.most, chunks);
      });
    }
}

}  // namespace
}  // namespace shardmark::testing
