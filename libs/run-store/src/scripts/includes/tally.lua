-- How many runs of a shard are under way, by status, and how many calls wait for somebody's word. Moved where a status is written, so that
-- nobody has to go through the runs to count them. `tally` is its key.

local counted = { queued = true, running = true, paused = true }

local function tally_status(tally, old, new)
  if old == new then return end
  if counted[old] then redis.call('HINCRBY', tally, old, -1) end
  if counted[new] then redis.call('HINCRBY', tally, new, 1) end
end

-- JSON lists of ids.
local function tally_pending(tally, old, new)
  if old == new then return end
  local change = #cjson.decode(new) - #cjson.decode(old)
  if change ~= 0 then redis.call('HINCRBY', tally, 'in_doubt', change) end
end
