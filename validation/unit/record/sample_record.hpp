#pragma once

#include "record/record.hpp"

namespace shardmark::test {

/// The record of validation/golden/record-example.json, field by field.
record::Record sample_record();

}  // namespace shardmark::test
