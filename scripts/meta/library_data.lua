---@meta
-- Stubs of the rest of the standard library: steps, element types, JSON, option tables, progress, tests. User documentation:
-- docs/library.md.

---Facts about element types: `require "msdbg.dtype"`.
---@class msdbg.dtype
---@field names string[]
local dtype = {}

---Facts about a type, given by name or by a tensor; an unknown name raises an error.
---e.g. dtype.of("float16").max
---@param what string|msdbg.Tensor
---@return msdbg.DTypeFacts
function dtype.of(what) end
---Where a value is in the type's range: "zero", "subnormal", "normal", "overflow" or "not a number".
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

---Statistics over steps: `require "msdbg.steps"`. Values that are false, NaN or infinite are skipped.
---@class msdbg.steps
local steps = {}

---A statistic of one tensor in every step that has it.
---e.g. print(steps.change_point(steps.series(s, "fc1.weight", "l2_norm").values))
---@param session msdbg.Session
---@param name string|msdbg.Node
---@param stat? string|fun(t: msdbg.Tensor): number?  a field of the statistics, "change", or a function; default abs_mean
---@param options? { steps?: msdbg.Numbers, rank?: integer, graph?: integer }
---@return msdbg.Series
function steps.series(session, name, stat, options) end
---Arithmetic mean; nil if there are no values.
---@param values (number|false)[]
---@return number?
function steps.mean(values) end
---Sample standard deviation.
---@param values (number|false)[]
---@return number?
function steps.std(values) end
---Quantile, interpolated between the two nearest values; nil if there are no values.
---@param values (number|false)[]
---@param q number  0 to 1
---@return number?
function steps.quantile(values, q) end
---quantile(values, 0.5).
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
---The split into two levels that fits the values best; nil if they differ by less than `least` standard deviations (default 3).
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

---A progress line on standard error, on a terminal only: `require "msdbg.progress"`.
---@class msdbg.progress
local progress = {}

---Starts a line; with `total` it shows how much is left.
---e.g. local line = progress.new { label = "steps", total = #s.steps }  line:step()  line:finish()
---@param options? { label?: string, total?: integer, stream?: table }
---@return msdbg.Progress
function progress.new(options) end

---@class msdbg.Progress
---@field label string
---@field done integer
---@field total integer?
local progress_line = {}
---Advances by `n`.
---@param n? integer  default 1
function progress_line:step(n) end
---The current text of the line.
---@return string
function progress_line:text() end
---Removes the line.
function progress_line:finish() end

---JSON with exact numbers; NaN and infinities are the strings "NaN", "Infinity", "-Infinity": `require "msdbg.json"`.
---@class msdbg.json
---@field null any  stands for `null` in decoded values
local json = {}

---A table with keys 1 to n is an array, any other an object; values without a JSON form (functions, cycles) raise an error.
---e.g. json.encode({ step = 3, values = json.array {} }, { indent = 2 })
---@param value any
---@param options? { indent?: integer }
---@return string
function json.encode(value, options) end
---Errors name line and column. Integers beyond 2^53 become 64-bit FFI integers.
---@param text string
---@param options? { special?: boolean }  true: "NaN", "Infinity", "-Infinity" become numbers
---@return any
function json.decode(text, options) end
---Reads JSON lines, one value per line, as jsonl() writes them. Errors name line and column.
---@param text string
---@param options? { special?: boolean }
---@return any[]
function json.decode_lines(text, options) end
---Marks a table as an array; needed for an empty one.
---@param list any[]
---@return any[]
function json.array(list) end
---Whether encode() would write it as an array.
---@param value any
---@return boolean
function json.is_array(value) end
---Decodes the value in a file.
---@param path string
---@param options? { special?: boolean }
---@return any
function json.read(path, options) end

---Checks of option tables: `require "msdbg.options"`.
---@class msdbg.options
local options_module = {}

---Raises an error for unknown fields, with the closest name, and for wrong types, with the expected one.
---e.g. local o = options.check("summary", given, { limit = "number", sort = { "name", "value" } })
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
---Wraps a value for comparison; a method that fails ends the test and shows both values.
---e.g. expect(#s:nodes "op:Log"):equals(1)
---@param value any
---@return msdbg.Expectation
function test.expect(value) end
---The places where two values differ, one per line; nil if they are equal. NaN equals NaN.
---@param got any
---@param wanted any
---@return string?
function test.differences(got, wanted) end
---Prints the totals; raises an error if a test failed or none ran.
function test.finish() end

---@class msdbg.Expectation
---@field value any
local expectation = {}
---Equal; tables element by element.
---@return msdbg.Expectation
function expectation:equals(wanted) end
---Within a relative tolerance (default 1e-9) or an absolute one; also compares numbers in tables.
---@param tolerance? number
---@param absolute? number
---@return msdbg.Expectation
function expectation:is_near(wanted, tolerance, absolute) end
---Exactly `true`.
---@return msdbg.Expectation
function expectation:is_true() end
---Exactly `nil`.
---@return msdbg.Expectation
function expectation:is_nil() end
---Text that contains `part` literally.
---@param part string
---@return msdbg.Expectation
function expectation:contains(part) end
---The function raises an error whose text contains `part`; the error is the new value.
---@param part string
---@param code? string
---@return msdbg.Expectation
function expectation:raises(part, code) end
---Equal to the text of a file; MSDBG_UPDATE_GOLDEN=1 writes the file.
---@param path string
---@return msdbg.Expectation
function expectation:is_golden(path) end
