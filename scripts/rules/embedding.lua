--- Look-ups in embedding tables.
local rule = require "msdbg.rule"

local format = string.format

--- Operators that fetch rows of a table which is a parameter.
local function lookups(s)
  return s:nodes("op:EmbeddingLookup or op:Gather or op:GatherV2 or op:SparseGatherV2", { optional = true }):filter(function(node)
    local table_node = node.inputs[1] and node.inputs[1].node
    return table_node ~= nil and table_node.kind == "parameter" and #node.inputs >= 2
  end)
end

--- Rows of the table that `t` looks into; nil when the graph does not say.
local function rows_of(t, p)
  if p.rows > 0 then return p.rows end
  local input = t.node.inputs[1]
  local output = input and input.node and input.node.outputs[1]
  return output and output.shape and output.shape[1]
end

local function name_of(t)
  local input = t.node.inputs[1]
  return input and input.node and input.node.name or t.node.name
end

local rows_parameter = { type = "integer", default = 0, min = 0, help = "rows of the table; 0: as the graph says" }

local out_of_range = rule {
  name     = "embedding-index-out-of-range",
  summary  = "an index lies outside of its table",
  tags     = { "embedding", "data", "default" },
  severity = "error",
  select   = lookups,
  slots    = "input:1",
  needs    = { "min", "max" },
  params   = {
    rows = rows_parameter,
  },
  check    = function(t, p)
    local rows, low, high = rows_of(t, p), t.stats.min, t.stats.max
    if not rows or not low then return nil end
    -- Some look-ups count negative indices from the end of the table.
    local bad = (high >= rows and high) or (low < -rows and low) or nil
    if bad then
      return { actual = bad, message = format("index %d, but %s has %d rows", bad, name_of(t), rows) }
    end
  end,
  cause    = "The vocabulary of the data is larger than the table, or a padding id lies outside of it. Many back ends give zeros for "
           .. "such an index and no error.",
  next     = "Compare the size of the vocabulary with the table; look at the samples of this step (t:where \"x >= ROWS\").",
  cases    = {
    { name = "one too many", x = { 0, 4 }, dtype = "int32", params = { rows = 4 }, expect = "hit" },
    { name = "the last row", x = { 0, 3 }, dtype = "int32", params = { rows = 4 }, expect = "clean" },
    { name = "from the end", x = { -1, 3 }, dtype = "int64", params = { rows = 4 }, expect = "clean" },
    { name = "before the first", x = { -5, 3 }, dtype = "int64", params = { rows = 4 }, expect = "hit" },
    { name = "0-d", x = { 9 }, shape = {}, dtype = "int32", params = { rows = 4 }, expect = "hit" },
    { name = "empty", x = {}, shape = { 0 }, dtype = "int32", params = { rows = 4 }, expect = "clean" },
  },
}

local untouched = rule {
  name     = "embedding-rows-untouched",
  summary  = "rows of a table were never looked up",
  tags     = { "embedding", "data" },
  severity = "info",
  select   = lookups,
  slots    = "input:1",
  needs    = { "elements" },
  params   = {
    rows = rows_parameter,
    -- Words are spread unevenly: after a hundred batches half of a vocabulary may not have occurred and nothing is wrong. Rows that
    -- never occur are memory, and random vectors when they do occur at last.
    limit = { type = "number", default = 50, min = 0, max = 100, unit = "%", help = "more untouched rows than this are a hit" },
    least = { type = "integer", default = 100, min = 1, help = "steps that are needed" },
  },
  -- Elements have to be seen here, one number for each word of the batch; the loop over the view is compiled.
  check    = function(t, p, ctx)
    local rows = rows_of(t, p)
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
  cause    = "A table larger than the vocabulary that occurs, ids that are hashed or shifted, data that are not shuffled.",
  next     = "Compare the ids of the data with the table; the first rows only means a missing shuffle, every other row a wrong "
           .. "stride.",
  cases    = {
    { name = "one of four rows", steps = { { x = { 1, 1 }, dtype = "int32" }, { x = { 1, -3 }, dtype = "int32" } },
      params = { rows = 4, least = 2 }, expect = "hit" },
    { name = "all rows", steps = { { x = { 0, 1 }, dtype = "int32" }, { x = { 2, -1 }, dtype = "int32" } },
      params = { rows = 4, least = 2 }, expect = "clean" },
    { name = "too few steps", x = { 1 }, dtype = "int32", params = { rows = 4 }, expect = "clean" },
    { name = "outside of the table", x = { 7, -9 }, dtype = "int32", params = { rows = 4, least = 1 }, expect = "hit" },
    { name = "no table known", x = { 1 }, dtype = "int32", params = { least = 1 }, expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, dtype = "int32", params = { rows = 4 }, expect = "clean" },
  },
}

return { out_of_range, untouched }
