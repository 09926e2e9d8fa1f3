-- A key of the same shard whose name is known here only: its spelling comes from keys.ts.
local function named_key(spelling, name)
  local at = string.find(spelling, '*', 1, true)
  return string.sub(spelling, 1, at - 1) .. name .. string.sub(spelling, at + 1)
end
