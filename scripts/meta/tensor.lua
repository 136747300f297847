---@meta
-- Stubs of tensors. What prints pictures of them is in library.lua.

---A value of a step. Elements are read when they are first asked for; a file that cannot be read raises then, and `problem` says why.
---@class msdbg.Tensor
---@field dtype string  e.g. "float32"
---@field shape integer[]
---@field size integer  elements
---@field bytes integer
---@field step integer
---@field rank integer
---@field node msdbg.Node
---@field slot string  "output:0"
---@field execution integer  which run of the node within the step, from 0
---@field name string  NODE:SLOT
---@field source string  the file
---@field stats msdbg.Stats  computed once
---@field note string?  what is uncertain about it
---@field problem string?  why it cannot be evaluated
local tensor = {}

---Elements for hot loops: v[i] from 0 to v.n - 1, flat and row-major. 64-bit integers round to double. Raises when the elements were not
---dumped, or all views together exceed the session's mem_limit.
---e.g. local v, sum = t:view(), 0  for i = 0, v.n - 1 do sum = sum + v[i] end
---@return msdbg.View
function tensor:view() end
---One element; coordinates count from 0 and raise outside of the shape.
---e.g. t:at(0, 3)
---@param ... integer
---@return number
function tensor:at(...) end
---Part of it, as NumPy writes it. The result exists in memory only.
---e.g. t:slice "0:2,:,3"
---@param text string
---@return msdbg.Tensor
function tensor:slice(text) end

---@class msdbg.HistogramOptions
---@field bins? integer  1 to 10000, default 20

---Counts of the finite elements between equal edges.
---e.g. print(t:histogram({ bins = 10 }).text)
---@param options? msdbg.HistogramOptions
---@return { edges: number[], counts: integer[], nonfinite: integer, text: string }  #edges is #counts + 1
function tensor:histogram(options) end
---Of the finite elements, interpolated; nil when there are none.
---e.g. t:quantile(0.99)
---@param q number  0 to 1
---@return number?
function tensor:quantile(q) end
---NaN first, then infinities, then the largest magnitudes.
---e.g. for _, place in ipairs(t:worst(5)) do print(place, place.value) end
---@param k? integer  default 10
---@return msdbg.Place[]
function tensor:worst(k) end

---@class msdbg.WhereOptions
---@field limit? integer  places to list; all are counted

---Elements that satisfy a predicate, and how many there are: an expression with a truth value for each element, one of nan, inf,
---bad, finite, zero, or a function of the value.
---e.g. local places, total = t:where("abs(x) > 3*std(x)", { limit = 5 })
---@param predicate string|fun(x: number): any
---@param options? msdbg.WhereOptions
---@return msdbg.Place[] places
---@return integer total
function tensor:where(predicate, options) end
---The value of an expression: a number or a truth value; a list of them for an element-wise one, in row-major order. `prev` in it is
---the same tensor in the step before.
---e.g. t:eval "mean(abs(x - prev))"
---@param expression string
---@return number|boolean|table
function tensor:eval(expression) end
---The same value in the last earlier step that has it; nil, message, code when there is none.
---@return msdbg.Tensor?, string?, string?
function tensor:previous() end
---mean |x - p| / (1e-9 + mean |p|) over elements that are finite in both; nil when there are none. Raises when the shapes differ.
---@param other msdbg.Tensor
---@return number?
function tensor:change_ratio(other) end
---Writes an .npy file, whole or not at all; raises when it cannot.
---e.g. t:save "conv1.npy"
---@param path string
function tensor:save(path) end
---Gives back the memory of the elements at once; they are read or fetched again when needed. Views stay valid, and keep theirs.
function tensor:release() end

---@alias msdbg.Place { [integer]: integer, value: number, index: integer }  coordinates, and the flat index, from 0

---Elements of a tensor; see t:view(). `v.n` and not `#v` is their number. Nothing of a view can be changed.
---@class msdbg.View
---@field n integer
---@field dtype string
---@field shape integer[]
---@field data any  FFI pointer to the elements as they are; a NaN read through it may become a value of another type: v:doubles() is safe
local view = {}

---A copy as double, every NaN as the same one: safe to read, unlike v.data. All elements, or `n` from `first` on.
---e.g. local d = t:view():doubles()  for i = 0, t.size - 1 do print(d[i]) end
---@param first? integer  default 0
---@param n? integer  default: the rest
---@return any doubles  FFI array double[n]
function view:doubles(first, n) end

---Over finite elements; nil for what is unknown or has no value. A name that does not exist raises.
---@class msdbg.Stats
---@field count integer  all elements
---@field min number?
---@field max number?
---@field mean number?
---@field abs_mean number?  mean magnitude
---@field std number?  divisor n - 1
---@field l2_norm number?
---@field nan_count integer?
---@field pos_inf_count integer?
---@field neg_inf_count integer?
---@field zero_count integer?
---@field pos_count integer?  above zero
---@field neg_count integer?  below zero
---@field zero_percentage number?  of all elements, 0 to 100
---@field first_bad integer[]?  coordinates of the first NaN or Inf
---@field dtype_max_count integer?  at the largest number of the type
