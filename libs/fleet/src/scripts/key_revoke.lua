-- An API key is known no more.
-- KEYS  1: keys; 2: ids by hash; 3: ids of all; 4: ids of the tenant
-- ARGV  1: id; 2: SHA-256 of the key; 3: not after, epoch ms
-- Reply revoked | missing | too_late
-- include: clock
if not redis.call('ZSCORE', KEYS[4], ARGV[1]) then return { 'missing' } end
if now_ms() > tonumber(ARGV[3]) then return { 'too_late' } end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
return { 'revoked' }
