-- Changes what a schedule is. The same change id again changes nothing.
-- KEYS  1: schedule; 2: scheduled; 3: schedules to archive
-- ARGV  1: JSON of the change (see schedule-store.ts)
-- Reply changed | conflict | missing | too_late
-- include: ctl
local change, now = cjson.decode(ARGV[1]), now_ms()
local tenant, removed_at, version, last = unpack(redis.call('HMGET', KEYS[1], 'tenant', 'removed_at', 'version', 'change'))
if tenant ~= change.tenant or removed_at then return { 'missing' } end
if last == change.change_id then return { 'changed' } end
if now > change.not_after_ms then return { 'too_late' } end
if tonumber(version) ~= change.version then return { 'conflict' } end

redis.call('HSET', KEYS[1], 'definition', change.definition, 'paused', change.paused, 'version', change.version + 1, 'change', change.change_id)
-- Where it stands is a worker's business, unless the times are others now.
if change.next then redis.call('HSET', KEYS[1], 'next', change.next) end
local next_ms = redis.call('HGET', KEYS[1], 'next')
if change.paused == 0 and next_ms ~= '' then
  redis.call('ZADD', KEYS[2], next_ms, change.id)
else
  redis.call('ZREM', KEYS[2], change.id)
end
redis.call('ZADD', KEYS[3], now, change.id)
return { 'changed' }
