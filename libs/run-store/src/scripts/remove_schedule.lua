-- Removes a schedule: its content goes at once, its record says that it was removed until the archive has forgotten it, too.
-- KEYS  1: schedule; 2: scheduled; 3: schedules of the tenant; 4: schedules to archive
-- ARGV  1: schedule id; 2: tenant; 3: not after, epoch ms
-- Reply removed, when in epoch ms | missing | too_late
-- include: ctl
local now = now_ms()
local tenant, removed_at, version = unpack(redis.call('HMGET', KEYS[1], 'tenant', 'removed_at', 'version'))
if tenant ~= ARGV[2] then return { 'missing' } end
if removed_at then return { 'removed', removed_at } end
if now > tonumber(ARGV[3]) then return { 'too_late' } end

local at = string.format('%.0f', now)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'tenant', tenant, 'removed_at', at, 'version', tonumber(version) + 1)
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[4], now, ARGV[1])
return { 'removed', at }
