#include "session/msprobe/identity.h"

#include <fmt/format.h>

#include <algorithm>

namespace msdbg::msprobe {
namespace {

std::string frame_text(const StackFrame& frame) { return fmt::format("{}:{}", frame.file.get(), frame.line); }

bool is_of_library(const StackFrame& frame) {
  return frame.file->find("/site-packages/") != std::string::npos || frame.file->find("/dist-packages/") != std::string::npos;
}

}  // namespace

bool CallIdentity::fits(const CallIdentity& other) const {
  const auto agree = [](const std::string& a, const std::string& b) { return a.empty() || b.empty() || a == b; };
  return subject == other.subject && agree(parameter, other.parameter) && agree(frames, other.frames) && agree(caller, other.caller);
}

void CallIdentity::learn(const CallIdentity& other) {
  if (frames.empty()) frames = other.frames;
  if (caller.empty()) caller = other.caller;
  if (parameter.empty()) parameter = other.parameter;
}

std::string CallIdentity::frames_of(const SharedList<StackFrame>& stack) {
  if (stack.empty()) return "";
  const auto user = std::find_if(stack.begin(), stack.end(), [](const StackFrame& frame) { return !is_of_library(frame); });
  std::string text = frame_text(stack.front());
  if (user != stack.end() && user != stack.begin()) text += " " + frame_text(*user);
  return text;
}

}  // namespace msdbg::msprobe
