-- `show --previous`: a tensor next to its value in the previous step.
local core = require "msdbg.core"
local pictures = require "msdbg.tensor_pictures"

local ipairs, tonumber = ipairs, tonumber

local M = {}

--- Words: tensor=NODE:slot, step=, rank=, graph=, execution=, rows=, slice=, sort=.
---@param session msdbg.Session
---@param ... string
---@return string text
---@return integer exit_status
function M.main(session, ...)
  local asked = {}
  for _, word in ipairs { ... } do
    local key, value = word:match "^([%w_]+)=(.*)$"
    asked[key] = value
  end
  local tensor, why = session:tensor(asked.tensor, { step = tonumber(asked.step), rank = tonumber(asked.rank),
    graph = tonumber(asked.graph), execution = tonumber(asked.execution) })
  if not tensor then core.raise("no_data", why, true) end
  return pictures.show(tensor, { previous = true, slice = asked.slice, sort = asked.sort, rows = tonumber(asked.rows) }) .. "\n", 0
end

return M
