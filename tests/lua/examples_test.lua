-- Every example runs on a real dump and prints what it should.
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data, examples = ...
data = data .. "/dumps/"

-- Runs an example in a separate process, as a user would: returns the text it prints and its exit status.
local function run(name, dump, ...)
  local runner = os.getenv "MSDBG_LUA_RUNNER"
  local words = { ("'%s' '%s/%s.lua' '%s'"):format(runner, examples, name, data .. dump) }
  for _, word in ipairs { ... } do words[#words + 1] = "'" .. word .. "'" end
  local pipe = assert(io.popen(table.concat(words, " ") .. " 2>&1; echo status $?", "r"))
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

  it("first_nan accepts a healthy run", function()
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
    -- A weight that is NaN everywhere has no mean.
    local broken, fine = run("gradient_health", "lenet-2.7.1-explode")
    expect(broken:match "4     fc2.weight%s+%-%s+%-%s+%-\n"):is_true()
    expect(fine):equals "0"
  end)

  it("apps/layers says that it is a module", function()
    local text, status = run("apps/layers", "lenet-2.7.1-ok")
    expect(text):contains "layers.lua is a module of live_hunt.lua"
    expect(status):equals "5"
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

  it("apps/anomaly_hunt narrows a bad run down and writes a report", function()
    local report = os.tmpname()
    local text, status = run("apps/anomaly_hunt", "lenet-2.7.1-lognan", report)
    expect(text):contains "Gradients/Default/network-WithLossCell/_backbone-LeNet5/fc1-Dense/Grad_MatMul                  5"
    expect(text):contains "23 findings in 3 suspect scopes\n"
    expect(status):equals "1"
    local file = assert(io.open(report))
    expect(file:read "*a"):contains "### msdbg check: 23 findings\n"
    file:close()
    os.remove(report)
  end)

  it("apps/anomaly_hunt leaves a healthy run alone, and dumps of statistics are no obstacle", function()
    local text, status = run("apps/anomaly_hunt", "lenet-2.7.1-ok")
    expect(text):equals "nothing stands out in 3 steps\n"
    expect(status):equals "0"
    expect(run("apps/anomaly_hunt", "synthetic-stat-new")):equals "nothing stands out in 2 steps\n"
  end)

  it("apps/report_generator names the origin, the weights and the findings", function()
    local text, status = run("apps/report_generator", "lenet-2.7.1-lognan")
    expect(text):contains "in step 0: `Default/network-WithLossCell/_backbone-LeNet5/Log-op0:output:0`, /data/lenet/train.py:70. It reaches 16 "
    expect(text):contains "| fc2.weight | \\[32,48\\] | 0.03811 | 0 |"
    expect(text):contains "### msdbg check: 42 findings\n"
    expect(status):equals "0"
    expect(run("apps/report_generator", "control-2.7.1")):contains "No value of a weight was dumped."
    expect(run("apps/report_generator", "lenet-2.7.1-ok")):contains "No NaN and no Inf in "
  end)

  it("calibrate_threshold keeps the rate it was asked for", function()
    local text, status = run("calibrate_threshold", "lenet-2.7.1-ok", "0.05", data .. "lenet-2.7.1-explode")
    expect(text):contains "60 gradients, median 5.949, largest 44.99\n"
    expect(text):contains "threshold 39.1 for a false-alarm rate of 5.0 %\n"
    expect(text):contains "healthy run: 3 of 60 gradients above it, 5.0 %\n"
    expect(text):contains "other run:   30 of 242 gradients above it, 12.4 %; 38 not checked\n"
    expect(status):equals "0"
    expect(run("calibrate_threshold", "lenet-2.7.1-ok", "0.01")):contains "too few values to promise less than 5.0 %\n"
    local why, failed = run("calibrate_threshold", "lenet-2.7.1-ok", "2")
    expect(why):contains "RATE is a share between 0 and 1, not '2'"
    expect(failed):equals "5"
  end)

  it("team/review runs rules, collections and limits of its own", function()
    local text, status = run("team/review", "lenet-2.7.1-lognan")
    expect(text):contains "vision-dead-features"
    expect(text):contains "_backbone-LeNet5/relu4-ReLU/ReLU-op0:output:0"
    expect(text):contains "tensor_overflow"
    expect(status):equals "1"
    local calm, none = run("team/review", "lenet-2.7.1-ok")
    expect(calm):contains "no findings of the team's rules\n"
    expect(none):equals "0"
  end)

  for _, name in ipairs { "calibrate_threshold", "custom_watchpoint", "first_nan", "gradient_health", "recheck_until_quiet",
    "unchanged_weights", "live/first_bad", "live/overnight", "live/rate_watchdog", "live/save_first_hit", "team/review",
    "team/rules/features", "team/rules/kernels" } do
    it(name .. " has 15 to 40 lines and opens with its purpose", function()
      local lines = {}
      for line in io.lines(examples .. "/" .. name .. ".lua") do lines[#lines + 1] = line end
      expect(#lines >= 15 and #lines <= 40):is_true()
      expect(lines[1]:match "^%-%-%-? %u.*[%.%?:,]" ~= nil):is_true()
    end)
  end
end)

return test.finish()
