-- Uses the rule library of an imaginary team: its rules, collection and profile, on any dump, with one table as the result.
--   msdbg run team/review.lua DUMP
--   msdbg check DUMP --rule team/rules --profile team/profile.lua        (the same on the command line)
local msdbg = require "msdbg"
local tables = require "msdbg.table"

local s = msdbg.open(arg[1] or msdbg.fail "usage: msdbg run team/review.lua DUMP")
local here = arg[0]:match "^(.*)/[^/]*$" or "."

local r = s:check { rule_files = { here .. "/rules" }, profile = here .. "/profile.lua" }

local rows, by_rule = tables.new { "rule", "severity", { "hits", align = "right" }, { "first step", align = "right" }, "first tensor" }, {}
for _, hit in ipairs(r.hits) do
  local row = by_rule[hit.rule]
  if not row then
    row = { hit.rule, hit.severity, 0, hit.step, hit.node .. ":" .. hit.slot }
    by_rule[hit.rule] = row
    rows.rows[#rows.rows + 1] = row
  end
  row[3] = row[3] + 1
end
if #r.hits == 0 then print "no findings of the team's rules" else print(rows:sort "rule":text { width = 120 }) end
print(("%d of %d tensors checked"):format(r.coverage.checked, r.coverage.tensors))
os.exit(#r.hits > 0 and 1 or 0)
