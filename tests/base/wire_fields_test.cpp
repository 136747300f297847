// Tags, numbers and lengths of protobuf messages: in memory, in pieces, and cut off anywhere.
#include "msdbg/wire_fields.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace msdbg {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Number 300 in field 1, "node" in field 2, a packed list in field 3, fixed values in fields 4 and 5, a message in 16.
std::string sample() {
  std::string packed, message, out;
  for (const uint64_t value : {1u, 128u, 70000u}) WireWriter(packed).number(value);
  WireWriter(message).field(1, "inner");
  WireWriter writer(out);
  writer.field(1, 300);
  writer.field(2, "node");
  writer.field(3, packed);
  out += std::string("\x25\x01\x02\x03\x04", 5) + std::string("\x29\xff\0\0\0\0\0\0\x80", 9);
  writer.field(16, message);
  return out;
}

/// The result of walking over the message, one word per field; ends in "!" and the problem.
std::string walk(WireReader reader) {
  std::string out;
  WireField field;
  while (reader.next(field)) {
    out += std::to_string(field.number) + "@" + std::to_string(field.offset) + "=";
    if (field.type == WireType::kBytes) {
      std::string text;
      EXPECT_TRUE(reader.text(field, 100, text));
      out += field.number == 2 ? text : std::to_string(field.size) + " bytes";
    } else {
      out += std::to_string(field.value);
    }
    out += ' ';
  }
  return reader.status().ok() ? out : out + "!" + reader.status().message();
}

constexpr const char* kSampleWalk = "1@0=300 2@3=node 3@9=6 bytes 4@17=67305985 5@22=9223372036854776063 16@31=7 bytes ";

TEST(WireReader, AllKindsOfFieldsAreRead) { EXPECT_EQ(walk(WireReader(bytes_of(sample()))), kSampleWalk); }

TEST(WireReader, PiecesOfAnySizeGiveTheSame) {
  const std::string message = sample();
  for (size_t cut = 0; cut <= message.size(); ++cut) {
    for (size_t width = 1; width < 4; ++width) {
      const auto whole = bytes_of(message);
      const size_t next = std::min(cut + width, message.size());
      PieceSource source({whole.first(cut), {}, whole.subspan(cut, next - cut), whole.subspan(next)});
      EXPECT_EQ(walk(WireReader(source, 0, source.size())), kSampleWalk) << cut << " " << width;
    }
  }
}

TEST(WireReader, PiecesCanBeReadBackwards) {
  const std::string a = "abc", b = "defg";
  PieceSource source({bytes_of(a), bytes_of(b)});
  std::string out(7, '\0');
  for (size_t at = out.size(); at-- > 0;) {
    EXPECT_TRUE(source.read(at, std::as_writable_bytes(std::span(out.data() + at, 1))).ok());
  }
  EXPECT_EQ(out, "abcdefg");
}

TEST(WireReader, OffsetsCountFromTheBeginningOfTheFile) {
  const std::string message = sample();
  WireReader reader(bytes_of(message), 1000);
  WireField field;
  ASSERT_TRUE(reader.next(field) && reader.next(field));
  EXPECT_EQ(field.offset, 1003u);
  EXPECT_EQ(field.start, 1005u);
  EXPECT_EQ(reader.bytes(field).data(), bytes_of(message).data() + 5);
}

TEST(WireReader, ACutMessageEndsInAProblemUnlessItIsCutBetweenFields) {
  const std::string message = sample();
  const std::vector<size_t> between = {0, 3, 9, 17, 22, 31, message.size()};
  for (size_t size = 0; size <= message.size(); ++size) {
    const std::string part = message.substr(0, size);
    PieceSource source({bytes_of(part)});
    const std::string seen = walk(WireReader(bytes_of(part)));
    EXPECT_EQ(seen.find("!ends early") == std::string::npos, std::ranges::count(between, size) == 1) << size << seen;
    EXPECT_EQ(walk(WireReader(source, 0, size)), seen);
  }
}

TEST(WireReader, AFieldThatIsCutOffTellsWhatIsThere) {
  std::string message;
  WireWriter(message).begin_bytes(3, 0xFFFFFFFF);
  message += "abc";
  WireReader reader(bytes_of(message));
  WireField field;
  EXPECT_FALSE(reader.next(field));
  EXPECT_EQ(field.size, 0xFFFFFFFFu);
  EXPECT_EQ(field.present, 3u);
  EXPECT_TRUE(field.cut());
  EXPECT_EQ(reader.status().code(), Code::kCorrupt);
  EXPECT_EQ(reader.status().message(), "ends early: field 3 at byte 0 promises 4294967295 bytes, 3 are there");
  EXPECT_FALSE(reader.next(field)) << "nothing is read behind a problem";
}

TEST(WireReader, LengthsThatWrapAroundAreTooLong) {
  for (const uint64_t size : {UINT64_MAX, UINT64_MAX - 11, uint64_t{1} << 63}) {
    std::string message;
    WireWriter(message).begin_bytes(1, size);
    EXPECT_NE(walk(WireReader(bytes_of(message))).find("ends early"), std::string::npos) << size;
  }
}

TEST(WireReader, BytesThatAreNoFieldsAreNamed) {
  const auto problem = [](std::string bytes) { return walk(WireReader(bytes_of(bytes), 7)); };
  EXPECT_EQ(problem(std::string("\0", 1)), "!has no valid field at byte 7");
  EXPECT_EQ(problem("\x0b"), "!has a field of unknown kind at byte 7");
  EXPECT_EQ(problem("\x08" + std::string(10, '\xff') + "\x01"), "!has no valid number at byte 8");
  EXPECT_EQ(problem("\xf8\xff\xff\xff\xff\x01"), "!has no valid field at byte 7");
}

TEST(WireReader, LongTextsAreRefusedBeforeTheyAreRead) {
  std::string message;
  WireWriter(message).field(1, "twelve bytes");
  WireReader reader(bytes_of(message));
  WireField field;
  std::string text;
  ASSERT_TRUE(reader.next(field));
  EXPECT_FALSE(reader.text(field, 11, text));
  EXPECT_EQ(reader.status().message(), "has a text of 12 bytes at byte 0; at most 11 make sense there");
}

TEST(WireReader, PackedNumbersAndMessagesAreReadInside) {
  const std::string message = sample();
  for (const bool in_memory : {true, false}) {
    PieceSource source({bytes_of(message)});
    WireReader reader = in_memory ? WireReader(bytes_of(message)) : WireReader(source, 0, source.size());
    std::vector<uint64_t> numbers;
    std::string inner;
    WireField field;
    while (reader.next(field)) {
      if (field.number == 3) {
        WireReader packed = reader.inside(field);
        for (uint64_t value = 0; !packed.done() && packed.number(value);) numbers.push_back(value);
        EXPECT_TRUE(packed.status().ok());
      } else if (field.number == 16) {
        WireReader nested = reader.inside(field);
        WireField part;
        EXPECT_TRUE(nested.next(part) && part.is(1, WireType::kBytes) && nested.text(part, 10, inner));
      }
    }
    EXPECT_EQ(numbers, (std::vector<uint64_t>{1, 128, 70000}));
    EXPECT_EQ(inner, "inner");
  }
}

TEST(WireReader, AFailingSourceIsReportedAsItIs) {
  class Broken : public ByteSource {
   public:
    uint64_t size() const override { return 10; }
    Status read(uint64_t, std::span<std::byte>) override { return Status(Code::kIoError, "the cable is out"); }
  } source;
  WireReader reader(source, 0, 10);
  WireField field;
  EXPECT_FALSE(reader.next(field));
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.status().code(), Code::kIoError);
  EXPECT_EQ(reader.status().message(), "the cable is out");
}

TEST(WireReader, OnlyWhatIsThereCanBeAskedFor) {
  const std::string message = sample();
  PieceSource source({bytes_of(message)});
  EXPECT_THROW(WireReader(source, 0, message.size() + 1), InternalError);
  WireReader reader(source, 0, source.size());
  WireField field;
  ASSERT_TRUE(reader.next(field) && reader.next(field));
  std::byte room[5];
  EXPECT_THROW(reader.copy(field, room), InternalError) << "the field has four bytes";
  EXPECT_THROW(reader.bytes(field), InternalError) << "pieces do not lie in one run";
}

TEST(WireWriter, NumbersOfAllLengthsComeBack) {
  std::string out;
  std::vector<uint64_t> values = {0, 1, 127, 128, UINT64_MAX};
  for (unsigned bit = 0; bit < 64; ++bit) values.push_back(uint64_t{1} << bit);
  for (const uint64_t value : values) WireWriter(out).number(value);
  WireReader reader(bytes_of(out));
  for (const uint64_t value : values) {
    uint64_t read = 0;
    EXPECT_TRUE(reader.number(read));
    EXPECT_EQ(read, value);
  }
  EXPECT_TRUE(reader.done());
}

}  // namespace
}  // namespace msdbg
