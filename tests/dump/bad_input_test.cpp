// Files and directories as left by crashes, other tools and accidents. Each problem is reported, and none hides the others.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "dump/dump_support.h"
#include "msdbg/check.h"
#include "support/faulty_disk.h"

namespace msdbg::testing {
namespace {

const std::string kStep = "rank_0/Net/0/0/";

std::string file(const std::string& type, const std::string& format = "DefaultFormat",
                 const std::string& dtype = "Float32") {
  return kStep + type + ".Default_" + type + "-op0.0.0.5.output.0." + format + "." + dtype + ".npy";
}

std::string npy_text(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string header = dictionary + "\n", out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(header.size() >> (8 * i) & 255);
  return out + header + data;
}

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override { dir_.npy(file("Good"), {1, NAN}); }

  /// The problem of node Default_{type}-op0; the good tensor next to it must still be judged.
  Status problem(const std::string& type) {
    auto session = open(dir_.path());
    Watchpoint watch;
    watch.id = 1;
    watch.on = Selector::parse("@all").value();
    watch.condition = parse_condition("TO").value();
    watch.rule = "tensor_overflow";
    const Result<CheckResult> result = check(*session, std::vector<Watchpoint>{watch}, {});
    EXPECT_TRUE(result.ok());
    const TensorId id = id_of(*session, "Default_" + type + "-op0", 0);
    const Status status = problem_of(*session, id);
    EXPECT_EQ(session->describe(id)->availability, Availability::kUnreadable);
    EXPECT_EQ(result->hits.size(), 1u);
    EXPECT_EQ(result->coverage.tensors, 2u);
    EXPECT_EQ(result->coverage.checked, 1u);
    EXPECT_EQ(result->not_checked.size(), 1u);
    if (!result->not_checked.empty()) {
      EXPECT_NE(result->not_checked[0].reason.find(status.message()), std::string::npos);
    }
    const auto opened = session->open_elements(id);
    EXPECT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().message(), status.message());
    EXPECT_TRUE(reports(*session, session->describe(id)->source, status.message()));
    return status;
  }

  TempDir dir_;
};

TEST_F(BadInput, CutOffFile) {
  const std::string whole =
      npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 48), }", std::string(640, 'x'));
  dir_.text(file("Log"), whole);
  const Status status = problem("Log");
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), "file is cut off: header promises 768 bytes, 640 are there");
}

TEST_F(BadInput, WrongMagic) {
  dir_.text(file("Conv"), std::string("PK\3\4") + std::string(100, 'z'));
  EXPECT_EQ(problem("Conv").message(), "not an npy file (starts with 50 4b 03 04)");
}

TEST_F(BadInput, EmptyFile) {
  dir_.text(file("Empty"), "");
  EXPECT_EQ(problem("Empty").message(), "file is empty (0 bytes)");
}

TEST_F(BadInput, FileThatEndsInItsHeader) {
  const std::string whole = npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "");
  for (size_t length : {3u, 8u, 11u, 30u}) {
    dir_.text(file("Head"), whole.substr(0, length));
    EXPECT_EQ(problem("Head").message(),
              "file is cut off inside its header (" + std::to_string(length) + " bytes are there)");
  }
}

TEST_F(BadInput, HeaderThatNoFileCanKeep) {
  dir_.text(file("Huge"),
            npy_text("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "x"));
  EXPECT_EQ(problem("Huge").code(), Code::kCorrupt);
  dir_.text(file("Huge"), npy_text("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846975,), }", "x"));
  EXPECT_EQ(problem("Huge").code(), Code::kCorrupt);
  dir_.text(file("Huge"), npy_text("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", "x"));
  EXPECT_EQ(problem("Huge").code(), Code::kCorrupt);
}

TEST_F(BadInput, HeaderWithoutSense) {
  for (const char* text : {"", "{", "{'descr': '<f4'}", "{'descr': 3, 'fortran_order': 0, 'shape': 'x'}", "garbage"}) {
    dir_.text(file("Odd"), npy_text(text, "12345678"));
    EXPECT_EQ(problem("Odd").code(), Code::kCorrupt) << text;
  }
}

TEST_F(BadInput, ObjectArraysComplexNumbersAndText) {
  for (const char* descr : {"|O", "<c8", "<c16", "<U2", "|S3", "<M8[ns]"}) {
    dir_.text(file("Odd"), npy_text(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (1,), }",
                                    std::string(16, 'x')));
    EXPECT_EQ(problem("Odd").code(), Code::kUnsupported) << descr;
  }
}

TEST_F(BadInput, DeviceFormats) {
  for (const char* format : {"FRACTAL_NZ", "NC1HWC0", "C1HWNCoC0"}) {
    TempDir own;
    dir_.npy(file("Conv", format), {1});
    const Status status = problem("Conv");
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_NE(status.message().find(std::string("device format ") + format), std::string::npos);
    std::filesystem::remove(dir_.at(file("Conv", format)));
  }
}

TEST_F(BadInput, DirectoryInPlaceOfAFile) {
  dir_.directory(file("Dir"));
  const Status status = problem("Dir");
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_EQ(status.message(), "cannot be read: it is a directory, not a file");
}

TEST_F(BadInput, PipeInPlaceOfAFileDoesNotHoldUs) {
  ASSERT_EQ(::mkfifo(dir_.at(file("Pipe")).c_str(), 0600), 0);
  EXPECT_EQ(problem("Pipe").message(), "cannot be read: it is not a regular file");
}

TEST_F(BadInput, LinkInACircle) {
  const std::string name = file("Loop");
  dir_.link(name, dir_.at(name));
  const Status status = problem("Loop");
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_NE(status.message().find("cannot be opened: Too many levels of symbolic links"), std::string::npos);
}

TEST_F(BadInput, LongerFilesAreReadAndNoted) {
  dir_.text(file("Long"),
            npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", bytes_of<float>({1, 2, 3})));
  auto session = open(dir_.path());
  const TensorId id = id_of(*session, "Default_Long-op0", 0);
  EXPECT_EQ(elements(*session, id), (std::vector<double>{1, 2}));
  EXPECT_EQ(session->describe(id)->note, "the file holds 4 bytes more than header promises");
}

TEST_F(BadInput, Float16WrittenInFourBytesIsFloat32) {
  dir_.text(file("Wide"), npy_text("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", bytes_of<float>({1, 2})));
  dir_.text(file("Half"), npy_text("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", bytes_of<uint16_t>({0x3c00, 0x4000})));
  auto session = open(dir_.path());
  const TensorId id = id_of(*session, "Default_Wide-op0", 0);
  EXPECT_EQ(elements(*session, id), (std::vector<double>{1, 2}));
  EXPECT_EQ(session->describe(id)->dtype, DType::kFloat32);
  EXPECT_EQ(session->describe(id)->note, "the header says float16, but the file holds four bytes for each element: read as float32");
  EXPECT_EQ(session->describe(id_of(*session, "Default_Half-op0", 0))->dtype, DType::kFloat16);
}

TEST_F(BadInput, OtherWritersOrdersAreTurned) {
  dir_.text(file("Columns"), npy_text("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                                      bytes_of<float>({0, 3, 1, 4, 2, 5})));
  dir_.text(file("Big"),
            npy_text("{'descr': '>i2', 'fortran_order': False, 'shape': (3,), }", std::string("\0\1\1\0\xff\xfe", 6)));
  dir_.text(file("Both"), npy_text("{'descr': '>u4', 'fortran_order': True, 'shape': (2, 2), }",
                                   std::string("\0\0\0\1\0\0\0\3\0\0\0\2\0\0\0\4", 16), 2));
  auto session = open(dir_.path());
  EXPECT_EQ(elements(*session, "Default_Columns-op0", 0), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements(*session, "Default_Big-op0", 0), (std::vector<double>{1, 256, -2}));
  EXPECT_EQ(elements(*session, "Default_Both-op0", 0), (std::vector<double>{1, 2, 3, 4}));
}

TEST_F(BadInput, HeadersLongerThanOnePageAreRead) {
  dir_.text(file("Wide"),
            npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" + std::string(70000, ' '),
                     bytes_of<float>({1, 2}), 3));
  auto session = open(dir_.path());
  EXPECT_EQ(elements(*session, "Default_Wide-op0", 0), (std::vector<double>{1, 2}));
}

TEST_F(BadInput, EmptyTensorsAreTensors) {
  dir_.text(file("None"), npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", ""));
  auto session = open(dir_.path());
  const Result<TensorInfo> info = session->describe(id_of(*session, "Default_None-op0", 0));
  EXPECT_TRUE(info->problem.ok()) << info->problem.message();
  EXPECT_EQ(info->shape, (Shape{0, 3}));
  EXPECT_EQ(info->count, 0u);
}

TEST_F(BadInput, WidenedBfloat16IsFloat32) {
  dir_.npy(file("Wide", "DefaultFormat", "bfloat16"), {1.5});
  dir_.text(file("Narrow", "DefaultFormat", "bfloat16"),
            npy_text("{'descr': '<T2', 'fortran_order': False, 'shape': (1,), }", std::string("\xc0\x3f", 2)));
  auto session = open(dir_.path());
  EXPECT_EQ(session->describe(id_of(*session, "Default_Wide-op0", 0))->dtype, DType::kFloat32);
  EXPECT_EQ(session->describe(id_of(*session, "Default_Narrow-op0", 0))->dtype, DType::kBFloat16);
  EXPECT_EQ(elements(*session, "Default_Narrow-op0", 0), (std::vector<double>{1.5}));
}

class ChangingFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<double> values(100000, 1);
    dir_.npy(file("Add"), f32({100000}, values));
    session_ = open(dir_.path());
    id_ = id_of(*session_, "Default_Add-op0", 0);
    ASSERT_TRUE(session_->describe(id_)->problem.ok());
  }
  void cut(uint64_t bytes) { std::filesystem::resize_file(dir_.at(file("Add")), bytes); }

  TempDir dir_;
  std::unique_ptr<Session> session_;
  TensorId id_;
};

TEST_F(ChangingFile, ShrinksBeforeItIsOpened) {
  cut(1000);
  const auto opened = session_->open_elements(id_);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::kCorrupt);
  EXPECT_NE(opened.status().message().find("file is cut off"), std::string::npos);
}

TEST_F(ChangingFile, ABadBlockIsAnErrorOfThisTensor) {
  auto opened = session_->open(id_);
  ASSERT_TRUE(opened.ok());
  test::FaultyDisk disk;
  disk.bad_from = 50000;
  disk.most_bytes = 999;
  std::vector<std::byte> block(4 * 1000);
  EXPECT_TRUE(opened->reader->read(0, block).ok());
  const Status status = opened->reader->read(90000, block);
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_NE(status.message().find("cannot be read at byte "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(": Input/output error"), std::string::npos) << status.message();
}

TEST_F(ChangingFile, ShrinksWhileItIsRead) {
  auto opened = session_->open(id_);
  ASSERT_TRUE(opened.ok());
  std::vector<std::byte> block(4 * 1000);
  ASSERT_TRUE(opened->reader->read(0, block).ok());
  cut(50000);
  const Status status = opened->reader->read(90000, block);
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_NE(status.message().find("shrank while it was read"), std::string::npos);
  EXPECT_EQ(session_->load(id_).status().code(), Code::kCorrupt);
}

TEST_F(ChangingFile, IsJudgedAsOneOfTheValuesThatItHeldNeverAsAMixture) {
  // 1000 doubles of one run, 10 halves of the next: under each of its names the file is one or the other, never a mixture.
  dir_.npy("a.npy", make_tensor(DType::kFloat64, {1000}, std::vector<double>(1000, 3)));
  dir_.npy("b.npy", make_tensor(DType::kFloat16, {10}, std::vector<double>(10, 5)));
  std::filesystem::copy_file(dir_.at("a.npy"), dir_.at(file("Add")), std::filesystem::copy_options::overwrite_existing);
  Watchpoint watch;
  watch.id = 1;
  watch.rule = "asked";
  watch.on = Selector::parse("=Default_Add-op0").value();
  watch.expression = std::get<Expression>(parse_when("mean(abs(x)) > 0").value());
  std::atomic<bool> done = false;
  std::thread run([&] {
    while (!done) {
      for (const char* name : {"a.npy", "b.npy"}) {
        std::filesystem::copy_file(dir_.at(name), dir_.at("next"), std::filesystem::copy_options::overwrite_existing);
        std::filesystem::rename(dir_.at("next"), dir_.at(file("Add")));
      }
    }
  });
  for (int i = 0; i < 300; ++i) {
    auto session = open(dir_.path());
    const auto result = check(*session, std::span(&watch, 1), {.threads = 1});
    EXPECT_TRUE(result.ok());
    if (!result || result->hits.size() != 1) {
      ADD_FAILURE() << (result && !result->not_checked.empty() ? result->not_checked[0].reason : "no hit");
      break;
    }
    const Hit& hit = result->hits[0];
    const bool first = hit.dtype == DType::kFloat64;
    EXPECT_EQ(hit.dtype, first ? DType::kFloat64 : DType::kFloat16);
    EXPECT_EQ(hit.stats.dtype, hit.dtype);
    EXPECT_EQ(hit.shape, first ? Shape{1000} : Shape{10});
    EXPECT_EQ(hit.stats.count, first ? 1000u : 10u);
    EXPECT_EQ(hit.details.at(0).second, first ? "3" : "5");
  }
  done = true;
  run.join();
}

TEST_F(ChangingFile, VanishesBeforeItIsOpened) {
  std::filesystem::remove(dir_.at(file("Add")));
  EXPECT_EQ(session_->open_elements(id_).status().code(), Code::kIoError);
  EXPECT_EQ(problem_of(*session_, id_).message(), "cannot be opened: No such file or directory");
}

TEST_F(ChangingFile, VanishesWhileItIsReadAndIsReadToTheEnd) {
  auto opened = session_->open(id_);
  ASSERT_TRUE(opened.ok());
  std::filesystem::remove(dir_.at(file("Add")));
  std::vector<std::byte> all(4 * 100000);
  EXPECT_TRUE(opened->reader->read(0, all).ok());
}

TEST_F(ChangingFile, AFileThatIsBeingWrittenIsCalledSo) {
  cut(1000);
  EXPECT_TRUE(reports(*session_, ".npy", "the dump may still be written"));
}

TEST_F(ChangingFile, SeveralThreadsReadOneTensor) {
  std::vector<double> sums(4);
  std::vector<std::thread> threads;
  for (double& sum : sums) {
    threads.emplace_back([&] {
      const std::vector<double> values = elements(*session_, id_);
      for (double value : values) sum += value;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, (std::vector<double>(4, 100000)));
}

TEST(BadDirectory, StrangeNamesAreCountedAndNamed) {
  TempDir dir;
  dir.npy(file("Add"), {1});
  dir.text(kStep + "core.1234", "x");
  dir.text(kStep + "Add.Default_Add-op0.0.0.x.output.0.DefaultFormat.Float32.npy", "x");
  dir.text(kStep + "Conv2D.Default_Conv2D-op0.json", "{}");
  dir.directory(kStep + "subdirectory");
  auto session = open(dir.path());
  EXPECT_EQ(session->inspect().other_files, 4u);
  EXPECT_TRUE(reports(*session, "/0/0", "3 names are not those of tensor files"));
  EXPECT_EQ(all_tensors(*session, 0).size(), 1u);
}

TEST(BadDirectory, AFileInPlaceOfAStepIsTold) {
  TempDir dir;
  dir.npy(file("Add"), {1});
  dir.text("rank_0/Net/0/1", "x");
  auto session = open(dir.path());
  EXPECT_TRUE(reports(*session, "/0/1", "is a file where a directory"));
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0}));
}

TEST(BadDirectory, EmptyStepsHaveNoData) {
  TempDir dir;
  dir.npy(file("Add"), {1});
  dir.directory("rank_0/Net/0/1");
  auto session = open(dir.path());
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0}));
}

}  // namespace
}  // namespace msdbg::testing
