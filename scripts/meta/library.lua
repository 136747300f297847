---@meta
-- Stubs of the standard library for text: `require "msdbg.table"` and similar modules.
-- User documentation: docs/library.md.

---@class msdbg.Tensor
local tensor = {}

---@class msdbg.ShowOptions
---@field rows? integer  of elements to show, default 20
---@field slice? string  a slice in NumPy notation
---@field previous? boolean  show the previous value and the difference next to each element
---@field sort? "place"|"difference"|"value"  with `previous`, default place

---Prints name, source line, statistics and elements.
---e.g. t:show { slice = "0,:", previous = true, sort = "difference" }
---@param options? msdbg.ShowOptions
function tensor:show(options) end

---@class msdbg.HeatmapOptions
---@field slice? string  a slice with two axes, e.g. "0,:,:"
---@field axes? integer[]  two of them, counted from 0; default the last two
---@field rows? integer  the largest number of rows; a cell may then stand for several elements
---@field width? integer  columns, default the width of the terminal
---@field min? number  the lightest shade, default the smallest element
---@field max? number  the darkest shade, default the largest element
---@field ascii? boolean  default: if the locale is not UTF-8
---@field colour? boolean  default: on a terminal with colours

---Prints a two-dimensional slice as shades. NaN and Inf have their own marks.
---e.g. t:heatmap { slice = "0,0,:,:" }
---@param options? msdbg.HeatmapOptions
function tensor:heatmap(options) end

---@class msdbg.HistOptions : msdbg.HistogramOptions
---@field slice? string  a slice in NumPy notation
---@field width? integer  columns, default the width of the terminal
---@field ascii? boolean  default: if the locale is not UTF-8

---Prints the histogram of the finite elements.
---e.g. t:hist { bins = 10, log_counts = true }
---@param options? msdbg.HistOptions
function tensor:hist(options) end
---Prints a statistic over steps as one line of blocks.
---e.g. t:spark("l2_norm", "0:50")
---@param stat? string  a field of the statistics, or "change"; default abs_mean
---@param steps? msdbg.Numbers|{ steps?: msdbg.Numbers, width?: integer, ascii?: boolean, colour?: boolean }
function tensor:spark(stat, steps) end

---Text tables: `require "msdbg.table"`.
---@class msdbg.table
local tables = {}

---An empty table. A column is a title or { title, align =, digits =, fit = "keep"|"name"|"text", drop = n }.
---e.g. local made = tables.new { "step", { "node", fit = "name" }, { "max", drop = 1 } }  made:add(0, t.name, t.stats.max)  made:print()
---@param columns (string|table)[]
---@return msdbg.Table
function tables.new(columns) end
---A table with rows, each a list of cells.
---@param columns (string|table)[]
---@param rows any[][]
---@return msdbg.Table
function tables.of(columns, rows) end

---Rows of cells that print aligned: numbers right-aligned, texts cut to the width of the terminal.
---@class msdbg.Table
---@field columns table[]
---@field rows any[][]
local text_table = {}

---One cell per column; nil leaves it empty.
---@param ... any
---@return msdbg.Table
function text_table:add(...) end
---Sorts by a column; empty cells and NaN come last.
---@param title string
---@param descending? boolean
---@return msdbg.Table
function text_table:sort(title, descending) end
---Aligned text without a final newline; `width` instead of the terminal's.
---@param options? { width?: number, titles?: boolean }
---@return string
function text_table:text(options) end
---CSV (RFC 4180), numbers with all digits.
---@return string
function text_table:csv() end
---A Markdown table, with all rows and full texts.
---@return string
function text_table:markdown() end
---text() to standard output.
---@param options? { width?: number, titles?: boolean }
function text_table:print(options) end

---Text plots: `require "msdbg.plot"`. ASCII if the locale is not UTF-8 or with MSDBG_ASCII=1.
---@class msdbg.plot
local plot = {}

---One character per value; `false` leaves a gap.
---e.g. plot.sparkline { 1, 2, 4, false, 8 }
---@param values (number|false)[]
---@param options? { min?: number, max?: number, width?: integer, ascii?: boolean, colour?: boolean }
---@return string
function plot.sparkline(values, options) end
---Horizontal bars with labels and numbers.
---@param labels string[]
---@param values number[]
---@param options? { width?: integer, ascii?: boolean, colour?: boolean }
---@return string
function plot.bars(labels, values, options) end
---Counts between edges, as returned by t:histogram().
---@param histogram { edges: number[], counts: integer[], nonfinite?: integer }
---@param options? { width?: integer, log_counts?: boolean, ascii?: boolean, colour?: boolean }
---@return string
function plot.histogram(histogram, options) end
---Rows of numbers as shades with a legend.
---@param rows (number|false)[][]
---@param options? { min?: number, max?: number, labels?: string[], ascii?: boolean, colour?: boolean }
---@return string
function plot.heatmap(rows, options) end

---Human-readable numbers: `require "msdbg.format"`.
---@class msdbg.format
local formats = {}

---Significant digits without trailing zeros; "-" for nil.
---@param value number?
---@param digits? integer  default 4
---@return string
function formats.number(value, digits) end
---The shortest decimal that reads back as the same double.
---@param value number
---@return string
function formats.exact(value) end
---12,345,678
---@param value integer
---@return string
function formats.count(value) end
---Ascending whole numbers as ranges: "0-3, 7"; "none" without any
---@param numbers integer[]
---@return string
function formats.ranges(numbers) end
---"5.0 MiB"
---@param count number
---@return string
function formats.bytes(count) end
---"850 us", "12.3 ms", "4.2 s", "3:07 min", "2:05:10 h"
---@param seconds number
---@return string
function formats.duration(seconds) end
---A share from 0 to 1, as a percentage.
---@param share number?
---@return string
function formats.percent(share) end
---Width of a text in terminal columns.
---@param text string
---@return integer
function formats.width(text) end
---The first `width` columns of a text.
---@param text string
---@param width integer
---@return string
function formats.head(text, width) end
---Shortens a text to `width` columns; a node name loses its leading scopes first.
---@param text string
---@param width integer
---@return string
function formats.shorten(text, width) end
---Pads a text with spaces.
---@param text string
---@param width integer
---@param right? boolean
---@return string
function formats.pad(text, width, right) end
---string.format in which control characters in the strings (such as names from a hostile graph) become `?`.
---@param pattern string
---@param ... any
---@return string
function formats.line(pattern, ...) end
---Lines of cells with aligned columns.
---@param rows string[][]
---@return string
function formats.columns(rows) end

---Text pictures of a tensor, as the tensor methods print them: `require "msdbg.tensor_pictures"`.
---@class msdbg.tensor_pictures
local pictures = {}

---The text that t:show{} prints.
---@param t msdbg.Tensor
---@param options? msdbg.ShowOptions
---@return string
function pictures.show(t, options) end
---The text that t:heatmap{} prints.
---@param t msdbg.Tensor
---@param options? msdbg.HeatmapOptions
---@return string
function pictures.heatmap(t, options) end
---The text that t:hist{} prints.
---@param t msdbg.Tensor
---@param options? msdbg.HistOptions
---@return string
function pictures.hist(t, options) end
---The text that t:spark() prints.
---@param t msdbg.Tensor
---@param stat? string
---@param options? table  same as for t:spark()
---@return string
function pictures.spark(t, stat, options) end
