#include "script/predicate.h"

#include <fmt/format.h>

namespace msdbg::script {
namespace {

/// The prefix of call_watch_function()'s reason if the function raised an error.
constexpr std::string_view kRaised = "rule error: ";

Predicate function_predicate(lua_State* L, SessionBox& box, const std::string& call, std::shared_ptr<std::string> failure) {
  auto watch = std::make_shared<WatchBox>();
  watch->session = box.shared_from_this();
  lua_pushvalue(L, -1);
  watch->function = std::make_shared<FunctionRef>(*box.vm, L);
  watch->point.name = call;
  Predicate predicate;
  predicate.text = "a function";
  predicate.when = Predicate::Function([L, &box, watch, failure](const CheckedTensor& tensor) -> std::optional<bool> {
    if (!failure->empty()) return std::nullopt;
    const ScriptVerdict verdict = call_watch_function(L, box, *watch, tensor);
    if (verdict.verdict != Verdict::kNotChecked) return verdict.verdict == Verdict::kHit;
    const std::string name = fmt::format("{} step {}", box.session->tensor_name(tensor.id), tensor.id.step);
    if (verdict.reason.starts_with(kRaised))
      *failure = fmt::format("{}: option 'when' on {}: {}", watch->point.name, name, verdict.reason.substr(kRaised.size()));
    else log(LogLevel::kWarning, fmt::format("{}: {}: {}", watch->point.name, name, verdict.reason));
    return std::nullopt;
  });
  return predicate;
}

}  // namespace

ScriptPredicate::ScriptPredicate(lua_State* L, OptionTable& options, SessionBox& box, const std::string& call) {
  options.with("when", [&](int at) {
    if (lua_isfunction(L, at)) predicate_ = function_predicate(L, box, call, failure_);
    else predicate_ = value_or_throw(parse_predicate(text_argument(L, at, options.what("when") + " (text or function)")));
  });
}

void ScriptPredicate::throw_failure() const {
  if (failed()) throw ScriptError("invalid_argument", *failure_, true);
}

}  // namespace msdbg::script
