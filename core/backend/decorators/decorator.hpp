#pragma once
// What all decorators share: everything but run() goes to the wrapped backend.

#include "backend/backend.hpp"

namespace shardmark {

class Decorator : public Backend {
 public:
  /// @param inner outlives the decorator.
  explicit Decorator(Backend& inner) : inner_(inner) {}
  std::unique_ptr<Stream> stream() override { return inner_.stream(); }
  Region reserve(std::size_t bytes, Place place) override { return inner_.reserve(bytes, place); }
  std::string name() const override { return inner_.name(); }
  std::string instruction_set() const override { return inner_.instruction_set(); }

 protected:
  Backend& inner() const { return inner_; }

 private:
  Backend& inner_;
};

}  // namespace shardmark
