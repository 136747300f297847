--- What the ranks of a training have in common: values that they must share, and data of one kind.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local format, max, min = string.format, math.max, math.min

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
  applies  = function(s) return #s.ranks >= 2 or "there is one rank" end,
  select   = function(s)
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

--- The first three of these calls on each rank with an input that no recorded call made. Later calls take weights and other outputs.
local function first_calls(s, calls)
  local list, left = {}, {}
  for node in s:nodes(calls, { optional = true }):each() do
    local open = left[node.rank] or 3
    for _, input in ipairs(open > 0 and node.inputs or {}) do
      if not input.node then
        list[#list + 1], left[node.rank] = node, open - 1
        break
      end
    end
  end
  return #list > 0 and list or nil
end

--- What a network is fed, and the operators that read it: the value is dumped with the one, or with the other.
local function fed_and_readers(s)
  if s.info.layout == "P" then return first_calls(s, "**.forward") or first_calls(s, "**.forward.*") end
  local list = training.fed(s)
  if not list then return nil end
  local readers = {}
  for node in list:each() do
    for _, user in ipairs(node.users) do
      if user.node.kind == "operator" then readers[#readers + 1] = user.node end
    end
  end
  return #readers > 0 and list:union(s:nodes(readers)) or list
end

--- The name of the data input that this tensor holds; nil if it holds something else.
local function data_of(t)
  local node, slot = t.node, t.slot
  local input = tonumber(slot:match "^input:(%d+)$")
  if input then
    local source = node.inputs[input + 1]
    if not source then return nil end
    if not source.node and source.name == "" then return node.name .. ":" .. slot end  -- of a recorded call
    node, slot = source.node, source.slot or "output:0"
  end
  if not node or (node.kind ~= "parameter" and not node.op:find "^GetNext") then return nil end
  return not node.trainable and node.name .. ":" .. slot or nil
end

--- The batch of one network on several ranks: `values[rank]`, from 1, times 16 elements that vary a little; nil leaves the rank out.
local function fed(name, expect, values, extra)
  local case = { name = name, expect = expect, select = true, tensors = {} }
  for rank = 1, 4 do
    local x = {}
    for i = 1, values[rank] and 16 or 0 do x[i] = values[rank] * (1 - (i * 7 + rank) % 16 / 20) end
    if #x > 0 then case.tensors[#case.tensors + 1] = { node = "x", op = "Parameter", rank = rank - 1, x = x } end
  end
  for key, value in pairs(extra or {}) do case[key] = value end
  return case
end

--- How far `own` is outside of what the others span: 3 if it is three times as large as the largest, or a third of the smallest.
local function factor(own, others)
  local least, most = min(unpack(others)), max(unpack(others))
  if least <= 0 then return 1 end
  if own == 0 then return math.huge end
  return own > most and own / most or least / own
end

--- The one rank whose values are outside by more than `limit`. Both the largest and the usual magnitude (root mean square) have to be:
--- neither a single large element nor many zeros make a batch another one.
local function odd_one(entries, limit)
  local found
  for i, own in ipairs(entries) do
    local peaks, usual = {}, {}
    for k, other in ipairs(entries) do
      if k ~= i then peaks[#peaks + 1], usual[#usual + 1] = other.peak, other.usual end
    end
    local by = min(factor(own.peak, peaks), factor(own.usual, usual))
    if by >= limit then
      if found then return nil end
      found = { own = own, by = by, least = min(unpack(peaks)), most = max(unpack(peaks)) }
    end
  end
  return found
end

local data = rule {
  name     = "rank-data-differ",
  summary  = "one rank has far larger or smaller data than the others",
  tags     = { "ranks", "data", "default" },
  severity = "warning",
  applies  = function(s)
    return #s.ranks >= 3 or format("it compares three ranks or more, and the session has %d", #s.ranks)
  end,
  select   = fed_and_readers,
  slots    = "all",
  needs    = { "min", "max", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count" },
  params   = {
    factor = { type = "number", default = 20, min = 1, help = "how many times as large, or as small" },
    least = { type = "integer", default = 16, min = 1, help = "fewest elements that are judged" },
  },
  check    = function(t, p, ctx)
    local stats, name = t.stats, data_of(t)
    if not name or not t.dtype:find "float" or t.size < p.least then return end
    if stats.nan_count + stats.pos_inf_count + stats.neg_inf_count > 0 then return end
    local key = format("%s %d", name, t.step)
    local entries = ctx.state[key]
    if not entries then
      entries = { of = {} }
      ctx.state[key], ctx.state[#ctx.state + 1] = entries, key
    end
    local entry = entries.of[t.rank]
    if not entry then
      entry = {}
      entries.of[t.rank], entries[#entries + 1] = entry, entry
    end
    if entry.tensor and t.node.kind == "operator" then return end  -- what several operators read; the data itself come last
    entry.tensor, entry.peak, entry.usual = t, max(math.abs(stats.max), math.abs(stats.min)), stats.l2_norm / math.sqrt(t.size)
  end,
  finish   = function(_, p, ctx)
    local found = {}
    for _, key in ipairs(ctx.state) do
      local entries = ctx.state[key]
      local odd = #entries >= 3 and odd_one(entries, p.factor)
      if odd then
        local others = odd.least == odd.most and format("%.3g", odd.most) or format("%.3g to %.3g", odd.least, odd.most)
        found[#found + 1] = { tensor = odd.own.tensor, actual = odd.by < math.huge and odd.by or nil,
          message = format("the largest magnitude is %.3g, on the other ranks %s", odd.own.peak, others) }
      end
    end
    return found
  end,
  cause    = "The pipeline of that rank prepares its data in another way: not normalized, another type or unit, a damaged or empty file.",
  next     = "Compare what the rank reads with what another one reads: the same code, files and version, and the same preparation.",
  cases    = {
    fed("alike", "clean", { 1, 1.5, 0.7, 1.1 }),
    fed("not normalized", "hit", { 1, 255, 1, 1 }, { actual = 255 }),
    fed("divided twice", "hit", { 1, 1, 0.004, 1 }),
    fed("zeros", "hit", { 1, 1, 1, 0 }),
    fed("three ranks", "hit", { 1, 1, 255 }),
    fed("two of four", "clean", { 1, 1, 255, 255 }),
    fed("zeros on the others", "clean", { 0, 1, 0, 0 }),
    fed("of any scale", "clean", { 1, 10, 100, 1000 }),
    { name = "one large element", expect = "clean", select = true, tensors = (function()
      local list = {}
      for rank = 0, 3 do
        local x = {}
        for i = 1, 400 do x[i] = 1 + i % 7 / 10 end
        if rank == 2 then x[9] = 300 end
        list[rank + 1] = { node = "x", op = "Parameter", rank = rank, x = x }
      end
      return list
    end)() },
    { name = "labels", expect = "clean", select = true, tensors = (function()
      local list = {}
      for rank = 0, 3 do
        local y = {}
        for i = 1, 16 do y[i] = rank == 2 and 900 or i % 3 end
        list[rank + 1] = { node = "y", op = "Parameter", dtype = "int32", rank = rank, x = y }
      end
      return list
    end)() },
  },
}

return { replicas, data }
