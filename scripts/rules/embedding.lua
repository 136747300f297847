--- Look-ups in embedding tables.
local rule = require "msdbg.rule"

local format = string.format

--- Operators that fetch rows of a table which is a parameter.
local function lookups(s)
  local list = s:nodes("op:EmbeddingLookup or op:Gather or op:GatherV2 or op:SparseGatherV2 or op:embedding", { optional = true })
  return list:filter(function(node)
    local table_node = node.inputs[1] and node.inputs[1].node
    return table_node ~= nil and table_node.kind == "parameter" and #node.inputs >= 2
  end)
end

--- Rows of the table; nil when neither the graph nor a recorded value says how many.
local function rows_of(t)
  local input = t.node.inputs[1]
  local node = input and input.node
  if not node then return nil end
  local shape = node.outputs[1] and node.outputs[1].shape
  local value = not shape and node:value { step = t.step }
  return shape and shape[1] or value and value.shape[1]
end

local function name_of(t)
  local input = t.node.inputs[1]
  return input and input.node and input.node.name or t.node.name
end

--- A table of four rows, and what is looked up in it in each step.
local function look_up(name, expect, steps, params)
  local case = { name = name, select = true, expect = expect, params = params, steps = {} }
  for i, ids in ipairs(steps) do
    case.steps[i] = { tensors = {
      { node = "embedding_table", op = "Parameter", x = { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } } },
      { node = "Default/Gather-op0", op = "Gather", inputs = { "embedding_table", "ids" }, slot = "input:1", x = ids, dtype = "int32" } } }
  end
  return case
end

local out_of_range = rule {
  name     = "embedding-index-out-of-range",
  summary  = "an index is outside its table",
  tags     = { "embedding", "data", "default" },
  severity = "error",
  select   = lookups,
  slots    = "input:1",
  needs    = { "min", "max" },
  check    = function(t)
    local rows, low, high = rows_of(t), t.stats.min, t.stats.max
    if not rows or not low then return nil end
    -- Some look-ups count negative indices from the end of the table.
    local bad = (high >= rows and high) or (low < -rows and low) or nil
    if bad then
      return { actual = bad, message = format("index %d, but %s has %d rows", bad, name_of(t), rows) }
    end
  end,
  cause    = "The vocabulary of the data is larger than the table, or a padding id lies outside it. Many back ends return zeros for "
           .. "such an index and raise no error.",
  next     = "Compare the size of the vocabulary with the table; look at the samples of this step (t:where \"x >= ROWS\").",
  cases    = {
    look_up("one too many", "hit", { { 0, 4 } }),
    look_up("the last row", "clean", { { 0, 3 } }),
    look_up("from the end", "clean", { { -1, 3 } }),
    look_up("before the first", "hit", { { -5, 3 } }),
    look_up("second step", "hit", { { 0 }, { 9 } }),
    look_up("empty", "clean", { {} }),
    { name = "no table known", slot = "input:1", op = "Gather", x = { 9 }, dtype = "int32", expect = "clean" },
  },
}

local untouched = rule {
  name     = "embedding-rows-untouched",
  summary  = "rows of a table were never looked up",
  tags     = { "embedding", "data" },
  severity = "info",
  select   = lookups,
  slots    = "input:1",
  needs    = { "elements", "abs_mean" },
  params   = {
    -- Words are spread unevenly: after a hundred batches half of a vocabulary may not have occurred and nothing is wrong. Rows that
    -- never occur are memory, and random vectors when they do occur at last.
    limit = { type = "number", default = 50, min = 0, max = 100, unit = "%", help = "more untouched rows than this are a hit" },
    least = { type = "integer", default = 100, min = 1, help = "steps that are needed" },
  },
  -- Elements have to be seen here, one number for each word of the batch; the loop over the view is compiled.
  check    = function(t, _, ctx)
    local rows = rows_of(t)
    if not rows then return nil end
    local key = format("%d %d %s", t.rank, t.node.graph_id, name_of(t))
    local seen = ctx.state[key] or { rows = rows, touched = 0, steps = 0, marks = {} }
    ctx.state[key] = seen
    if seen.step ~= t.step then seen.steps = seen.steps + 1 end
    seen.node, seen.rank, seen.step, seen.name = t.node.name, t.rank, t.step, name_of(t)
    local v, marks, touched = t:view(), seen.marks, seen.touched
    for i = 0, v.n - 1 do
      local row = v[i]
      if row < 0 then row = row + rows end
      if row >= 0 and row < rows and not marks[row + 1] then
        marks[row + 1] = true
        touched = touched + 1
      end
    end
    seen.touched = touched
  end,
  finish   = function(_, p, ctx)
    local found, names = {}, {}
    for name in pairs(ctx.state) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local seen = ctx.state[name]
      local share = 100 * (seen.rows - seen.touched) / seen.rows
      if seen.steps >= p.least and share > p.limit then
        found[#found + 1] = {
          node = seen.node, slot = "input:1", rank = seen.rank, step = seen.step, actual = share,
          message = format("%d of %d rows of %s were not looked up in %d steps", seen.rows - seen.touched, seen.rows, seen.name,
            seen.steps),
        }
      end
    end
    return found
  end,
  cause    = "A table larger than the vocabulary that occurs, ids that are hashed or shifted, or data that are not shuffled.",
  next     = "Compare the ids of the data with the table; if only the first rows are used, shuffling is missing; if every other row "
           .. "is used, the stride is wrong.",
  cases    = {
    look_up("one of four rows", "hit", { { 1, 1 }, { 1, -3 } }, { least = 2 }),
    look_up("all rows", "clean", { { 0, 1 }, { 2, -1 } }, { least = 2 }),
    look_up("too few steps", "clean", { { 1 } }),
    look_up("outside of the table", "hit", { { 7, -9 } }, { least = 1 }),
    look_up("empty", "hit", { {} }, { least = 1 }),
    { name = "no table known", slot = "input:1", op = "Gather", x = { 1 }, dtype = "int32", params = { least = 1 }, expect = "clean" },
  },
}

return { out_of_range, untouched }
