-- Moves a schedule on from a time that somebody has acted on: once, whoever asks and how often.
-- KEYS  1: schedule; 2: scheduled
-- ARGV  1: JSON of the advance (see schedule-store.ts)
-- Reply advanced | moved
local advance = cjson.decode(ARGV[1])
local next_ms, removed_at, paused = unpack(redis.call('HMGET', KEYS[1], 'next', 'removed_at', 'paused'))
if removed_at or next_ms ~= advance.from then return { 'moved' } end

redis.call('HSET', KEYS[1], 'next', advance.next)
redis.call('HINCRBY', KEYS[1], 'skipped', advance.skipped)
if advance.outcome == 'fired' then
  redis.call('HSET', KEYS[1], 'last_due', advance.due, 'last_run', advance.run_id)
  redis.call('HDEL', KEYS[1], 'error')
  redis.call('HINCRBY', KEYS[1], 'fired', 1)
elseif advance.outcome == 'failed' then
  redis.call('HSET', KEYS[1], 'error', advance.error)
  redis.call('HINCRBY', KEYS[1], 'failed', 1)
end
if advance.next ~= '' and paused ~= '1' then
  redis.call('ZADD', KEYS[2], advance.next, advance.id)
else
  redis.call('ZREM', KEYS[2], advance.id)
end
return { 'advanced' }
