#include "support/recorded_conversation.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "debug_grpc.pb.h"
#include "support/recorded_graphs.h"

namespace msdbg::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::json;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

double number(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::stod(text);
}

int64_t integer(const json& value) {
  if (!value.is_string()) return value.get<int64_t>();
  const std::string text = value.get<std::string>();
  if (text == "DT_FLOAT32") return 11;  // the only DataType that occurs; our schema has a number
  return std::stoll(text);
}

/// protobuf's own JSON reader expects `bytes` as base64 and refuses numbers that an enum does not contain; the recordings have
/// both.
class Filler {
 public:
  explicit Filler(const std::string& folder) : folder_(folder) {}

  void fill(Message* message, const json& object) const {
    for (const auto& [name, value] : object.items()) {
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
      if (field == nullptr) throw std::runtime_error("no field " + name + " in " + message->GetTypeName());
      if (!field->is_repeated()) {
        set(message, field, value);
        continue;
      }
      for (const json& element : value) set(message, field, element);
    }
  }

 private:
  void set(Message* message, const FieldDescriptor* field, const json& value) const {
    const Reflection& reflection = *message->GetReflection();
    const bool many = field->is_repeated();
    const auto put = [&](auto set_one, auto add_one, auto typed) {
      many ? (reflection.*add_one)(message, field, typed) : (reflection.*set_one)(message, field, typed);
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return fill(many ? reflection.AddMessage(message, field) : reflection.MutableMessage(message, field), value);
      case FieldDescriptor::CPPTYPE_BOOL:
        return put(&Reflection::SetBool, &Reflection::AddBool, value.get<bool>());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put(&Reflection::SetFloat, &Reflection::AddFloat, static_cast<float>(number(value)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&Reflection::SetDouble, &Reflection::AddDouble, number(value));
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&Reflection::SetInt32, &Reflection::AddInt32, static_cast<int32_t>(integer(value)));
      case FieldDescriptor::CPPTYPE_INT64:
        return put(&Reflection::SetInt64, &Reflection::AddInt64, integer(value));
      case FieldDescriptor::CPPTYPE_UINT32:
        return put(&Reflection::SetUInt32, &Reflection::AddUInt32, static_cast<uint32_t>(integer(value)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&Reflection::SetUInt64, &Reflection::AddUInt64, static_cast<uint64_t>(integer(value)));
      case FieldDescriptor::CPPTYPE_ENUM:
        return put(&Reflection::SetEnumValue, &Reflection::AddEnumValue, enum_number(field, value));
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string text = value.is_object() ? left_out(value) : value.get<std::string>();
        many ? reflection.AddString(message, field, std::move(text))
             : reflection.SetString(message, field, std::move(text));
        return;
      }
    }
  }

  static int enum_number(const FieldDescriptor* field, const json& value) {
    if (value.is_number()) return value.get<int>();
    const auto* known = field->enum_type()->FindValueByName(value.get<std::string>());
    if (known == nullptr)
      throw std::runtime_error("no value " + value.get<std::string>() + " in " + field->full_name());
    return known->number();
  }

  std::string left_out(const json& value) const {
    const size_t size = value.at("size").get<size_t>();
    const auto& chunks = recorded_chunks(folder_);
    const auto chunk = chunks.find(value.at("sha256").get<std::string>().substr(0, 8));
    std::string bytes = chunk != chunks.end() ? chunk->second : from_hex(value.at("head").get<std::string>());
    bytes.resize(size);
    return bytes;
  }

  const std::string& folder_;
};

std::unique_ptr<Message> message_of(live::Rpc rpc, bool reply) {
  if (reply) return std::make_unique<debugger::EventReply>();
  switch (rpc) {
    case live::Rpc::kWaitCmd:
    case live::Rpc::kSendMetadata:
      return std::make_unique<debugger::Metadata>();
    case live::Rpc::kSendGraph:
    case live::Rpc::kSendMultiGraphs:
      return std::make_unique<debugger::Chunk>();
    case live::Rpc::kSendTensors:
      return std::make_unique<debugger::TensorProto>();
    case live::Rpc::kSendTensorBase:
      return std::make_unique<debugger::TensorBase>();
    case live::Rpc::kSendTensorStats:
      return std::make_unique<debugger::TensorSummary>();
    case live::Rpc::kSendWatchpointHits:
      return std::make_unique<debugger::WatchpointHit>();
    case live::Rpc::kSendHeartbeat:
      return std::make_unique<debugger::Heartbeat>();
  }
  return nullptr;
}

RecordedMessage parse_line(const json& line, const std::string& folder) {
  RecordedMessage message;
  const std::string direction = line.at("dir").get<std::string>();
  const json& body = line.at("message");
  message.at_ms = line.at("t_ms").get<double>();
  if (direction == "note") {
    message.text = body.at("text").get<std::string>();
    if (body.contains("body")) message.text += " " + body.at("body").dump();
    return message;
  }
  if (direction != "client" && direction != "server") throw std::runtime_error("direction " + direction);
  message.direction = direction == "client" ? RecordedMessage::Direction::kClient : RecordedMessage::Direction::kServer;
  const std::string name = line.at("rpc").get<std::string>();
  const auto rpc = live::find_rpc(name);
  if (!rpc) throw std::runtime_error("rpc " + name);
  message.rpc = *rpc;
  if (line.contains("n")) message.index = line.at("n").get<int>();
  if (body.contains("grpc_status")) {
    message.grpc_status = body.at("grpc_status").get<std::string>();
    message.text = body.value("details", std::string());
    return message;
  }
  const std::unique_ptr<Message> proto = message_of(*rpc, message.is_server());
  Filler(folder).fill(proto.get(), body);
  message.bytes = proto->SerializePartialAsString();
  return message;
}

}  // namespace

std::vector<std::string> conversation_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<RecordedConversation> load_conversation(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/" + name + ".jsonl");
  if (!file) return Status(Code::kIoError, "cannot open " + name + ".jsonl in " + folder);
  RecordedConversation conversation{name, {}};
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      conversation.messages.push_back(parse_line(json::parse(line), folder));
      conversation.messages.back().line = number;
    } catch (const std::exception& error) {
      return Status(Code::kCorrupt, name + " line " + std::to_string(number) + ": " + error.what());
    }
  }
  return conversation;
}

}  // namespace msdbg::test
