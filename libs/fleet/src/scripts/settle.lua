-- Ends a call: its place in flight is free, and in the minute it was granted in stands what it used.
-- KEYS  of one credential (5)
-- ARGV  1: reservation; 2: tokens used
-- Reply settled | not_held
-- include: clock
-- include: rates
local call = redis.call('HGET', rates.calls, ARGV[1])
if not call then return { 'not_held' } end
local slot, cost, since = string.match(call, '^(%S+) (%S+) (%S+)$')
redis.call('HDEL', rates.calls, ARGV[1])
redis.call('ZREM', rates.flying, ARGV[1])
local counts = redis.call('HGET', rates.granted, slot)
if counts then
  local requests, tokens = counts_of(counts)
  put_counts(tonumber(slot), requests, math.max(0, tokens - tonumber(cost) + tonumber(ARGV[2])))
end
-- How long calls take of late: a new one counts a fifth.
local held, this = tonumber(redis.call('HGET', rates.granted, 'held_ms')), now_ms() - tonumber(since)
redis.call('HSET', rates.granted, 'held_ms', string.format('%.0f', math.floor((held and held * 0.8 + this * 0.2 or this) + 0.5)))
return { 'settled' }
