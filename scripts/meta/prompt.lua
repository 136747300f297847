---@meta
-- Stubs of what is kept in files. Read by editors (LuaLS), by help at the prompt and by tools/reference.

---@class msdbg.Session
local session = {}

---Writes the watchpoints as a file that load_watches and the prompt's `source` understand. A condition that is a function has no
---text and is left out.
---@param path string
---@return integer written
---@return integer left_out
function session:save_watches(path) end

---Makes the watchpoints that save_watches wrote, all or none.
---@param path string
---@return msdbg.Watch[]
function session:load_watches(path) end
