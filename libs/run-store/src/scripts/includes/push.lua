-- Payload in ARGV, taken in order, and writing it in pieces: unpack fails near 8,000 values.

local function payload(first)
  local at = first
  return function(count)
    local values = {}
    for i = 1, count do values[i] = ARGV[at + i - 1] end
    at = at + count
    return values
  end
end

-- `command` is RPUSH or HSET; pieces are even, so that a field stays with its value.
local function write_all(command, key, values)
  for first = 1, #values, 1000 do
    redis.call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
end
