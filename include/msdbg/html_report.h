// A report to share: one page that shows what broke, where and how it spread, with pictures, as a self-contained
// HTML file or as Markdown.
//
// The session's owner thread only. Nothing is written here: the page comes back as text. Both forms have the same content
// in the same order; the same results at the same time give the same bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/analysis.h"
#include "msdbg/check.h"
#include "msdbg/gate.h"

namespace msdbg {

enum class PageForm : uint8_t { kHtml, kMarkdown };
/// By the ending of a file: .html, .htm, .md, .markdown, case ignored. Error: kInvalidArgument with what is accepted.
Result<PageForm> page_form(std::string_view path);

/// The contents of the page. nullptr: not requested. At least one is needed.
struct PageInput {
  const CheckResult* check = nullptr;    ///< hits by rank, step, graph as check() leaves them
  const OriginResult* origin = nullptr;
};

/// A finding of `msdbg guide`.
struct PageRemark {
  std::string chapter;      ///< "Data"
  std::string kind;         ///< "finding", "unknown", "fine" or "note"
  std::string text, next;   ///< `next` may be empty
};

struct PageOptions {
  std::string dump;              ///< how the commands name the dump; "": SessionInfo::source
  std::string command;           ///< what made the page, as somebody typed it; "": not known
  std::optional<int64_t> time;   ///< when, in seconds since 1970 UTC; nullopt: SOURCE_DATE_EPOCH of the environment, else now
  std::string rules;             ///< which rules were asked, for the reader: "the default rules"
  std::string rule_words;        ///< the same as words of the command line: "--rules TO,TZ"; "" for the default
  std::vector<PageRemark> guide; ///< in this order, in a chapter of their own; no chapter if empty
  size_t max_hits = 300;         ///< rows of the table; the rest is counted
  size_t max_tensors = 12;       ///< with pictures
  size_t max_layers = 24;        ///< with trend lines
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress;  ///< pictures and trends, a few times a second
};

/// The whole page. Tensors that cannot be read are named where their picture would be.
/// Error: kInvalidArgument without input, or for a SOURCE_DATE_EPOCH that is no such time; kInterrupted, then there is no page.
Result<std::string> page_text(Session& session, const PageInput& input, const PageOptions& options, PageForm form);

/// The default contents of a page: the default rules and the origins of NaN and Inf.
struct PageFindings {
  CheckResult check;
  OriginResult origin;
};
/// `check_options` chooses steps, ranks, semantics and limits for both. Error: as check() and find_origins().
Result<PageFindings> look_for_page(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& check_options);
/// The same for a check that was made already.
Result<PageFindings> add_origins(Session& session, CheckResult checked, const CheckOptions& check_options);
/// Rules for faults of any training, as watchpoints.
std::vector<Watchpoint> default_watchpoints();

}  // namespace msdbg
