// The text form of a condition: `TL max_gt=3`, `TZ 50`, `WNC rtol 1e-3, atol 0`.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/watch.h"

namespace msdbg {
namespace {

/// Words between blanks, commas and equal signs.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  size_t at = 0;
  constexpr std::string_view kBetween = " \t\r\n,=";
  while ((at = text.find_first_not_of(kBetween, at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> parse_value(std::string_view word, bool is_bool) {
  if (is_bool) {
    const std::string lower = to_lower(word);
    if (lower == "true") return 1.0;
    if (lower == "false") return 0.0;
  }
  return parse_double(word);
}

Status invalid(const ConditionSpec& spec, std::string what) {
  return Status(Code::kInvalidArgument, fmt::format("{}: {}", spec.id, what));
}

}  // namespace

Result<Condition> parse_condition(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty()) {
    return Status(Code::kInvalidArgument, "an empty condition: write an id or abbreviation, e.g. TO or 'TL max_gt=3'");
  }
  Result<const ConditionSpec*> found = find_condition(words[0]);
  if (!found) return Status(Code::kInvalidArgument, found.status().message());
  const ConditionSpec& spec = **found;

  std::map<std::string, double, std::less<>> params;
  if (words.size() == 2 && parse_double(words[1])) {
    auto first = std::find_if(spec.params.begin(), spec.params.end(),
                              [](const ParamSpec& param) { return param.kind == ParamKind::kCheck; });
    if (first == spec.params.end()) return invalid(spec, fmt::format("takes no parameter, {} was given", words[1]));
    params.emplace(first->name, *parse_double(words[1]));
    return make_condition(spec.id, params);
  }
  for (size_t i = 1; i < words.size(); i += 2) {
    const std::string_view name = words[i];
    if (parse_double(name)) {
      return invalid(spec, fmt::format("'{}': a parameter name is expected here: write NAME=VALUE", name));
    }
    if (i + 1 == words.size()) return invalid(spec, fmt::format("{} has no value: write {}=NUMBER", name, name));
    auto param =
        std::find_if(spec.params.begin(), spec.params.end(), [&](const ParamSpec& p) { return p.name == name; });
    const bool is_bool = param != spec.params.end() && param->is_bool;
    const std::optional<double> value = parse_value(words[i + 1], is_bool);
    if (!value) {
      return invalid(spec,
                     fmt::format("{} = '{}' is not {}", name, words[i + 1], is_bool ? "true or false" : "a number"));
    }
    if (!params.emplace(name, *value).second) return invalid(spec, fmt::format("{} is given twice", name));
  }
  return make_condition(spec.id, params);
}

}  // namespace msdbg
