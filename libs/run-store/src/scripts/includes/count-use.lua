-- Adds what a run has used to the sums of its day. `use` is what `countedUse` (usage-sums.ts) makes.

-- Two lists of numbers, the first as text; 17 digits bring every number back as it was.
local function raised(have, amounts)
  local sums = {}
  for sum in string.gmatch(have or '', '%S+') do sums[#sums + 1] = tonumber(sum) end
  for i, amount in ipairs(amounts) do sums[i] = string.format('%.17g', (sums[i] or 0) + amount) end
  return table.concat(sums, ' ')
end

local function count_use(use)
  for _, field in ipairs(use.fields) do
    redis.call('HSET', use.key, field[1], raised(redis.call('HGET', use.key, field[1]), field[2]))
  end
  redis.call('PEXPIREAT', use.key, string.format('%.0f', use.expires_at))
end
