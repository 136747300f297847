-- A progress line on standard error: only on a terminal, removed when finished.
--
--   local p = require "msdbg.progress".new { label = "layers", total = #nodes }
--   for n in nodes:each() do ...; p:step() end
--   p:finish()
local core = require "msdbg.core"
local formats = require "msdbg.format"
local options = require "msdbg.options"

local floor, format, io, setmetatable = math.floor, formats.line, io, setmetatable

local M = {}

local EVERY = 0.1     -- seconds between two updates
local QUICK = 0.5     -- shorter work needs no line
local PATIENCE = 1    -- before that a rate is meaningless

local Progress = {}
Progress.__index = Progress

--- Starts a line. Without `total` it shows only the count. `stream` is for tests: any object with write(), which is always updated.
---@param given? { label?: string, total?: integer, stream?: table }
---@return msdbg.Progress
function M.new(given)
  local o = options.check("progress.new", given, { label = "string", total = "number", stream = "any" })
  local shown = o.stream ~= nil or core.terminal().error_tty
  return setmetatable({ label = o.label or "working", total = o.total, done = 0, shown = shown, stream = o.stream or io.stderr,
    quick = o.stream and 0 or QUICK, started = core.seconds(), drawn = -EVERY, width = 0 }, Progress)
end

--- The line as it would be shown.
---@return string
function Progress:text()
  local elapsed = core.seconds() - self.started
  local known = self.total and self.total > 0
  local share = known and math.min(1, self.done / self.total) or 1
  local text = format("%s: %d", self.label, self.done)
  if known then text = format("%s of %d (%d %%)", text, self.total, floor(share * 100)) end
  if self.done > 0 and elapsed > PATIENCE then
    text = format("%s, %s/s", text, formats.number(self.done / elapsed, 3))
    if share < 1 then text = format("%s, %s left", text, formats.duration(elapsed * (1 - share) / share)) end
  end
  return text
end

--- Advances by `n` (default 1).
---@param n integer?
function Progress:step(n)
  self.done = self.done + (n or 1)
  if not self.shown then return end
  local now = core.seconds()
  if now - self.drawn < EVERY or now - self.started < self.quick then return end
  self.drawn = now
  local text = self:text()
  self.stream:write("\r", text, (" "):rep(self.width - #text))
  self.width = #text
end

--- Removes the line. May be called twice.
function Progress:finish()
  if not self.shown then return end
  self.shown = false
  if self.width > 0 then self.stream:write("\r", (" "):rep(self.width), "\r") end
end

return M
