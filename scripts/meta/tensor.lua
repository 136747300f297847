---@meta
-- Stubs of tensors. The methods that print pictures are in library.lua.

---The value of a slot in a step. Elements are read on first use; an unreadable file raises an error then, and `problem` says why.
---@class msdbg.Tensor
---@field dtype string  e.g. "float32"
---@field shape integer[]
---@field size integer  elements
---@field bytes integer
---@field step integer
---@field rank integer
---@field node msdbg.Node
---@field slot string  "output:0"
---@field execution integer  which execution of the node in the step, from 0
---@field name string  NODE:SLOT
---@field source string  the file
---@field stats msdbg.Stats  computed once
---@field note string?  anything uncertain about it
---@field problem string?  why it cannot be evaluated
local tensor = {}

---Elements for hot loops: v[i] from 0 to v.n - 1, flat and row-major. 64-bit integers are rounded to double. Raises an error if the
---elements were not dumped, or if all views together exceed the session's mem_limit.
---e.g. local v, sum = t:view(), 0  for i = 0, v.n - 1 do sum = sum + v[i] end
---@return msdbg.View
function tensor:view() end
---One element; coordinates start at 0, and outside the shape they raise an error.
---e.g. t:at(0, 3)
---@param ... integer
---@return number
function tensor:at(...) end
---A slice in NumPy notation. The result exists in memory only.
---e.g. t:slice "0:2,:,3"
---@param text string
---@return msdbg.Tensor
function tensor:slice(text) end

---@class msdbg.HistogramOptions
---@field bins? integer  1 to 10000, default 20; with exponents: at most so many
---@field min? number  the first edge, default the smallest element
---@field max? number  the last edge, default the largest element
---@field log? boolean  magnitudes, in bins of equal ratio
---@field exponents? boolean  magnitudes by powers of two
---@field width? integer  columns of the text, default 60
---@field log_counts? boolean  the text draws logarithms of the counts, which makes rare values visible
---@field ascii? boolean  the text has plain characters only

---Counts of the finite elements between edges. With log or exponents, zeros have no bin.
---e.g. print(t:histogram({ bins = 10 }).text)
---@param options? msdbg.HistogramOptions
---@return { scale: string, edges: number[], counts: integer[], zeros: integer, below: integer, above: integer, nonfinite: integer, text: string }  #edges is #counts + 1
function tensor:histogram(options) end
---Quantile of the finite elements, interpolated; nil if there are none.
---e.g. t:quantile(0.99)
---@param q number  0 to 1
---@return number?
function tensor:quantile(q) end
---The places of the worst elements: NaN first, then infinities, then the largest magnitudes.
---e.g. for _, place in ipairs(t:worst(5)) do print(place, place.value) end
---@param k? integer  default 10
---@return msdbg.Place[]
function tensor:worst(k) end

---@class msdbg.WhereOptions
---@field limit? integer  the largest number of places to list; all are counted

---Elements that satisfy a predicate, and how many there are: an expression with a truth value for each element, one of nan, inf,
---bad, finite, zero, or a function of the value.
---e.g. local places, total = t:where("abs(x) > 3*std(x)", { limit = 5 })
---@param predicate string|fun(x: number): any
---@param options? msdbg.WhereOptions
---@return msdbg.Place[] places
---@return integer total
function tensor:where(predicate, options) end
---The value of an expression: a number or a truth value; a list for an element-wise expression, in row-major order. `prev` is the
---previous value.
---e.g. t:eval "mean(abs(x - prev))"
---@param expression string
---@return number|boolean|table
function tensor:eval(expression) end
---The previous value, or nil, a message and a code.
---@return msdbg.Tensor?, string?, string?
function tensor:previous() end
---Of an operator: what it took as input `i`, from 0, in the same step: the dumped input, or else the output, parameter or constant that
---it comes from. nil if the operator has no such input; nil, a message and a code if neither was dumped.
---@param i? integer
---@return msdbg.Tensor?, string?, string?
function tensor:operand(i) end
---mean |x - p| / (1e-9 + mean |p|) over elements that are finite in both; nil if there are none. Raises an error if the shapes differ.
---@param other msdbg.Tensor
---@return number?
function tensor:change_ratio(other) end
---Writes an .npy file, completely or not at all; raises an error if it cannot.
---e.g. t:save "conv1.npy"
---@param path string
function tensor:save(path) end
---Frees the memory of the elements at once; they are read or fetched again when needed. Views stay valid and keep their elements.
function tensor:release() end

---@alias msdbg.Place { [integer]: integer, value: number, index: integer }  coordinates, and the flat index, from 0

---Elements of a tensor; see t:view(). Their number is `v.n`, not `#v`. A view is read-only.
---@class msdbg.View
---@field n integer
---@field dtype string
---@field shape integer[]
---@field data any  FFI pointer to the elements in memory; a NaN read through it may turn into a value of another type: v:doubles() is safe
local view = {}

---A copy as double in which every NaN is the standard one: safe to read, unlike v.data. All elements, or `n` elements from `first` on.
---e.g. local d = t:view():doubles()  for i = 0, t.size - 1 do print(d[i]) end
---@param first? integer  default 0
---@param n? integer  default: the rest
---@return any doubles  FFI array double[n]
function view:doubles(first, n) end

---Statistics of the finite elements; nil for unknown values. An unknown field name raises an error.
---@class msdbg.Stats
---@field count integer  all elements
---@field min number?
---@field max number?
---@field mean number?
---@field abs_mean number?  mean magnitude
---@field std number?  divides by n - 1
---@field l2_norm number?
---@field nan_count integer?
---@field pos_inf_count integer?
---@field neg_inf_count integer?
---@field zero_count integer?
---@field pos_count integer?  above zero
---@field neg_count integer?  below zero
---@field zero_percentage number?  of all elements, 0 to 100
---@field first_bad integer[]?  coordinates of the first NaN or Inf
---@field dtype_max_count integer?  elements at the largest number of the type
