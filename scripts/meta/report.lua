---@meta
-- Stubs of reports as HTML or Markdown. User documentation: docs/report.md.

---@class msdbg.Report
local report = {}

---@class msdbg.PageOptions
---@field max_hits? integer  findings to list
---@field tensors? integer  tensors to draw
---@field layers? integer  trend lines per group
---@field rules? string  the names of the rules that ran
---@field command? string  what made the report, for its head
---@field guide? { chapter: string, kind: string, text: string, next?: string, command?: string, step?: integer }[]  entries of a guide, shown as a separate chapter

---A self-contained HTML report: verdict, origin with its paths, relation graph, pictures of the tensors, trends, findings with advice,
---source lines, coverage, commands. On a dump, it computes the part that the result lacks (findings or origins). Returns the path, or
---without a path the HTML text. The file is replaced completely or not at all.
---@param path? string  a file; it opens from disk and loads nothing
---@param options? msdbg.PageOptions
---@return string path
function report:html(path, options) end

---With a path: the same report as Markdown, with text plots. Without a path: the findings of a check as a comment for a merge
---request.
---e.g. msdbg.report(s, s:check()):markdown "findings.md"
---@param path? string
---@param options? msdbg.PageOptions
---@return string
function report:markdown(path, options) end
