-- The results of msdbg.diff and t:diff as text, and the tensor method itself.
local core = require "msdbg.core"
local formats = require "msdbg.format"
local pictures = require "msdbg.tensor_pictures"
local options = require "msdbg.options"
local tables = require "msdbg.table"

local format = formats.line
local ipairs, type = ipairs, type

local methods = core.members "tensor"

local function short(value)
  if value == nil then return "-" end
  if value == 1 / 0 then return "Inf" end
  return format("%.4g", value)
end

local function place(at) return at and " at [" .. table.concat(at, ",") .. "]" or "" end

core.record("diff_entry", {
  __name = "diff_entry",
  __tostring = function(entry)
    local name = entry.node_b:match "([^/]+/[^/]+)$" or entry.node_b
    local what = entry.reason or format("max error %s, %s %% within tolerance", short(entry.max_abs_error), short(entry.within_tolerance * 100))
    local role = entry.role and "  " .. entry.role or ""
    return format("step %d  %s:%s  %s  %s%s", entry.step, name, entry.slot, entry.state, what, role)
  end,
})

-- Like MindInsight's comparison view: the statistics side by side, then the measures, then a picture.
local function as_text(diff)
  local rows = tables.new { "", { "current", align = "right" }, { "other", align = "right" }, { "difference", align = "right" } }
  for _, field in ipairs { "min", "max", "mean", "abs_mean", "std", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count",
    "zero_count" } do
    rows:add(field, short(diff.current_stats[field]), short(diff.other_stats[field]), short(diff.stats[field]))
  end
  local lines = {
    diff.equal and "equal bit for bit"
      or format("max error %s%s, relative %s, mean %s", short(diff.max_abs_error), place(diff.max_abs_at), short(diff.max_rel_error),
        short(diff.mean_abs_error)),
    format("cosine %s, %s %% within rtol %s, atol %s%s", short(diff.cosine), short(diff.within_tolerance * 100), short(diff.rtol), short(diff.atol),
      diff.max_ulp and format(", %.0f representable numbers apart at most", diff.max_ulp) or ""),
  }
  if diff.nan_mismatch + diff.inf_mismatch > 0 then
    lines[#lines + 1] = format("%d NaN and %d Inf on one side only", diff.nan_mismatch, diff.inf_mismatch)
  end
  if diff.boundary > 0 then lines[#lines + 1] = format("differences up to %s are shown as 0", short(diff.boundary)) end
  lines[#lines + 1] = rows:text()
  if not diff.equal and diff.count > 1 then lines[#lines + 1] = pictures.heatmap(diff.difference) end
  return table.concat(lines, "\n")
end

core.record("tensor_diff", { __name = "tensor_diff", __tostring = as_text })

function methods.diff(tensor, other, given)
  if type(given) == "number" then given = { tolerance = given } end
  local o = options.check("diff", given, { tolerance = "number", rtol = "number", atol = "number" })
  local found = core.tensor_diff(tensor, other, o.tolerance, o.rtol, o.atol)
  local diff = core.new_record "tensor_diff"
  for key, value in pairs(found) do diff[key] = value end
  return diff
end

return methods
