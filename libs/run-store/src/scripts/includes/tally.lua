-- How many runs of a shard are under way, by status, and how many calls are in doubt. Moved where a status is written, so that
-- nobody has to go through the runs to count them. `tally` is its key.

local counted = { queued = true, running = true, paused = true }

local function tally_status(tally, old, new)
  if old == new then return end
  if counted[old] then redis.call('HINCRBY', tally, old, -1) end
  if counted[new] then redis.call('HINCRBY', tally, new, 1) end
end

-- Of a JSON list of awaited words: those on calls in doubt are ids alone.
local function in_doubt(pending)
  local count = 0
  for _, awaited in ipairs(cjson.decode(pending)) do
    if not string.find(awaited, ' ', 1, true) then count = count + 1 end
  end
  return count
end

local function tally_pending(tally, old, new)
  if old == new then return end
  local change = in_doubt(new) - in_doubt(old)
  if change ~= 0 then redis.call('HINCRBY', tally, 'in_doubt', change) end
end
