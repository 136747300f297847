std = "luajit"
max_line_length = 150
exclude_files = { "build/" }
files["scripts/meta"] = { ignore = { "212", "111", "241", "631" } }  -- stubs: arguments and locals that nothing uses
files["examples"] = { read_globals = { "msdbg" } }
files["tests/lua"] = { read_globals = { "msdbg" } }
files["examples/live"] = { read_globals = { "msdbg", "s" } }  -- `msdbg listen --script` opens the session
files["examples/apps"] = { read_globals = { "msdbg", "s" } }  -- `msdbg listen --script` opens the session
