-- The script of tools/soak: sets and removes watchpoints at random and recomputes each verdict from the elements.
--   msdbg listen --script tools/soak.lua -- STEPS SEED
local steps, seed = tonumber(arg[1]), tonumber(arg[2])
math.randomseed(seed)

local most_watches, most_nodes = 6, 4
local active, counts = {}, { set = 0, removed = 0, changed = 0, hits = 0, clean = 0, not_checked = 0, close = 0, wrong = 0 }

local operators, weights = {}, {}
local all = s:nodes "**"
for i = 1, #all do
  local node = all[i]
  if node.kind == "operator" and #node.outputs == 1 and node.op ~= "TupleGetItem" then operators[#operators + 1] = node
  elseif node.trainable then weights[#weights + 1] = node end
end

local function pick(list) return list[math.random(#list)] end

-- ---- the recount ----------------------------------------------------------------------------------------------------

-- The quantities of the conditions, from the elements alone.
local function measure(node)
  local tensor = node.kind == "parameter" and node:value() or node:output(0)
  if not tensor then return nil end
  local view = tensor:view()
  local m = { n = view.n, max = -math.huge, min = math.huge, sum = 0, abs = 0, zeros = 0, bad = 0, elements = {} }
  for i = 0, view.n - 1 do
    local x = view[i]
    m.elements[i + 1] = x
    if x ~= x or x == math.huge or x == -math.huge then m.bad = m.bad + 1
    else
      if x > m.max then m.max = x end
      if x < m.min then m.min = x end
      m.sum, m.abs = m.sum + x, m.abs + math.abs(x)
      if x == 0 then m.zeros = m.zeros + 1 end
    end
  end
  m.mean, m.abs_mean, m.zero = m.sum / m.n, m.abs / m.n, 100 * m.zeros / m.n
  return m
end

-- For each: what to set, and for a tensor the value to compare, how, and whether NaN and Inf leave it undecided.
local kinds = {
  { name = "max", value = "max", above = true, watch = function(x) return { when = "TL", max_gt = x } end, undecided = true },
  { name = "mean", value = "mean", above = true, watch = function(x) return { when = "TL", mean_gt = x } end, undecided = true },
  { name = "size", value = "abs_mean", above = true, undecided = true,
    watch = function(x) return { when = "TL", abs_mean_gt = math.max(0, x) } end },
  { name = "small", value = "min", above = false, watch = function(x) return { when = "TS", min_lt = x } end, undecided = true },
  { name = "zeros", value = "zero", above = true, undecided = true,
    watch = function(x) return { when = "TZ", zero_percentage_ge = math.min(100, math.max(0, x)) } end },
  { name = "function", value = "max", above = true, calls = 0 },
  { name = "expression", value = "min", above = false, watch = function(x) return { when = ("min(x) < %.17g"):format(x) } end },
  { name = "overflow", overflow = true, watch = function() return { when = "TO" } end },
  { name = "unchanged", weights = true, watch = function(x) return { when = "WNC", rtol = 0, atol = x } end },
}

-- "hit", "clean", "not checked"; nil if the value is too close to the threshold for two orders of summation.
local function expected(entry, m)
  local kind, x = entry.kind, entry.threshold
  if kind.overflow then return m.bad > 0 and "hit" or "clean" end
  if kind.weights then
    if m.bad > 0 then return "not checked" end
    local before = entry.before[m.name]
    if not before then return "first" end
    local largest = 0
    for i = 1, m.n do
      largest = math.max(largest, math.abs(m.elements[i] - before[i]))
    end
    if math.abs(largest - x) <= 1e-6 * math.abs(x) then return nil end
    return largest <= x and "hit" or "clean"
  end
  if m.bad > 0 then return kind.undecided and "not checked" or nil end
  local value = m[kind.value]
  if math.abs(value - x) <= 1e-5 * math.max(math.abs(value), math.abs(x), 1e-6) then return nil end
  return (kind.above and value > x or not kind.above and value < x) and "hit" or "clean"
end

local function complain(text, ...)
  counts.wrong = counts.wrong + 1
  if counts.wrong <= 20 then print(("step %d: "):format(s.current_step) .. text:format(...)) end
end

-- ---- watchpoints ----------------------------------------------------------------------------------------------------

local function set()
  local kind = pick(kinds)
  local nodes, names, chosen = {}, {}, {}
  for _ = 1, math.random(most_nodes) do
    local node = pick((kind.weights or math.random() < 0.3) and weights or operators)
    if not chosen[node.name] then
      chosen[node.name] = true
      nodes[#nodes + 1], names[#names + 1] = node, "=" .. node.name
    end
  end
  local entry = { kind = kind, nodes = nodes, before = {}, since = s.completed_steps, calls = 0 }
  local m = kind.value and s.completed_steps > 0 and measure(nodes[1])
  local around = m and m.bad == 0 and m[kind.value] or math.random() - 0.5
  entry.threshold = kind.weights and 10 ^ -math.random(3, 7) or around * (0.5 + math.random()) + (math.random() - 0.5) * 1e-3
  if kind.watch and not kind.weights then
    local options = kind.watch(entry.threshold)
    for key, value in pairs(options) do if key ~= "when" then entry.threshold = value end end
  end
  local options = kind.watch and kind.watch(entry.threshold)
    or { when = function(t) entry.calls = entry.calls + 1; return t.stats.max > entry.threshold end }
  options.on = table.concat(names, " or ")
  entry.watch = s:watch(options)
  active[#active + 1] = entry
  counts.set = counts.set + 1
end

local function remove()
  local entry = table.remove(active, math.random(#active))
  entry.watch:remove()
  counts.removed = counts.removed + 1
end

local function change()
  if #active == 0 or (#active < most_watches and math.random() < 0.5) then return set() end
  if math.random() < 0.6 then return remove() end
end

-- ---- the run --------------------------------------------------------------------------------------------------------

local function key(watch, node) return watch .. " " .. node end

local function verify(hits, undecided)
  for _, entry in ipairs(active) do
    local id = entry.watch.id
    for _, node in ipairs(entry.nodes) do
      local m = measure(node)
      local here = key(id, node.name)
      if not m then complain("%s of %s: the value cannot be read", entry.kind.name, node.name)
      else
        m.name = node.name
        local want = expected(entry, m)
        local got = hits[here] and "hit" or undecided[here] and "not checked" or "clean"
        if want == nil or want == "first" then counts.close = counts.close + 1
        elseif want ~= got then
          complain("%s %s of %s: %s, recounted %s (max %.9g min %.9g mean %.9g zero %.9g bad %d)", entry.kind.name,
            tostring(entry.threshold), node.name, undecided[here] or got, want, m.max, m.min, m.mean, m.zero, m.bad)
        elseif want == "hit" then counts.hits = counts.hits + 1
        elseif want == "clean" then counts.clean = counts.clean + 1
        else counts.not_checked = counts.not_checked + 1 end
        if entry.kind.weights then entry.before[node.name] = m.elements end
      end
      hits[here] = nil
    end
    if entry.kind.calls and entry.calls ~= #entry.nodes then
      complain("a function on %d nodes was called %d times", #entry.nodes, entry.calls)
    end
    entry.calls = 0
  end
  for here in pairs(hits) do complain("a hit of no watchpoint: %s", here) end
end

while s.completed_steps < steps do
  if math.random() < 0.2 then change() end
  local before, hits, undecided, r = s.completed_steps, {}, {}, nil
  repeat
    r = s:step(1)
    for _, hit in ipairs(r.hits) do
      local here = key(hit.watch, hit.node)
      if hits[here] then complain("two hits of %s in one step", here) end
      hits[here] = true
    end
    for _, entry in ipairs(r.not_checked) do undecided[key(entry.watch, entry.node)] = entry.reason end
  until r.completed_steps > before or not r.held
  if not r.held then complain("the training is %s", r.state) break end
  if r.completed_steps ~= before + 1 then complain("%d steps at once", r.completed_steps - before) end
  verify(hits, undecided)
  if r.completed_steps % 1000 == 0 then
    collectgarbage()
    print(("%d steps: %d hits, %d clean, %d not checked, %d wrong; %d KiB of Lua"):format(r.completed_steps, counts.hits, counts.clean,
      counts.not_checked, counts.wrong, collectgarbage "count"))
  end
end

print(("%d steps; %d watchpoints set, %d removed; recounted: %d hits, %d clean, %d not checked, %d undecided by the recount; %d wrong")
  :format(s.completed_steps, counts.set, counts.removed, counts.hits, counts.clean, counts.not_checked, counts.close, counts.wrong))
s:terminate()
os.exit(counts.wrong == 0 and 0 or 1)
