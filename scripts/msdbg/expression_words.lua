-- The words of condition expressions, for `help WORD` and `apropos`. docs/expressions.md defines them.
local format = string.format
local ipairs = ipairs

local M = {}

local REDUCES = "gives one value for all elements; with `finite(e)` inside, for the finite ones"

local words = {
  { "x", "the current element of the tensor" },
  { "prev", "the same element in the previous executed step; without one the tensor is not checked" },
  { "size", "number of elements" }, { "step", "the step of the tensor" }, { "rank", "the rank of the tensor" },
  { "dtype_max", "the largest finite value of the tensor's type" }, { "dtype_min_normal", "its smallest normal value" },
  { "dtype_eps", "the distance from 1 to the next value of the type" },
  { "abs(e)", "magnitude" }, { "sqrt(e)", "square root" }, { "exp(e)", "e to the power of it" }, { "log(e)", "natural logarithm" },
  { "log2(e)", "logarithm to the base 2" }, { "sign(e)", "-1, 0 or 1" }, { "floor(e)", "the largest integer that is not above" },
  { "min(e)", "the smallest element, ignoring NaN; min(a, b, ...) the smallest for each element", REDUCES },
  { "max(e)", "the largest element, ignoring NaN; max(a, b, ...) the largest for each element", REDUCES },
  { "isnan(e)", "whether it is NaN" }, { "isinf(e)", "whether it is infinite" }, { "isfinite(e)", "whether it is neither" },
  { "any(p)", "whether it holds for at least one element", REDUCES }, { "all(p)", "whether it holds for every element", REDUCES },
  { "count(p)", "the number of elements for which it holds", REDUCES },
  { "percent(p)", "the percentage of elements for which it holds: 0 to 100", REDUCES },
  { "sum(e)", "sum, in double", REDUCES }, { "mean(e)", "mean", REDUCES }, { "std(e)", "standard deviation, divisor n - 1", REDUCES },
  { "norm1(e)", "sum of magnitudes", REDUCES }, { "norm2(e)", "root of the sum of squares", REDUCES },
  { "norminf(e)", "the greatest magnitude", REDUCES },
  { "finite(e)", "inside of a reduction: elements where e is NaN or infinite are left out of it" },
}

--- The meaning of a word of expressions, or nil.
---@param word string
---@return string?
function M.about(word)
  for _, entry in ipairs(words) do
    if entry[1]:match "^[%w_]+" == word then
      return format("%s  in expressions: %s%s\n  e.g. watch ** %s   help expressions", entry[1], entry[2],
        entry[3] and "\n  " .. entry[3] or "", M.example(entry[1]))
    end
  end
end

-- An expression with the word that can be typed as it is.
function M.example(signature)
  local name, argument = signature:match "^([%w_]+)%(?(%a?)"
  if name == "x" then return "max(x) > 10" end
  if name == "prev" then return "norm2(x) > 10 * norm2(prev)" end
  if name == "size" then return "count(x == 0) > size / 2" end
  if name == "step" then return "step > 2 and mean(abs(x)) > 1" end
  if name == "rank" then return "rank == 0 and mean(abs(x)) > 1" end
  if name == "dtype_max" then return "max(abs(x)) > dtype_max / 2" end
  if name == "dtype_min_normal" then return "percent(abs(x) < dtype_min_normal) > 10" end
  if name == "dtype_eps" then return "mean(abs(x - prev)) < dtype_eps * mean(abs(x))" end
  if name == "finite" then return "mean(finite(x)) > 1" end
  if argument == "p" then return name .. "(abs(x) > 3)" .. ((name == "any" or name == "all") and "" or " > 5") end
  if name:match "^is" then return "any(" .. name .. "(x))" end
  if name:match "^norm" or name == "sum" or name == "mean" or name == "std" or name == "min" or name == "max" then
    return name .. "(x) > 1"
  end
  return "mean(" .. name .. "(x)) > 1"
end

--- All words with their meanings.
---@return string[][]
function M.list() return words end

return M
