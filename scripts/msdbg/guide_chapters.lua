-- The chapters of the guide. Order and subjects are those of MindSpore's guide to accuracy problems.
--
-- A chapter is a function of the checklist (guide.lua). It reports with checklist:finding, checklist:fine and checklist:unknown, and
-- asks a person only what no dump can answer.
local choices = require "msdbg.guide_choices"
local data = require "msdbg.guide_data"
local network = require "msdbg.guide_network"

local M = {}

M.order = {
  { "data", "Data", data.data },
  { "processing", "Processing of the data", data.processing },
  { "hyper_parameters", "Hyper-parameters and loss", choices.hyper_parameters },
  { "api", "Use of the API", choices.api },
  { "graph", "Graph", network.graph },
  { "weights", "Initial weights", network.weights },
  { "precision", "Mixed precision", network.precision },
}

return M
