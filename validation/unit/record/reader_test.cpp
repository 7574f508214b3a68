#include "record/reader.hpp"

#include "base/error.hpp"
#include "record/files.hpp"
#include "sample_record.hpp"
#include "temporary_folder.hpp"

namespace shardmark::record {
namespace {

class RecordReader : public test::TemporaryFolder {};

TEST_F(RecordReader, case_115_NamesTornLinesAndUsesTheRest) {
  std::string const line = to_json_line(test::sample_record()), path = at("all.jsonl");
  std::ofstream(path) << line << '\n'
                      << line << '\n'
                      << line.substr(0, 300) << '\n'
                      << "\n"
                      << line << '\n'
                      << R"({"schema":"other/2"})" << '\n'
                      << "[]\n";
  RecordFile const file = read_records(path);
  EXPECT_EQ(file.records.size(), 3u);
  std::vector<std::int64_t> lines;
  for (BrokenLine const& broken : file.broken) lines.push_back(broken.line);
  EXPECT_EQ(lines, (std::vector<std::int64_t>{3, 4, 6, 7}));
  EXPECT_EQ(file.complaints()[0], path + ":3: not a whole record (it is not complete JSON)");
  EXPECT_NE(file.complaints()[2].find("other/2"), std::string::npos);
}

TEST_F(RecordReader, FindsNumbersAndTextByPath) {
  StoredRecord const record{1, to_json_line(test::sample_record())};
  EXPECT_EQ(*number_at(record, "result.step_seconds.median"), 1.1271);
  EXPECT_EQ(*number_at(record, "run.slurm.job_id"), 48211);
  EXPECT_EQ(*text_at(record, "verdict"), "VERIFIED");
  EXPECT_EQ(number_at(record, "result.mfu.value").reason(), "result.mfu.value is null");
  EXPECT_EQ(number_at(record, "result.nothing").reason(), "the record has no result.nothing");
  EXPECT_EQ(number_at(record, "verdict.deeper").reason(), "the record has no verdict.deeper");
  EXPECT_EQ(number_at(record, "verdict").reason(), "verdict is no number");
}

TEST_F(RecordReader, RefusesAFileThatIsNotThere) { EXPECT_THROW(read_records(at("none")), BadRequest); }

}  // namespace
}  // namespace shardmark::record
