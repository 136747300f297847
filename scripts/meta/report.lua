---@meta
-- Stubs of the page that a report can be written as. docs/report.md is the page for people.

---@class msdbg.Report
local report = {}

---One self-contained page: verdict, origin with its ways, relation graph, pictures of the tensors, trends, findings with advice, source
---lines, coverage, commands. Of a dump, the half that the result does not hold (findings or origins) is looked up. Gives the path; without
---one, the page itself. The file is replaced as a whole or not at all.
---@param path? string  a file; it loads nothing and opens from disk
---@param options? { max_hits?: integer, tensors?: integer, layers?: integer, rules?: string }  at most so many findings, tensors drawn, trend lines a group; what the rules are called
---@return string path
function report:html(path, options) end

---With a path: the same page as Markdown, pictures as lines of characters. Without one: the findings of a check as a comment for a merge request.
---@param path? string
---@param options? { max_hits?: integer, tensors?: integer, layers?: integer, rules?: string }
---@return string
function report:markdown(path, options) end
