#include "script/push_answer.h"

#include <algorithm>

#include "script/objects.h"

namespace msdbg::script {
namespace {

/// The record classes (scripts/msdbg/printed_results.lua) of a list, of its elements, or of a table, by key.
struct Classes {
  std::string_view key;
  const char *list, *element;
};
constexpr Classes kClasses[] = {
    {"causes", "hits", "cause"}, {"chain", nullptr, "tensor_place"}, {"coverage", nullptr, "coverage"},
    {"culprits", "hits", "diff_entry"}, {"hits", "hits", "hit"}, {"inputs", nullptr, "origin_input"}, {"losses", nullptr, "tensor_place"},
    {"explained", "hits", "not_checked"}, {"grown", nullptr, "tensor_place"}, {"not_checked", "hits", "not_checked"}, {"only_a", nullptr, "unmatched"},
    {"only_b", nullptr, "unmatched"},
    {"origins", "hits", "origin"}, {"parameter_diff", nullptr, "parameter_diff"}, {"params", nullptr, "param"},
    {"before", nullptr, "tensor_place"}, {"overflows", nullptr, "tensor_place"}, {"overwritten", nullptr, "tensor_place"},
    {"put_in", nullptr, "tensor_place"}, {"random", "hits", "diff_entry"}, {"sound_before", nullptr, "tensor_place"},
    {"source", nullptr, "source"}, {"stack", nullptr, "frame"}, {"stats", nullptr, "stats"},
    {"tensors", "hits", "diff_entry"}, {"update", nullptr, "tensor_place"}};

Classes classes_of(std::string_view key) {
  const auto* found = std::find_if(std::begin(kClasses), std::end(kClasses), [&](const Classes& each) { return each.key == key; });
  return found == std::end(kClasses) ? Classes{} : *found;
}

void set_class(lua_State* L, const char* name) {
  if (name != nullptr) set_result_class(L, name);
}

/// No class for this key and below it.
constexpr std::string_view kPlain = "plain tables";

void push_tree(lua_State* L, const Answer& value, std::string_view key) {
  if (!lua_checkstack(L, 4)) throw ScriptError("out_of_memory", "the Lua stack is full");
  const Classes classes = classes_of(key);
  switch (value.type()) {
    case Answer::value_t::object:
      lua_createtable(L, 0, static_cast<int>(value.size()));
      for (auto it = value.begin(); it != value.end(); ++it) {
        push_tree(L, *it, key == kPlain ? kPlain : std::string_view(it.key()));
        lua_setfield(L, -2, it.key().c_str());
      }
      return set_class(L, classes.element);
    case Answer::value_t::array:
      lua_createtable(L, static_cast<int>(value.size()), 0);
      for (size_t i = 0; i < value.size(); ++i) {
        push_tree(L, value[i], key == "chains" ? "chain" : key);
        lua_rawseti(L, -2, static_cast<int>(i) + 1);
      }
      if (key == kPlain) return;
      // A list of numbers or texts prints as a list.
      return set_class(L, classes.list != nullptr ? classes.list : value.empty() || !value[0].is_structured() ? "list" : nullptr);
    case Answer::value_t::string: return push(L, value.get_ref<const std::string&>());
    case Answer::value_t::boolean: return push(L, value.get<bool>());
    case Answer::value_t::number_integer:
    case Answer::value_t::number_unsigned:
    case Answer::value_t::number_float: return push(L, value.get<double>());
    default: return lua_pushnil(L);
  }
}

}  // namespace

void push_answer(lua_State* L, const Answer& value, std::string_view key) { push_tree(L, value, key); }
void push_plain_answer(lua_State* L, const Answer& value) { push_tree(L, value, kPlain); }

}  // namespace msdbg::script
