-- Begins a schedule, or puts one back as the archive has it. Idempotent by id; one that was removed stays so.
-- KEYS  1: schedule; 2: scheduled; 3: schedules of the tenant; 4: schedules to archive
-- ARGV  1: JSON of the schedule (see schedule-store.ts)
-- Reply created | exists | removed | too_many | too_late
-- include: ctl
local new, now = cjson.decode(ARGV[1]), now_ms()
local tenant, removed_at = unpack(redis.call('HMGET', KEYS[1], 'tenant', 'removed_at'))
if removed_at then return { 'removed' } end
if tenant then return { 'exists' } end
if new.not_after_ms and now > new.not_after_ms then return { 'too_late' } end
if new.most and redis.call('ZCARD', KEYS[3]) >= new.most then return { 'too_many' } end

redis.call('HSET', KEYS[1], 'tenant', new.tenant, 'definition', new.definition, 'paused', new.paused, 'created_at', new.created_at or string.format('%.0f', now),
  'version', new.version, 'change', '', 'next', new.next, 'fired', 0, 'skipped', 0, 'failed', 0)
redis.call('ZADD', KEYS[3], 0, new.id)
if new.paused == 0 and new.next ~= '' then redis.call('ZADD', KEYS[2], new.next, new.id) end
if new.archive then redis.call('ZADD', KEYS[4], now, new.id) end
return { 'created' }
