-- msdbg.report(s, r):html and :markdown: pages of results.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

describe("report:html", function()
  it("writes the page of a check and looks up where it began", function()
    local s = msdbg.open(data .. "lenet-2.7.1-lognan")
    s:watch { on = "@all", when = "TO" }
    local path = os.tmpname()
    expect(msdbg.report(s, s:check()):html(path, { rules = "my rules", command = "x & y" })):equals(path)
    local page = read(path)
    os.remove(path)
    expect(page:sub(1, 15)):equals "<!DOCTYPE html>"
    expect(page):contains "104 of 192 elements are"
    expect(page):contains "by my rules"
    expect(page):contains "<dt>Command</dt><dd><code>x &amp; y</code></dd>"
    expect(page:sub(-8)):equals "</html>\n"
  end)

  it("gives the page of an origin as text without a path, with the findings of those steps", function()
    local s = msdbg.open(data .. "lenet-2.7.1-explode")
    local page = msdbg.report(s, msdbg.origin(s)):html()
    expect(page):contains "fc2-Dense/<wbr/>MatMul-op0"
    expect(page):contains "71 findings"
  end)

  it("leaves no half file where it cannot write", function()
    local s = msdbg.open(data .. "lenet-2.7.1-ok")
    local report = msdbg.report(s, msdbg.origin(s))
    expect(function() report:html "/nowhere/at/all.html" end):raises "/nowhere/at/all.html: cannot be written"
    expect(function() report:html("x.html", { max_hit = 3 }) end):raises "max_hits"
    expect(function() report:html("x.html", { tensors = -1 }) end):raises "option 'tensors'"
    expect(io.open "x.html"):equals(nil)
  end)
end)

describe("report:markdown", function()
  it("is a page with a path and a comment without one", function()
    local s = msdbg.open(data .. "lenet-2.7.1-lognan")
    s:watch { on = "@all", when = "TO" }
    local report = msdbg.report(s, s:check())
    expect(report:markdown()):contains "### msdbg check"
    local path = os.tmpname()
    report:markdown(path)
    local page = read(path)
    os.remove(path)
    expect(page):contains "# `Log-op0` **broke first**"
    expect(page):contains "## The tensors involved"
  end)
end)

describe("report:junit", function()
  it("lists the rules that ran, and not the watchpoints beside them", function()
    local s = msdbg.open(data .. "lenet-2.7.1-ok")
    s:watch { on = "@weight", when = "TZ 100" }
    local text = msdbg.report(s, s:check { rules = "dead-relu" }):junit()
    expect(text):contains 'name="dead-relu"'
    expect(text:find("tensor_all_zero", 1, true)):is_nil()
  end)
end)

return test.finish()
