---@meta
-- Stubs of the standard library: what `require "msdbg.table"` and its neighbours give. docs/library.md is the page for people.

---@class msdbg.Tensor
local tensor = {}

---Prints name, source line, statistics and elements. `slice` shows a part, `previous` the value of the step before and the difference
---beside each element, sorted by place, by "difference" or by "value".
---@param options? { rows?: integer, slice?: string, previous?: boolean, sort?: "place"|"difference"|"value" }
function tensor:show(options) end
---Prints a two-dimensional part as shades: the last two axes, or `axes` counted from 0, or those that `slice` leaves. NaN and Inf have
---marks of their own.
---@param options? { slice?: string, axes?: integer[], rows?: integer, width?: integer, min?: number, max?: number, ascii?: boolean, colour?: boolean }
function tensor:heatmap(options) end
---Prints the histogram of the finite elements; `log` makes the lengths logarithmic.
---@param options? { bins?: integer, slice?: string, width?: integer, log?: boolean, ascii?: boolean }
function tensor:hist(options) end
---Prints a statistic over steps as one line of blocks.
---@param stat? string  a field of the statistics, or "change"; default abs_mean
---@param steps? msdbg.Numbers|{ steps?: msdbg.Numbers, width?: integer, ascii?: boolean, colour?: boolean }
function tensor:spark(stat, steps) end

---Tables of text: `require "msdbg.table"`.
---@class msdbg.table
local tables = {}

---An empty table. A column is a title or { title, align =, digits =, shrinks = }.
---@param columns (string|table)[]
---@return msdbg.Table
function tables.new(columns) end
---A table with rows, each a list of cells.
---@param columns (string|table)[]
---@param rows any[][]
---@return msdbg.Table
function tables.of(columns, rows) end

---Rows of cells that are printed aligned: numbers at the right, texts cut to the width of the terminal.
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
---RFC 4180, numbers with all their digits.
---@return string
function text_table:csv() end
---@return string
function text_table:markdown() end
---@param options? { width?: number, titles?: boolean }
function text_table:print(options) end

---Pictures made of characters: `require "msdbg.plot"`. ASCII where the locale is not UTF-8 or with MSDBG_ASCII=1.
---@class msdbg.plot
local plot = {}

---One character per value; `false` leaves a gap.
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
---Counts between edges, such as t:histogram() gives.
---@param histogram { edges: number[], counts: integer[], nonfinite?: integer }
---@param options? { width?: integer, log?: boolean, ascii?: boolean, colour?: boolean }
---@return string
function plot.histogram(histogram, options) end
---Rows of numbers as shades with a legend.
---@param rows (number|false)[][]
---@param options? { min?: number, max?: number, labels?: string[], ascii?: boolean, colour?: boolean }
---@return string
function plot.heatmap(rows, options) end

---Numbers as people read them: `require "msdbg.format"`.
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
---"5.0 MiB"
---@param count number
---@return string
function formats.bytes(count) end
---"850 us", "12.3 ms", "4.2 s", "3:07 min", "2:05:10 h"
---@param seconds number
---@return string
function formats.duration(seconds) end
---A share of 0 to 1.
---@param share number?
---@return string
function formats.percent(share) end
---Columns on a terminal.
---@param text string
---@return integer
function formats.width(text) end
---The first columns of a text.
---@param text string
---@param width integer
---@return string
function formats.head(text, width) end
---At most so many columns; leading scopes of a node name go first.
---@param text string
---@param width integer
---@return string
function formats.shorten(text, width) end
---Filled with blanks.
---@param text string
---@param width integer
---@param right? boolean
---@return string
function formats.pad(text, width, right) end

---Facts about element types: `require "msdbg.dtype"`.
---@class msdbg.dtype
---@field names string[]
local dtype = {}

---@param what string|msdbg.Tensor
---@return msdbg.DTypeFacts
function dtype.of(what) end
---Where a value lies: "zero", "subnormal", "normal", "overflow" or "not a number".
---@param value number
---@param what string|msdbg.Tensor
---@return string
function dtype.place(value, what) end

---@class msdbg.DTypeFacts
---@field name string
---@field bits integer
---@field is_float boolean
---@field max number
---@field min number
---@field min_normal number?
---@field min_subnormal number?
---@field eps number?
---@field digits integer?  bits of the significand

---Statistics over steps: `require "msdbg.steps"`. Elements that are false, NaN or infinite are passed over.
---@class msdbg.steps
local steps = {}

---A statistic of one tensor in every step that has it.
---@param session msdbg.Session
---@param name string|msdbg.Node
---@param stat? string|fun(t: msdbg.Tensor): number?  a field of the statistics, "change", or a function; default abs_mean
---@param options? { steps?: msdbg.Numbers, rank?: integer, graph?: integer }
---@return msdbg.Series
function steps.series(session, name, stat, options) end
---@param values (number|false)[]
---@return number?
function steps.mean(values) end
---Sample standard deviation.
---@param values (number|false)[]
---@return number?
function steps.std(values) end
---@param values (number|false)[]
---@param q number  0 to 1
---@return number?
function steps.quantile(values, q) end
---@param values (number|false)[]
---@return number?
function steps.median(values) end
---Mean of each element and up to `width - 1` before it.
---@param values (number|false)[]
---@param width integer
---@return (number|false)[]
function steps.moving_mean(values, width) end
---Pearson's correlation; nil with fewer than three pairs.
---@param a (number|false)[]
---@param b (number|false)[]
---@return number?
function steps.correlation(a, b) end
---Slope of the least-squares line.
---@param values (number|false)[]
---@param at? number[]
---@return number?
function steps.slope(values, at) end
---Where two levels explain the values best; nil when they differ by fewer than `least` standard deviations (default 3).
---@param values (number|false)[]
---@param options? { least?: number, steps?: integer[] }
---@return { index: integer, step: integer?, before: number, after: number, score: number }?
function steps.change_point(values, options) end

---@class msdbg.Series
---@field name string
---@field stat string
---@field steps integer[]
---@field values (number|false)[]
---@field missing (string|false)[]  why a value is false

---A line of progress on standard error, on a terminal only: `require "msdbg.progress"`.
---@class msdbg.progress
local progress = {}

---@param options? { label?: string, total?: integer, stream?: table }
---@return msdbg.Progress
function progress.new(options) end

---@class msdbg.Progress
---@field label string
---@field done integer
---@field total integer?
local progress_line = {}
---@param n? integer  default 1
function progress_line:step(n) end
---The line as it would be drawn.
---@return string
function progress_line:text() end
---Takes the line away.
function progress_line:finish() end

---JSON with exact numbers; NaN and infinities are the strings "NaN", "Infinity", "-Infinity": `require "msdbg.json"`.
---@class msdbg.json
---@field null any  what `null` is in a decoded value
local json = {}

---@param value any
---@param options? { indent?: integer }
---@return string
function json.encode(value, options) end
---Raises with line and column. Integers beyond 2^53 become 64-bit integers of the FFI.
---@param text string
---@param options? { special?: boolean }  true: "NaN", "Infinity", "-Infinity" become numbers
---@return any
function json.decode(text, options) end
---@param text string
---@param options? { special?: boolean }
---@return any[]
function json.decode_lines(text, options) end
---Marks a table as an array, for the empty one.
---@param list any[]
---@return any[]
function json.array(list) end
---@param value any
---@return boolean
function json.is_array(value) end
---The value in a file.
---@param path string
---@param options? { special?: boolean }
---@return any
function json.read(path, options) end

---Checks of option tables: `require "msdbg.options"`.
---@class msdbg.options
local options_module = {}

---Raises on unknown fields with the nearest name, on wrong types with what is expected.
---@param call string
---@param given table?
---@param known table<string, string|string[]>
---@return table
function options_module.check(call, given, known) end
---A whole number within bounds, or `default`.
---@param call string
---@param options table
---@param name string
---@param least integer
---@param most integer
---@param default integer?
---@return integer?
function options_module.integer(call, options, name, least, most, default) end

---Pictures of a tensor as text, which the methods of tensors print: `require "msdbg.look"`.
---@class msdbg.look
local look = {}

---@param t msdbg.Tensor
---@param options? table  as t:show{}
---@return string
function look.show(t, options) end
---@param t msdbg.Tensor
---@param options? table  as t:heatmap{}
---@return string
function look.heatmap(t, options) end
---@param t msdbg.Tensor
---@param options? table  as t:hist{}
---@return string
function look.hist(t, options) end
---@param t msdbg.Tensor
---@param stat? string
---@param options? table  as t:spark()
---@return string
function look.spark(t, stat, options) end

---A small test library: `require "msdbg.test"`.
---@class msdbg.test
local test = {}

---Names a group of tests.
---@param name string
---@param body fun()
function test.describe(name, body) end
---One test; its name states a fact.
---@param name string
---@param body fun()
function test.it(name, body) end
---@param value any
---@return msdbg.Expectation
function test.expect(value) end
---The places where two values differ, a line each; nil when they are equal. NaN equals NaN.
---@param got any
---@param wanted any
---@return string?
function test.differences(got, wanted) end
---Prints the tally; raises when a test failed or none ran.
function test.finish() end

---@class msdbg.Expectation
---@field value any
local expectation = {}
---Equal; tables element by element.
---@return msdbg.Expectation
function expectation:equals(wanted) end
---Within a relative tolerance (default 1e-9) or an absolute one; numbers within tables, too.
---@param tolerance? number
---@param absolute? number
---@return msdbg.Expectation
function expectation:is_near(wanted, tolerance, absolute) end
---@return msdbg.Expectation
function expectation:is_true() end
---@return msdbg.Expectation
function expectation:is_nil() end
---@param part string
---@return msdbg.Expectation
function expectation:contains(part) end
---The function raises an error whose text contains `part`; the error is the new value.
---@param part string
---@param code? string
---@return msdbg.Expectation
function expectation:raises(part, code) end
---The text of a file; MSDBG_UPDATE_GOLDEN=1 writes it.
---@param path string
---@return msdbg.Expectation
function expectation:is_golden(path) end
