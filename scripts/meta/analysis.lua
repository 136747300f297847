---@meta
-- Stubs of the commands that follow a finding through a run. User documentation: docs/follow.md.

---@class msdbg
local msdbg = {}

---@class msdbg.BisectOptions
---@field on msdbg.Selector|msdbg.Tensor
---@field when? string|fun(t: msdbg.Tensor): any  a condition, an expression or a function; default "nan or inf"
---@field steps? msdbg.Numbers  search only these; default all
---@field ranks? msdbg.Numbers  each rank is searched separately; default the current one, else all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---The first step in which a predicate holds, by binary search: it reads at most 11 of 1000 steps. A step without the tensor is replaced by
---the nearest one that has it.
---@param session msdbg.Session
---@param options msdbg.BisectOptions
---@return msdbg.Bisect
function msdbg.bisect(session, options) end

---@class msdbg.TrendOptions
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default the current one, else all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---A statistic over the steps, one line per tensor. Without a selector: every node.
---@param session msdbg.Session
---@param statistic string  a field of msdbg.Stats
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? msdbg.TrendOptions
---@return msdbg.Trend
function msdbg.trend(session, statistic, on, options) end

---@class msdbg.HistogramsOptions
---@field bins? integer  1 to 10000, default 20; with exponents: at most so many
---@field min? number  the first edge, default the smallest element of all
---@field max? number  the last edge, default the largest element of all
---@field log? boolean  magnitudes, in bins of equal ratio
---@field exponents? boolean  magnitudes by powers of two, and the loss scale that float16 needs
---@field slice? string  part of each, in NumPy notation
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default the current one, else all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---How the elements of tensors are distributed, in the same bins for every tensor and step.
---e.g. print(s:histogram("@gradient", { exponents = true }))
---@param session msdbg.Session
---@param tensor msdbg.Selector|msdbg.Tensor
---@param options? msdbg.HistogramsOptions
---@return msdbg.Histograms
function msdbg.histogram(session, tensor, options) end

---@class msdbg.ReproOptions
---@field step? integer  default s.current_step
---@field execution? integer  which execution of the operator in the step, from 0
---@field rank? integer  needed if several ranks have a node of that name
---@field graph? integer  needed if several graphs have one: the graph's id

---Writes an operator's inputs, outputs and attributes into a new directory, with a Python program that runs it again.
---e.g. print(s:repro("Log-op0", "log"))
---@param session msdbg.Session
---@param node string|msdbg.Node
---@param directory string  must not exist, or be empty
---@param options? msdbg.ReproOptions
---@return msdbg.Repro
function msdbg.repro(session, node, directory, options) end

---@class msdbg.Repro
---@field directory string
---@field name string
---@field op string
---@field inputs table[]  slot, producer, producer_slot, dtype, shape, and one of file, constant, missing
---@field outputs table[]  slot, dtype, shape, and one of file, missing

---@class msdbg.LayersOptions
---@field on? msdbg.Selector  only these parameters
---@field by_layer? boolean  one row for encoder.layers.3 instead of one for each of its parameters
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default the current one, else all
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---Each trained parameter: mean magnitude of weight and gradient, change per update, zeros, NaN, over the steps.
---@param session msdbg.Session
---@param options? msdbg.LayersOptions
---@return msdbg.Layers
function msdbg.layers(session, options) end

---@class msdbg.ReplicasOptions
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default all, be there a current one or not
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---Values that ranks must share bit for bit, and the rank that differs: weights, optimizer states, outputs of AllReduce, updates.
---@param session msdbg.Session
---@param options? msdbg.ReplicasOptions
---@return msdbg.Replicas
function msdbg.replicas(session, options) end

---@class msdbg.SettingsOptions
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default the current one, else all

---The learning rate, momentum, loss scale, step counters and other single numbers that steer the optimizer, on each rank in each step.
---@param session msdbg.Session
---@param options? msdbg.SettingsOptions
---@return msdbg.Settings
function msdbg.settings(session, options) end

---@class msdbg.PropagationOptions
---@field when? string|fun(t: msdbg.Tensor): any  what is bad; default "nan or inf"
---@field up? boolean  trace where it came from instead of where it went
---@field step? integer  default s.current_step
---@field rank? integer  needed if several ranks have a node of that name
---@field graph? integer  needed if several graphs have one: the graph's id
---@field execution? integer  which execution of the node in the step, from 0
---@field steps? msdbg.Numbers  where to search for the fault
---@field ranks? msdbg.Numbers
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---How a bad tensor spread in its step, or with `up` where it came from.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? msdbg.PropagationOptions
---@return msdbg.Propagation
function msdbg.propagation(session, tensor, options) end

---Why a tensor has no value: not dumped, fused, not executed, unreadable, or nonexistent.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? msdbg.TensorOptions
---@return msdbg.Why
function msdbg.why(session, tensor, options) end

---@class msdbg.SourceOptions
---@field file? string  one of the program's files; default all
---@field root? string  where to look for the files if they have moved since the training
---@field framework? boolean  include lines of installed packages

---The user's program with findings and statistics next to its lines. Default result: that of session:check().
---@param session msdbg.Session
---@param result? msdbg.Result
---@param options? msdbg.SourceOptions
---@return msdbg.Source
function msdbg.source(session, result, options) end

---@class msdbg.PlanOptions
---@field on? msdbg.Selector  nodes to dump; default all
---@field around? string  instead: this node and its neighbours
---@field hops? integer  how far `around` goes, default 2
---@field steps? msdbg.Numbers  ranges need an end; default every step
---@field mode? "tensor"|"statistic"|"full"  default: depends on the number of nodes and the device
---@field slots? "both"|"inputs"|"outputs"  with "inputs" MindSpore dumps no parameters
---@field path? string  where the run will write the dump
---@field net_name? string  the directory below the path; default as in the dump
---@field version? string  release of MindSpore that will run; default that of the dump

---MindSpore's dump settings for chosen nodes and steps, with an estimate of their cost. Without `on` and `around`: all nodes, as
---statistics if the device supports them. docs/dump-plan.md explains the options.
---e.g. print(msdbg.plan(s, { around = "Log-op0", hops = 1, steps = "0:1" }))
---@param session msdbg.Session
---@param options? msdbg.PlanOptions
---@return msdbg.Plan
function msdbg.plan(session, options) end

---@class msdbg.Session
local session = {}

---Same as msdbg.plan.
---@param options? msdbg.PlanOptions
---@return msdbg.Plan
function session:plan(options) end

---Same as msdbg.bisect.
---e.g. print(s:bisect { on = "@weight", when = "TO" }.first)
---@param options msdbg.BisectOptions
---@return msdbg.Bisect
function session:bisect(options) end
---Same as msdbg.trend.
---e.g. print(s:trend("l2_norm", "@gradient"))
---@param statistic string
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? msdbg.TrendOptions
---@return msdbg.Trend
function session:trend(statistic, on, options) end
---Same as msdbg.repro.
---@param node string|msdbg.Node
---@param directory string
---@param options? msdbg.ReproOptions
---@return msdbg.Repro
function session:repro(node, directory, options) end
---Same as msdbg.histogram.
---e.g. print(s:histogram("fc1.weight", { bins = 40 }))
---@param tensor msdbg.Selector|msdbg.Tensor
---@param options? msdbg.HistogramsOptions
---@return msdbg.Histograms
function session:histogram(tensor, options) end
---Same as msdbg.layers.
---e.g. print(s:layers { by_layer = true })
---@param options? msdbg.LayersOptions
---@return msdbg.Layers
function session:layers(options) end
---Same as msdbg.replicas.
---e.g. print(s:replicas())
---@param options? msdbg.ReplicasOptions
---@return msdbg.Replicas
function session:replicas(options) end
---Same as msdbg.settings.
---e.g. print(s:settings())
---@param options? msdbg.SettingsOptions
---@return msdbg.Settings
function session:settings(options) end
---Same as msdbg.propagation.
---e.g. print(s:propagation("Log-op0", { up = true }))
---@param tensor string|msdbg.Tensor
---@param options? msdbg.PropagationOptions
---@return msdbg.Propagation
function session:propagation(tensor, options) end
---Same as msdbg.why.
---e.g. print(s:why "Log-op0:input:0")
---@param tensor string|msdbg.Tensor
---@param options? msdbg.TensorOptions
---@return msdbg.Why
function session:why(tensor, options) end
---Same as msdbg.source.
---@param result? msdbg.Result
---@param options? msdbg.SourceOptions
---@return msdbg.Source
function session:source(result, options) end

return msdbg
