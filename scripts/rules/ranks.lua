--- Values that the ranks of a training must share.
local rule = require "msdbg.rule"

--- One weight on several ranks in several steps: `values[step][rank]`, both from 1; nil leaves the rank out.
local function weights(name, expect, values, extra)
  local case = { name = name, expect = expect, select = true, steps = {} }
  for i, ranks in ipairs(values) do
    local list = {}
    for k = 1, 4 do
      if ranks[k] then list[#list + 1] = { node = "fc.weight", op = "Parameter", trainable = true, rank = k - 1, x = { 1, ranks[k] } } end
    end
    case.steps[i] = { tensors = list }
  end
  for key, value in pairs(extra or {}) do case[key] = value end
  return case
end

local nan = "nan"

local replicas = rule {
  name     = "replica-differs",
  summary  = "a rank holds another value than its replicas",
  tags     = { "ranks", "default" },
  severity = "error",
  compares = "ranks",
  select   = function(s)
    if #s.ranks < 2 then return nil end
    return #s:nodes("@weight or @optimizer", { optional = true }) > 0 and "@weight or @optimizer" or "@all"
  end,
  cause    = "A flipped bit (faulty memory), a rank with other settings or another checkpoint, an operator that is not deterministic, "
           .. "or weights that no collective keeps equal.",
  next     = "msdbg replicas shows the elements, their bits and the operator that shows the difference first. A single flipped bit: "
           .. "test the memory of that device and restart from a checkpoint before it.",
  cases    = {
    weights("equal", "clean", { { 2, 2, 2, 2 }, { 3, 3, 3, 3 } }),
    weights("one rank from the second step on", "hit", { { 2, 2, 2, 2 }, { 3, 4, 3, 3 }, { 5, 6, 5, 5 } }, { hits = 1, hit_steps = { 1 } }),
    weights("the lowest rank is the odd one", "hit", { { 2, 2, 2 }, { 4, 3, 3 } }, { actual = 1 }),
    weights("two ranks", "hit", { { 2, 2 }, { 3, 4 } }),
    weights("NaN on every rank", "clean", { { 2, 2, 2 }, { nan, nan, nan } }),
    weights("NaN on one rank", "hit", { { 2, 2, 2 }, { 3, nan, 3 } }),
    weights("shards", "clean", { { 1, 2, 3, 4 }, { 2, 3, 4, 5 } }),
    weights("two groups", "clean", { { 1, 1, 2, 2 }, { 3, 3, 4, 4 } }),
    weights("a rank of a group", "hit", { { 1, 1, 2, 2 }, { 3, 3, 4, 5 } }),
    weights("a rank without a step", "clean", { { 2, 2, 2 }, { 3, 3 } }),
    weights("0 and -0", "hit", { { 0, 0, 0 }, { 0, -0.0, 0 } }),
  },
}

return { replicas }
