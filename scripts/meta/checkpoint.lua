---@meta
-- Stubs of checkpoints. docs/checkpoint.md is the page for people.

---@class msdbg
local msdbg = {}

---Opens a checkpoint (.ckpt or safetensors) as a session of one step whose nodes are its parameters. `key` of an encrypted one: hexadecimal
---digits, the bytes themselves, "@FILE" or "env:NAME"; `dec_mode` names the cipher where the file does not tell.
---@param path string
---@param options? { key?: string, dec_mode?: "auto"|"gcm"|"cbc"|"sm4-cbc", mem_limit?: number, semantics?: "compat"|"finite", threads?: integer }
---@return msdbg.Session
function msdbg.checkpoint(path, options) end

---What changed from the parameters of `a` to those of `b`; a dump's are those of its current step. `by_content = false` does not look for
---parameters that have another name now. Each of `parameters`: name, change, new_name, a and b with dtype and shape, update_ratio
---(norm(b - a) / norm(a)), max_abs_difference, differing, count, nan_a, nan_b, inf_a, inf_b, breaks (NaN or Inf that a had not), note.
---@param a msdbg.Session
---@param b msdbg.Session
---@param options? { on?: msdbg.Selector, by_content?: boolean, step_a?: integer, step_b?: integer, rank?: integer }
---@return { equal: boolean, complete: boolean, counts: table<string, integer>, parameters: table[], text: string }
function msdbg.checkpoint_diff(a, b, options) end
