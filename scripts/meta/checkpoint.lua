---@meta
-- Stubs of checkpoints. User documentation: docs/checkpoint.md.

---@class msdbg
local msdbg = {}

---@class msdbg.CheckpointOptions
---@field key? string  key of an encrypted file: hexadecimal digits, the bytes themselves, "@FILE" or "env:NAME"
---@field dec_mode? "auto"|"gcm"|"cbc"|"sm4-cbc"  the cipher, if the file does not say
---@field mem_limit? number  MB of tensors that may be in memory at once
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores

---Opens a checkpoint (.ckpt or safetensors) as a session of one step whose nodes are its parameters. Raises an error if the file is
---not a checkpoint or the key is wrong.
---e.g. local s = msdbg.checkpoint("lenet.ckpt", { key = "env:CKPT_KEY" })
---@param path string
---@param options? msdbg.CheckpointOptions
---@return msdbg.Session
function msdbg.checkpoint(path, options) end

---@class msdbg.CheckpointDiffOptions
---@field on? msdbg.Selector  which parameters; default all
---@field by_content? boolean  false: do not look for renamed parameters
---@field step_a? integer  the step, if `a` is a dump; default the current one
---@field step_b? integer
---@field rank? integer  of a dump, default 0

---What changed from the parameters of `a` to those of `b`; print shows the table of `msdbg ckpt diff`. Each of `parameters`: name, change,
---new_name, a and b with dtype and shape, type, values (nil if they were not compared) with update_ratio (norm(b - a) / norm(a)),
---max_abs_difference, norm_difference, norm_a, norm_b, differing, count, bit_equal, nan_a, nan_b, inf_a, inf_b; breaks (NaN or Inf that a
---did not have), note.
---e.g. print(msdbg.checkpoint_diff(msdbg.checkpoint "a.ckpt", msdbg.checkpoint "b.ckpt"))
---@param a msdbg.Session
---@param b msdbg.Session
---@param options? msdbg.CheckpointDiffOptions
---@return { a: string, b: string, equal: boolean, complete: boolean, counts: table<string, integer>, parameters: table[], text: string }
function msdbg.checkpoint_diff(a, b, options) end
