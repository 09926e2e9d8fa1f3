-- Makes an API key known. Idempotent by its id.
-- KEYS  1: keys (hash: id → "created JSON"); 2: ids by hash (hash); 3: ids of all (zset); 4: ids of the tenant (zset)
-- ARGV  1: id; 2: SHA-256 of the key; 3: JSON; 4: not after, epoch ms; 5: keys that the tenant may have
-- Reply issued, when in epoch ms | taken | too_many | too_late
-- include: clock
local now = string.format('%.0f', now_ms())
local present = redis.call('HGET', KEYS[1], ARGV[1])
if present then return { 'issued', string.match(present, '^%d+') } end
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return { 'taken' } end
if tonumber(now) > tonumber(ARGV[4]) then return { 'too_late' } end
if redis.call('ZCARD', KEYS[4]) >= tonumber(ARGV[5]) then return { 'too_many' } end

redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[3])
redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[3], 0, ARGV[1])
redis.call('ZADD', KEYS[4], 0, ARGV[1])
return { 'issued', now }
