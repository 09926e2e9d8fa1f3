-- Places in flight: how long they are held decides how soon another is free.

-- Ms after which to look for the place that `missing` others must leave before; half of what is expected, since nobody is told when one is left.
local function wait_for_place(missing, ask, slot_ms)
  if missing <= 0 then return 0 end
  local held = tonumber(redis.call('HGET', rates.granted, 'held_ms')) or slot_ms
  return math.min(math.max(missing * held / ask.in_flight / 2, slot_ms / 10), ask.minute_ms / 2)
end

local function grant(ask, cost, slot, now)
  local requests, tokens = counts_of(redis.call('HGET', rates.granted, string.format('%.0f', slot)) or nil)
  put_counts(slot, requests + 1, tokens + cost)
  redis.call('ZADD', rates.flying, now + ask.lease_ms, ask.id)
  redis.call('HSET', rates.calls, ask.id, string.format('%.0f %.0f %.0f', slot, cost, now))
end
