-- Saves the tensors around the first hit as .npy: the value that hit and the inputs of its operator. Then lets the training run on.
--   msdbg listen --script save_first_hit.lua [-- DIRECTORY [CONDITION [SELECTOR]]]
local directory = arg[1] or "."
local condition = arg[2] or "tensor_overflow"
local selector  = arg[3] or "@all and not @parameter and not @constant"

s:watch { name = "first", on = selector, when = condition }
local r
repeat r = s:continue() until r.reason == "hit" or r.state ~= "held"
if r.reason ~= "hit" then
  print(("no hit in %d steps"):format(r.completed_steps))
  os.exit(0)
end

local count = 0
local function save(t, why)
  if not t then return print("  not saved: " .. why) end
  local path = ("%s/step%d-%s.npy"):format(directory, r.step, t.name:gsub("[^%w._-]+", "_"))
  t:save(path)
  count = count + 1
  print(("  %s  %s%s"):format(path, t.dtype, "[" .. table.concat(t.shape, ",") .. "]"))
end

local hit = r.hits[1]
local node = s:node(hit.node)
print(("step %d  %s on %s:%s"):format(hit.step, hit.rule, hit.node, hit.slot))
for i = 0, #node.outputs - 1 do save(node:output(i)) end
for i = 0, #node.inputs - 1 do save(node:input(i)) end
print(count .. " files")

if r.held then s:detach() end
