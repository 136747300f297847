-- Logs a long training: one line per step on the terminal, one JSON object per step in a file. It never stops the training.
--   msdbg listen --script overnight.lua [-- LOG [STEPS]]
local log   = assert(io.open(arg[1] or "overnight.jsonl", "a"))
local steps = tonumber(arg[2] or math.huge)  -- then detach

-- Watching the loss also makes a GPU training read it; here a hit only adds a word to the log.
local losses = s:nodes "@loss"
local loss = losses[#losses]
s:watch { name = "loss not finite", on = loss, when = "tensor_overflow" }
local gradients = s:watch { name = "gradient not finite", on = "@gradient", when = "tensor_overflow" }

local function number(x) return x and x == x and math.abs(x) < math.huge and ("%.6g"):format(x) or "null" end

local hits = 0
s:on("hit", function() hits = hits + 1 end)

for step in s:each_step() do
  local t = loss:output(0)
  local value = number(t and t.stats.mean)
  log:write(('{"step":%d,"time":%d,"loss":%s,"hits":%d}\n'):format(step, os.time(), value, hits))
  log:flush()
  print(("step %-6d loss %-10s%s"):format(step, value, hits > 0 and " hits " .. hits or ""))
  if hits > 0 then gradients:disable() end  -- once is enough; further hits would slow down every step
  hits = 0
  if s.completed_steps >= steps then break end
end

log:close()
if s.state == "held" then s:detach() end
