-- What a session knew of its ended runs: the newest of them counts.
-- KEYS  1: session; 2: sessions of the tenant
-- ARGV  1: session id; 2: tenant; 3: a run of it that has ended; 4: ms to keep it
-- Reply restored
local last = redis.call('HGET', KEYS[1], 'last')
if not last or last < ARGV[3] then redis.call('HSET', KEYS[1], 'last', ARGV[3]) end
redis.call('HSET', KEYS[1], 'tenant', ARGV[2])
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[4]))
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return { 'restored' }
