-- Where did the first NaN or Inf of a run come from? One line per step: operator, source line, how far it spread.
--   msdbg run first_nan.lua DUMP
local msdbg = require "msdbg"

local path = arg[1] or msdbg.fail "usage: msdbg run first_nan.lua DUMP"
local s = msdbg.open(path)
local found = msdbg.origin(s)

for _, o in ipairs(found.origins) do
  if o.order == 1 then
    local line = o.stack[1]
    print(("step %d  %s:%s  %d of %d elements"):format(o.step, o.node, o.slot, o.bad_count, o.stats.count))
    if line then print(("  %s:%d  %s"):format(line.file, line.line, line.code)) end
    for _, input in ipairs(o.inputs) do
      print(("  %s is %s: %s"):format(input.slot, input.state, input.node))
    end
    print(("  reaches %d tensors of this step"):format(o.reached))
  end
end

if #found.origins == 0 then print("no NaN or Inf in " .. #s.steps .. " steps") end
os.exit(#found.origins > 0 and 1 or 0)
