-- Every example runs on a real dump and prints what it promises.
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data, examples = ...
data = data .. "/dumps/"



-- Runs an example in a process of its own, as a user would: the text it prints and its exit status.
local function run(name, dump)
  local runner = os.getenv "MSDBG_LUA_RUNNER"
  local pipe = assert(io.popen(("'%s' '%s/%s.lua' '%s' 2>&1; echo status $?"):format(runner, examples, name, data .. dump), "r"))
  local text = pipe:read "*a"
  pipe:close()
  return text:match "^(.-)status (%d+)\n$"
end

describe("example", function()
  it("first_nan names operator, line and spread", function()
    local text, status = run("first_nan", "lenet-2.7.1-lognan")
    expect(text):contains "step 0  Default/network-WithLossCell/_backbone-LeNet5/Log-op0:output:0  104 of 192 elements\n"
    expect(text):contains "/data/lenet/train.py:70  x = self.log(x)"
    expect(text):contains "input:0 is sound"
    expect(text):contains "step 1  Default/network-WithLossCell/_backbone-LeNet5/Log-op0:output:0  88 of 192 elements\n"
    expect(status):equals "1"
  end)

  it("first_nan is content with a healthy run", function()
    local text, status = run("first_nan", "lenet-2.7.1-ok")
    expect(text):equals "no NaN or Inf in 3 steps\n"
    expect(status):equals "0"
  end)

  it("gradient_health prints gradient, magnitude and change of each weight", function()
    local text, status = run("gradient_health", "lenet-2.7.1-ok")
    expect(text:match "1     conv1.weight%s+0.0006166%s+0.08428%s+0.0008081\n"):is_true()
    expect(text:match "1     conv2.weight%s+4.926e%-05%s+0.07789%s+0.0001886\n"):is_true()
    expect(text:match "1     fc1.weight%s+0.0009246%s+0.03953%s+0.0001064\n"):is_true()
    expect(select(2, text:gsub("\n", ""))):equals(17)
    expect(status):equals "0"
  end)

  it("custom_watchpoint finds the dead activation", function()
    local text, status = run("custom_watchpoint", "lenet-2.7.1-lognan")
    expect(text):contains "step 0  Default/network-WithLossCell/_backbone-LeNet5/relu4-ReLU/ReLU-op0  100 % zero, 0 alive\n"
    expect(text):contains "2 hits, 8 tensors checked\n"
    expect(status):equals "0"
  end)

  it("recheck_until_quiet ends with one weight and reads only once", function()
    local text, status = run("recheck_until_quiet", "lenet-2.7.1-ok")
    expect(text):contains "16 hits, 24 tensors read\n"
    expect(text):contains "  1 hits, 0 tensors read\n"
    expect(text):contains "left: step 1  fc3.bias changed by 0.6803"
    expect(status):equals "0"
  end)

  it("unchanged_weights finds the two that got no gradient", function()
    local text, status = run("unchanged_weights", "lenet-2.7.1-lognan")
    expect(text):contains "step 1  fc3.weight  unchanged"
    expect(text):contains "step 1  fc2.bias  unchanged"
    expect(text):contains "2 of 3 weights and steps unchanged\n"
    expect(status):equals "0"
  end)

  for _, name in ipairs { "first_nan", "gradient_health", "custom_watchpoint", "recheck_until_quiet", "unchanged_weights" } do
    it(name .. " is 15 to 40 lines and opens with what it shows", function()
      local lines = {}
      for line in io.lines(examples .. "/" .. name .. ".lua") do lines[#lines + 1] = line end
      expect(#lines >= 15 and #lines <= 40):is_true()
      expect(lines[1]:sub(1, 3)):equals "-- "
    end)
  end
end)

return test.finish()
