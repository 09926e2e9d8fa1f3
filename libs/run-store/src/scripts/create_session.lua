-- Begins a session without a run. Idempotent by id.
-- KEYS  1: session; 2: sessions of the tenant
-- ARGV  1: session id; 2: tenant; 3: not after, epoch ms; 4: ms to keep it
-- Reply created | too_late
-- include: ctl
if redis.call('EXISTS', KEYS[1]) == 0 and now_ms() > tonumber(ARGV[3]) then return { 'too_late' } end
redis.call('HSET', KEYS[1], 'tenant', ARGV[2])
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[4]))
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return { 'created' }
