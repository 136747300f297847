---@meta
-- Stubs of what follows a question through a run. docs/follow.md is the page for people.

---@class msdbg
local msdbg = {}

---The first step in which something holds, found by halving: 11 of 1000 steps are read at most. A step without the tensor is replaced
---by the nearest one that has it.
---@param session msdbg.Session
---@param options { on: msdbg.Selector|msdbg.Tensor, when?: string|fun(t: msdbg.Tensor): any, steps?: msdbg.Numbers, ranks?: msdbg.Numbers, graph?: integer, semantics?: string, threads?: integer, mem_limit?: number }
---@return msdbg.Bisect
function msdbg.bisect(session, options) end

---A statistic over the steps, one line per tensor. Without a selector: every node.
---@param session msdbg.Session
---@param statistic string  a field of msdbg.Stats
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? { steps?: msdbg.Numbers, ranks?: msdbg.Numbers, graph?: integer, threads?: integer, mem_limit?: number, semantics?: string }
---@return msdbg.Trend
function msdbg.trend(session, statistic, on, options) end

---How a bad tensor spread in its step, or with `up` where it came from.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? { when?: string|fun(t: msdbg.Tensor): any, up?: boolean, step?: integer, rank?: integer, graph?: integer, execution?: integer, steps?: msdbg.Numbers, ranks?: msdbg.Numbers, semantics?: string, threads?: integer, mem_limit?: number }
---@return msdbg.Propagation
function msdbg.propagation(session, tensor, options) end

---Why a tensor has no value: not dumped, fused, not executed, unreadable, never there.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? { step?: integer, rank?: integer, graph?: integer, execution?: integer }
---@return msdbg.Why
function msdbg.why(session, tensor, options) end

---The user's program with findings and statistics beside its lines. Without a result: those of session:check().
---@param session msdbg.Session
---@param result? msdbg.Result
---@param options? { file?: string, root?: string, framework?: boolean }
---@return msdbg.Source
function msdbg.source(session, result, options) end

---@class msdbg.Session
local session = {}

---As msdbg.bisect.
---@param options { on: msdbg.Selector|msdbg.Tensor, when?: string|fun(t: msdbg.Tensor): any, steps?: msdbg.Numbers, ranks?: msdbg.Numbers, graph?: integer, semantics?: string, threads?: integer, mem_limit?: number }
---@return msdbg.Bisect
function session:bisect(options) end
---As msdbg.trend.
---@param statistic string
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? table
---@return msdbg.Trend
function session:trend(statistic, on, options) end
---As msdbg.propagation.
---@param tensor string|msdbg.Tensor
---@param options? table
---@return msdbg.Propagation
function session:propagation(tensor, options) end
---As msdbg.why.
---@param tensor string|msdbg.Tensor
---@param options? table
---@return msdbg.Why
function session:why(tensor, options) end
---As msdbg.source.
---@param result? msdbg.Result
---@param options? table
---@return msdbg.Source
function session:source(result, options) end

---Fields of the first rank can be read without the list.
---@class msdbg.Bisect
---@field ranks table[]  rank, first, last_before, monotone, counterexample, steps, looked_at, reads, skipped, open, probes
---@field first integer?  step
---@field last_before integer?
---@field monotone boolean  in what was seen
---@field counterexample integer?
---@field steps integer  that were there to be searched
---@field looked_at integer
---@field reads integer  tensors
---@field probes table[]  step, holds, tensors, reason, hits, stats
---@field target string
---@field predicate string
local bisect = {}
---@return string
function bisect:table() end
---@return string
function bisect:json() end
---@return string
function bisect:jsonl() end

---@class msdbg.Trend
---@field statistic string
---@field target string
---@field steps integer[]
---@field tensors table[]  node, slot, rank, graph_id, execution, first, last, min, max, ends, change, points
local trend = {}
---@return string
function trend:table() end
---@return string
function trend:json() end
---@return string
function trend:jsonl() end
---@return string
function trend:csv() end
---@return string
function trend:markdown() end

---@class msdbg.Propagation
---@field predicate string
---@field direction "down"|"up"
---@field holds boolean  false: the tensor is sound
---@field tensor table
---@field nodes table[]  index, node, op, kind, execution, passage, distance, slot, step, reason, stats, stack
---@field edges table[]  from, to (indexes), output, input, update, bad
---@field bad_in_step integer
---@field bad_elsewhere integer
---@field clean_outputs integer
local propagation = {}
---@return string
function propagation:table() end
---@return string
function propagation:json() end
---@return string
function propagation:jsonl() end
---@return string
function propagation:markdown() end
---@return string
function propagation:dot() end
---@return string
function propagation:svg() end

---@class msdbg.Why
---@field asked string
---@field kind string  "has_value", "fused", "not_executed", ...
---@field answer string
---@field evidence { text: string, path: string? }[]
---@field instead string[]
---@field next string?
---@field tensor table?
local why = {}
---@return string
function why:table() end
---@return string
function why:json() end
---@return string
function why:jsonl() end

---@class msdbg.Source
---@field files table[]  path, read_from, note, findings, lines: those with operators
---@field steps integer[]
local source = {}
---@return string
function source:table() end
---@return string
function source:json() end
---@return string
function source:jsonl() end
---@return string
function source:markdown() end

return msdbg
