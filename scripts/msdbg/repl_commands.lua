-- All plain commands of the prompt. Each group registers its own.
local registry = require "msdbg.repl_registry"
require "msdbg.repl_look"
require "msdbg.repl_tensor"
require "msdbg.repl_check"
require "msdbg.repl_rules"
require "msdbg.repl_run"
require "msdbg.repl_stops"
require "msdbg.repl_keep"

return registry
