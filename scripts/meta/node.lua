---@meta
-- Stubs of nodes and node sets.

---A set of nodes: `#set`, `set[i]`. `print` shows a table.
---@class msdbg.NodeSet
local node_set = {}

---An iterator: `for n in set:each() do`.
---@return fun(): msdbg.Node?
function node_set:each() end
---The nodes for which `keep` returns neither nil nor false.
---e.g. s:nodes():filter(function(n) return n.trainable end)
---@param keep fun(n: msdbg.Node): any
---@return msdbg.NodeSet
function node_set:filter(keep) end
---The results of `make` for each node.
---@param make fun(n: msdbg.Node): any
---@return any[]  results that are not nil
function node_set:map(make) end
---The nodes of both sets, each once.
---@param other msdbg.NodeSet
---@return msdbg.NodeSet
function node_set:union(other) end
---The nodes that are not in `other`.
---@param other msdbg.NodeSet
---@return msdbg.NodeSet
function node_set:minus(other) end
---The first `n` in execution order.
---@param n? integer  default 1
---@return msdbg.NodeSet
function node_set:first(n) end
---Full names.
---@return string[]
function node_set:names() end

---An operator, a parameter or a constant of a graph.
---@class msdbg.Node
---@field name string  full name with scopes
---@field op string  operator type
---@field kind "operator"|"parameter"|"constant"
---@field scope string  name without its last component
---@field rank integer
---@field graph string  name
---@field graph_id integer
---@field key number  the same for all objects of this node, another for every other node of the session; for tables
---@field inputs { node: msdbg.Node?, slot: string?, name: string }[]  the producers; structural nodes are skipped
---@field outputs { dtype: string, shape: integer[]? }[]
---@field users { node: msdbg.Node, slot: string, output: string, name: string }[]  the consumers of its outputs
---@field stack { file: string, line: integer, code: string }[]  the user's program, innermost first
---@field attrs table<string, string>
---@field constant string?  the value of a constant where the graph holds it, as printed there
---@field trainable boolean  a parameter that the optimizer updates
---@field unwritten boolean  an optimizer's operator whose outputs are uninitialised memory
local node = {}

---@class msdbg.ValueOptions
---@field step? integer  default s.current_step
---@field execution? integer  which execution of the node in the step, from 0

---The value of a parameter or constant; nil, message, code if it was not dumped.
---@param options? msdbg.ValueOptions
---@return msdbg.Tensor?, string?, string?
function node:value(options) end
---An output of an operator; nil, message, code if it was not dumped.
---e.g. local t = assert(s:node("Log-op0"):output(0, { step = 1 }))
---@param slot? integer  default 0
---@param options? msdbg.ValueOptions
---@return msdbg.Tensor?, string?, string?
function node:output(slot, options) end
---An input as it was dumped; nil, message, code if only the producer's output was dumped.
---@param slot? integer  default 0
---@param options? msdbg.ValueOptions
---@return msdbg.Tensor?, string?, string?
function node:input(slot, options) end

---The arguments of a recorded call in a step, in a dump of msprobe: scalars by their value, tensors as `input:2`. Empty for others.
---e.g. for name, value in pairs(s:node("Tensor.add_.0.forward"):arguments()) do print(name, value) end
---@param options? { step?: integer }
---@return table<string, string>
function node:arguments(options) end

---The node whose value the optimizer takes as gradient of this parameter, and its slot: the optimizer's input if another graph
---computes the gradient. nil if this graph does not show it.
---e.g. local gradient, slot = s:node("fc1.weight"):gradient()
---@return msdbg.Node?, string?
function node:gradient() end
---The operator of the forward pass that takes an output of this node first, and its position in the execution order; nil without one.
---e.g. local reader, place = s:node("fc1.weight"):first_use()
---@return msdbg.Node?, integer?
function node:first_use() end
---The parameter that is updated with this output.
---e.g. s:node("MatMul-op4"):parameter()
---@param slot? integer  of the output, default 0
---@return msdbg.Node?
function node:parameter(slot) end
