// A report to share: one page that shows what broke, where, and how it spread, with pictures, as a self-contained HTML file or as
// Markdown.
//
// The session's owner thread only. Writes nothing: returns the page as text. Both forms have the same contents in the same order;
// the same results at the same time give the same bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/analysis.h"
#include "msdbg/check.h"
#include "msdbg/gate.h"
#include "msdbg/guide.h"

namespace msdbg {

enum class PageForm : uint8_t { kHtml, kMarkdown };
/// By file extension: .html, .htm, .md, .markdown, ignoring case. Error: kInvalidArgument with what is accepted.
Result<PageForm> page_form(std::string_view path);

/// The contents of the page. nullptr: not requested. At least one is needed.
struct PageInput {
  const CheckResult* check = nullptr;    ///< hits by rank, step, graph, as returned by check()
  const OriginResult* origin = nullptr;
};

struct PageOptions {
  std::string dump;              ///< the dump's name in commands; "": SessionInfo::source
  std::string command;           ///< the command that made the page, as typed; "": unknown
  std::optional<int64_t> time;   ///< date in seconds since 1970 UTC; nullopt: SOURCE_DATE_EPOCH of the environment, else now
  std::string rules;             ///< description of the rules: "the default rules"
  std::string file_words;        ///< the files of rules as words of the command line: "--rule mine.lua"; may be empty
  std::string rule_words;        ///< the same as command line words: "--rules TO,TZ"; "" for the default
  std::vector<GuideEntry> guide; ///< in this order, in their own chapter; no chapter if empty
  size_t max_hits = 300;         ///< rows of the table; further hits are only counted
  size_t max_tensors = 12;       ///< with pictures
  size_t max_layers = 24;        ///< with trend lines
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress;  ///< for pictures and trends, a few times per second
};

/// The whole page. A tensor that cannot be read is named in place of its picture.
/// Error: kInvalidArgument without input, or for an invalid SOURCE_DATE_EPOCH; kInterrupted, then there is no page.
Result<std::string> page_text(Session& session, const PageInput& input, const PageOptions& options, PageForm form);

/// The default contents of a page: the default rules and the origins of NaN and Inf.
struct PageFindings {
  CheckResult check;
  OriginResult origin;
};
/// `check_options` has steps, ranks, semantics and limits for both. Error: as for check() and find_origins().
Result<PageFindings> look_for_page(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& check_options);
/// The same for an existing check result.
Result<PageFindings> add_origins(Session& session, CheckResult checked, const CheckOptions& check_options);
/// Rules for faults in any training, as watchpoints.
std::vector<Watchpoint> default_watchpoints();

}  // namespace msdbg
