// Writes the first inputs of the fuzz targets from the test data: make_seeds DATA OUT. tools/fuzz --seeds calls it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "fuzz/input.h"
#include "fuzz/prompt_commands.h"
#include "msdbg/shared.h"
#include "session/dump/index_bytes.h"
#include "session/kept_stats_bytes.h"
#include "session/live/recorder.h"
#include "support/container_file.h"
#include "support/recorded_conversation.h"
#include "support/torch_file.h"

namespace fs = std::filesystem;
using namespace msdbg;

namespace {

constexpr uintmax_t kLargest = 60000;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// After two length bytes, as Input::chunk() reads it.
std::string chunk(std::string_view bytes) {
  bytes = bytes.substr(0, 0xFFFF);
  return std::string{static_cast<char>(bytes.size()), static_cast<char>(bytes.size() >> 8)} + std::string(bytes);
}

class Seeds {
 public:
  Seeds(fs::path data, fs::path out) : data_(std::move(data)), out_(std::move(out)) {}

  void write_all() {
    files();
    dumps();
    conversations();
    texts();
    prompt();
    calls();
    statistics();
    jobs();
    index();
    torch();
    containers();
    msprobe();
  }

 private:
  void put(const std::string& target, std::string_view bytes) {
    if (bytes.size() > kLargest) return;
    fs::create_directories(out_ / target);
    std::ofstream(out_ / target / std::to_string(next_[target]++), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  void files() {
    std::string names;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(data_)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = entry.path().filename(), ending = entry.path().extension();
      if (ending == ".npy" || ending == ".csv") names += name + "\n";
      if (entry.file_size() > kLargest) continue;
      const std::string content = content_of(entry.path());
      if (name == "statistic.csv") put("statistic_csv", content.substr(0, 6000));
      // Only a few of thousands of similar files.
      if (ending == ".npy" && content.size() < 1500 && next_["npy_header"] < 100) {
        put("npy_header", content.substr(0, 128));
        put("npy_file", std::string(1, '\0') + content);
      }
      if (ending == ".pt" && content.size() < 4000 && next_["pt_file"] < 100) put("pt_file", std::string(1, '\0') + content);
      if (ending == ".pb") {
        put("graph_file", content);
        put("graph_wire", std::string(1, '\0') + chunk(std::string("\x0a") + varint(content.size()) + content));
      }
      if (ending == ".safetensors" && content.size() < 16000) put("safetensors", std::string(1, '\0') + content);
      if (ending != ".ckpt" || content.size() >= 16000) continue;
      put("checkpoint", content);
      const bool records = content.starts_with('\x0a');
      for (char mode = 0; mode < 7; ++mode) {
        if (records == (mode >= 3)) put("checkpoint_encrypted", std::string(1, mode) + (records ? chunk(content) : content));
      }
    }
    for (size_t at = 0; at < names.size(); at += 40000) put("file_name", names.substr(at, 3000));
  }

  /// The dumps, each without its large files, and with one of each file name that differs only in its number.
  void dumps() {
    for (const fs::directory_entry& dump : fs::directory_iterator(data_ / "dumps")) {
      std::string out;
      std::map<std::string, int> alike;
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dump)) {
        if (!entry.is_regular_file() || entry.file_size() > 3000) continue;
        const std::string ending = entry.path().extension();
        if (ending == ".npy" && ++alike[entry.path().parent_path()] > 4) continue;
        out += chunk(entry.path().lexically_relative(dump.path()).string()) + chunk(content_of(entry.path()));
      }
      put("dump", out);
    }
  }

  /// The damaged dumps, and the beginnings of the real ones, which are cut there.
  void msprobe() {
    constexpr size_t kTable = 9000, kTrace = 3000;
    std::vector<fs::path> folders;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(data_ / "msprobe")) {
      if (entry.path().filename() == "dump.json") folders.push_back(entry.path().parent_path());
    }
    std::sort(folders.begin(), folders.end());
    for (const fs::path& folder : folders) {
      const std::string table = content_of(folder / "dump.json").substr(0, kTable);
      put("msprobe_table", table);
      const std::string step = chunk(table) + chunk(content_of(folder / "stack.json").substr(0, kTrace)) +
                               chunk(content_of(folder / "construct.json").substr(0, kTrace));
      put("msprobe_dump", step + step);
    }
    const std::string tensor = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [8], "Max": NaN, "Min": -1.5})";
    const std::string operation = R"({"class_type": "torch.distributed.P2POp", "tensor": )" + tensor +
                                  R"(, "op": "irecv", "peer": 1, "tag": 0, "group_id": "a1"})";
    put("msprobe_table", R"({"data": {"Distributed.batch_isend_irecv.0.forward": {"input_args": [[)" + operation +
                             R"(]], "input_kwargs": {}, "output": [[)" + operation + "]]}}}");
  }

  static std::string varint(uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
  }

  void conversations() {
    const std::string folder = data_ / "live";
    for (const std::string& name : test::conversation_names(folder)) {
      const auto conversation = test::load_conversation(folder, name);
      if (!conversation) fuzz::finding(conversation.status().message());
      put("rpcs", calls(*conversation));
      // Commands of every kind, with a few bytes each.
      std::string commands;
      for (char command = 0; command < 42; ++command) commands += {static_cast<char>(command * 5), 1, 0, 3};
      put("recording", chunk(commands) + recording(*conversation));
    }
  }

  /// The client's messages as actions of rpcs.cpp, the server's as actions of the owner.
  static std::string calls(const test::RecordedConversation& conversation) {
    std::string out;
    const auto& messages = conversation.messages;
    for (size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].is_server() && messages[i].rpc == live::Rpc::kWaitCmd) {
        debugger::EventReply reply;
        (void)reply.ParseFromString(messages[i].bytes);
        if (reply.has_set_cmd()) out += {16 + 4, '\x0f'};
        if (reply.has_run_cmd()) out += {16 + 5, 1};
        if (reply.has_view_cmd()) out += std::string{16 + 1, static_cast<char>(i), 11, 11, 2, 3} + chunk(std::string(24, 'A')) +
                                         std::string{11, 11, 2, 3} + chunk(std::string(24, 'A'));
      }
      if (!messages[i].is_client()) continue;
      size_t count = 1;
      while (count < 7 && i + count < messages.size() && messages[i + count].is_client() && messages[i + count].rpc == messages[i].rpc &&
             messages[i + count].index > messages[i].index) {
        ++count;
      }
      out += {static_cast<char>(messages[i].rpc), static_cast<char>(count << 3)};
      for (size_t k = 0; k < count; ++k) out += chunk(messages[i + k].bytes);
      i += count - 1;
    }
    return out;
  }

  std::string recording(const test::RecordedConversation& conversation) {
    const std::string path = out_ / "recording.tmp";
    fs::remove(path);
    {
      auto recorder = live::Recorder::create(path);
      if (!recorder) fuzz::finding(recorder.status().message());
      std::map<live::Rpc, uint64_t> open;
      uint64_t calls = 0;
      for (const test::RecordedMessage& message : conversation.messages) {
        if (message.is_client()) {
          if (message.index <= 0) open[message.rpc] = ++calls;
          const std::string_view bytes = message.bytes;
          (*recorder)->client(0, message.rpc, open[message.rpc], static_cast<uint32_t>(std::max(message.index, 0)), {&bytes, 1});
        } else if (message.is_server()) {
          (*recorder)->server(0, message.rpc, open[message.rpc], message.bytes);
        } else {
          (*recorder)->note(0, message.text);
        }
      }
      (*recorder)->disconnected(0, "the training has closed its connection");
      if (!(*recorder)->flush().ok()) fuzz::finding("no recording can be written");
    }
    const std::string content = content_of(path);
    fs::remove(path);
    return content;
  }

  void texts() {
    for (const char* text :
         {"any(isnan(x))", "percent(abs(x) > 3 * std(x)) > 5", "mean(abs(x - prev)) / mean(abs(prev)) > 0.1", "x * 2 + 1",
          "count(finite(x) == 0)", "sqrt(sum(x ^ 2)) == norm2(x)", "max(x) - min(x) < dtype_eps and size > 3",
          "not all(isfinite(x)) or step >= 10 and rank == 0", "x > 1 != (prev > 1)", "floor(exp(-x)) + log2(abs(x))",
          "min(x, 0.5) <= max(prev, -inf)", "norm1(x) + norminf(x)"}) {
      for (const char type : {0, 9, 10, 11, 12}) {
        put("expression", std::string{type, type} + text + "\n" +
                              std::string("\0\0\x80\x3f\xcd\xcc\x4c\xbe\0\0\xc0\x7f\0\0\x80\xff\1\2\3\4\5\6\7\x08", 24) +
                              std::string("\0\0\x80\xbf\x9a\x99\x19\x3e\0\0\x20\x41\0\0\0\0\x08\7\6\5\4\3\2\1", 24));
      }
    }
    for (const char* text :
         {"*", "ReLU", "=Log-op0", "/fc[12].*op0$/", "@weight", "op:MatMul or op:ReLU", "scope:Default/network-Net", "stack:train.py:12",
          "rank:1 and not graph:0", "(@gradient or @parameter) and Default/*", "/(a*)*b/i", "\"quoted name\"", "op:{MatMul,ReLU}"}) {
      put("selector", text);
    }
  }

  void prompt() {
    const char* const words[] = {"",
                                 "fc.weight",
                                 "Log-op0:0",
                                 "* tensor_overflow",
                                 "** --when x > 1",
                                 "@weight TL max_gt=3",
                                 "#1",
                                 "--help",
                                 "mean fc.weight",
                                 "op:ReLU --steps 0:3",
                                 "2",
                                 "Log-op0:0[0:2,:]",
                                 "--format json"};
    std::mt19937 random(1);
    for (size_t command = 0; command < std::size(fuzz::kCommands); ++command) {
      std::string lines(1, static_cast<char>(command % 2));
      for (int line = 0; line < 4; ++line) {
        lines += static_cast<char>(line == 0 ? command : random() % std::size(fuzz::kCommands));
        lines += words[random() % std::size(words)];
        lines += '\n';
      }
      put("prompt", lines);
    }
  }

  // Any bytes are calls; these reach a large part of the functions.
  void calls() {
    std::mt19937 random(1);
    for (int i = 0; i < 64; ++i) {
      std::string bytes(16 + random() % 200, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random() % 256);
      put("lua_arguments", bytes);
    }
  }

  void statistics() {
    const std::vector<float> elements = {1, -2, 0, INFINITY, NAN, 3, 4, 5};
    const TensorView view{DType::kFloat32, {}, reinterpret_cast<const std::byte*>(elements.data()), 8};
    const StatsRequest request{{{0, 3}}, {{1e-5, 1e-8}}, true};
    for (const bool previous : {false, true}) {
      KeptStats entry;
      entry.info.dtype = view.dtype;
      entry.info.shape = {2, 4};
      entry.info.count = 8;
      if (previous) entry.request = request;
      entry.stats = previous ? compute_stats(view, view, request) : compute_stats(view);
      entry.previous = previous ? Previous::kPresent : Previous::kMissing;
      if (previous) entry.previous_id = TensorId{};
      entry.values = {{"max(x) > 2", ExpressionValue{true, 1, true, 5.0, 2.0}}, {"x == prev", std::nullopt}};
      put("kept_stats", encode(entry));
    }
  }

  // Handler, what items have in common, and two items, the second with the first as its previous value.
  void jobs() {
    TensorId id;
    id.step = 3;
    ByteWriter sets;
    sets.number(1);
    write_counts(sets, {{{0, 3}}, {{1e-5, 1e-8}}, true});
    sets.flag(true);   // change
    sets.flag(true);   // needs the previous value
    sets.number(1);
    sets.text("max(x) > 2");
    std::string measure = std::string(1, '\0') + chunk(sets.take());
    for (const bool previous : {false, true}) {
      ByteWriter item;
      write(item, id);
      item.text("");
      item.number(0);
      item.number(previous ? 2 : 0);
      if (previous) {
        write(item, TensorId{});
        item.text("");
      }
      item.flag(false);
      measure += chunk(item.take());
    }
    put("job_messages", measure);
    ByteWriter tolerance;
    for (const bool given : {true, false}) {
      tolerance.flag(given);
      if (given) tolerance.real(1e-3);
    }
    ByteWriter pair, single;
    for (int side = 0; side < 2; ++side) {
      write(pair, id);
      pair.text("");
    }
    pair.number(1);  // additions and operators on the path
    pair.number(1);
    put("job_messages", "\1" + chunk(tolerance.take()) + chunk(pair.take()));
    write(single, id);
    single.text("");
    put("job_messages", "\2" + chunk("") + chunk(single.take()));
  }

  void index() {
    std::vector<dump::DirectoryEntry> entries = {{"Add.Default_Add-op1.npy"}, {"Add.Default_Add-op10.npy"}, {"step", true}};
    put("index_bytes", dump::encode_listing(1, entries));
    put("index_bytes", dump::encode_part(2, std::vector<dump::IndexEntry>{{1, 100, 0, "first"}, {2, 100, 1, "second"}}));
  }

  void torch() {
    test::PickledTensor tensor;
    put("pt_file", "\x80" + tensor.bytes());
    tensor.strides = {1, 4};
    tensor.more = "}" + test::PickledTensor::text("neg") + "\x88s";
    put("pt_file", "\x80" + tensor.bytes());
    put("pt_file", std::string(1, '\0') + test::zip_of({{"x/data.pkl", tensor.bytes()}, {"x/data/0", std::string(96, 'A')}}, true));
  }

  void containers() {
    const test::HostShape image{2, 3, 1, 2, 2, false}, weights{8, 3, 1, 2, 2, false};
    const auto stored = [&](uint64_t type, uint64_t format, const test::DeviceMemory& memory, std::vector<int64_t> host) {
      const size_t item = type == test::kTypeFloat16 ? 2 : 1;
      return test::StoredTensor{type, format, memory.shape, host, std::string(memory.elements.size() * item, 'A')};
    };
    const std::pair<uint64_t, const char*> formats[] = {{1, "NHWC"},          {16, "HWCN"},      {3, "NC1HWC0"},  {4, "FRACTAL_Z"},
                                                        {13, "FRACTAL_Z_C04"}, {25, "C1HWNCoC0"}, {12, "NC1HWC0_C04"}};
    for (const auto& [number, name] : formats) {
      test::StoredContainer container;
      container.inputs = {stored(test::kTypeFloat16, number, test::device_memory(name, image, number == 12 ? 4 : 16), image.list())};
      container.outputs = {stored(test::kTypeInt8, test::kFormatFractalNz, test::fractal_nz({2, 5, 7}, 32), {2, 5, 7}),
                           {test::kTypeInt4, test::kFormatNd, {5}, std::vector<int64_t>{5}, "abc"}};
      put("container", container.bytes());
    }
    test::StoredContainer groups;
    test::DeviceMemory memory = test::grouped_weights(weights, 4, 16);
    memory.shape = {static_cast<int64_t>(memory.elements.size()) / 256, 1, 16, 16};
    groups.outputs = {stored(test::kTypeInt8, test::kFormatFractalZ, memory, weights.list())};
    groups.outputs[0].sub_format = 4;
    put("container", groups.bytes());
    test::HostShape volume{1, 3, 2, 2, 2, true};
    for (const auto& [number, name] : {std::pair<uint64_t, const char*>{32, "NDC1HWC0"}, {33, "FRACTAL_Z_3D"}}) {
      test::StoredContainer container;
      container.outputs = {stored(test::kTypeInt8, number, test::device_memory(name, volume, 16), volume.list())};
      container.outputs[0].inside = true;
      put("container", container.bytes());
    }
  }

  const fs::path data_, out_;
  std::map<std::string, int> next_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_seeds DATA OUT\n");
    return 2;
  }
  fs::create_directories(argv[2]);
  Seeds(argv[1], argv[2]).write_all();
}
