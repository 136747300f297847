// Tests of a page without a browser: whether its tags are closed, and what it would load.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace msdbg::testing {

/// Every tag is closed in the right order, attributes are quoted, `&` starts an entity. "" without errors, else the first error.
/// Skips the text of <style> and <script>, like a browser.
inline std::string malformed(std::string_view page) {
  std::vector<std::string> open;
  const auto fail = [&](size_t at, const std::string& what) { return what + " near: " + std::string(page.substr(at, 80)); };
  for (size_t at = 0; at < page.size();) {
    if (page[at] == '&') {
      const size_t end = page.find(';', at);
      if (end == std::string_view::npos || end - at > 8) return fail(at, "a bare &");
    }
    if (page[at] == '>') return fail(at, "a bare >");
    if (page[at] != '<') {
      ++at;
      continue;
    }
    if (page.substr(at, 9) == "<!DOCTYPE") {
      at = page.find('>', at) + 1;
      continue;
    }
    const bool closing = page.substr(at, 2) == "</";
    size_t name_end = at + (closing ? 2 : 1);
    const size_t name_begin = name_end;
    while (name_end < page.size() && (std::isalnum(static_cast<unsigned char>(page[name_end])) || page[name_end] == '-')) ++name_end;
    const std::string name(page.substr(name_begin, name_end - name_begin));
    if (name.empty()) return fail(at, "a bare <");
    size_t end = name_end;
    bool quoted = false;
    for (; end < page.size() && (quoted || page[end] != '>'); ++end) {
      if (page[end] == '"') quoted = !quoted;
      if (page[end] == '<') return fail(at, "a < inside a tag");
      if (!quoted && page[end] == '=' && page[end + 1] != '"') return fail(at, "an attribute without quotes");
    }
    if (end == page.size()) return fail(at, "a tag that does not end");
    if (closing) {
      if (open.empty() || open.back() != name) return fail(at, "closes what is not open");
      open.pop_back();
    } else if (page[end - 1] != '/') {
      open.push_back(name);
      if (name == "style" || name == "script") {
        end = page.find("</" + name + ">", end);
        if (end == std::string_view::npos) return fail(at, "a tag that is not closed");
        --end;
      }
    }
    at = end + 1;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

/// Texts in the page that would make a browser fetch something.
inline std::vector<std::string> loads(std::string_view page) {
  std::vector<std::string> found;
  for (std::string_view sign : {"http:", "https:", "src=", "@import", "url(", "href=\"", "fetch(", "XMLHttpRequest", "srcset"}) {
    for (size_t at = page.find(sign); at != std::string_view::npos; at = page.find(sign, at + 1)) {
      const std::string_view rest = page.substr(at, 40);
      if (rest.starts_with("href=\"#") || rest.starts_with("href=\"data:,\"") || rest.starts_with("url(#")) continue;
      found.emplace_back(rest);
    }
  }
  return found;
}

/// The text between the tags `<name ...>` and `</name>`, for each.
inline std::vector<std::string> contents(std::string_view page, const std::string& name) {
  std::vector<std::string> all;
  for (size_t at = page.find("<" + name); at != std::string_view::npos; at = page.find("<" + name, at + 1)) {
    const size_t begin = page.find('>', at) + 1, end = page.find("</" + name + ">", begin);
    if (end == std::string_view::npos) break;
    all.emplace_back(page.substr(begin, end - begin));
  }
  return all;
}

/// The values of an attribute, in the order of the page.
inline std::vector<std::string> attributes(std::string_view page, const std::string& name) {
  std::vector<std::string> all;
  const std::string sign = " " + name + "=\"";
  for (size_t at = page.find(sign); at != std::string_view::npos; at = page.find(sign, at + 1)) {
    const size_t begin = at + sign.size();
    all.emplace_back(page.substr(begin, page.find('"', begin) - begin));
  }
  return all;
}

/// Duplicate ids, and links and labels to missing ids.
inline std::vector<std::string> lost_places(std::string_view page) {
  std::vector<std::string> found;
  std::set<std::string> ids;
  for (const std::string& id : attributes(page, "id")) {
    if (!ids.insert(id).second) found.push_back("twice: " + id);
  }
  for (const std::string& link : attributes(page, "href")) {
    if (link.starts_with("#") && !ids.contains(link.substr(1))) found.push_back("nowhere: " + link);
  }
  for (const std::string& label : attributes(page, "aria-labelledby")) {
    if (!ids.contains(label)) found.push_back("no label: " + label);
  }
  return found;
}

}  // namespace msdbg::testing
