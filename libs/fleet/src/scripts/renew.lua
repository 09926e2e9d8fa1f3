-- Believes in a place in flight for longer; one that was given up is not taken back.
-- KEYS  of one credential (5)
-- ARGV  1: reservation; 2: ms of the lease; 3: ms that what is known is kept beyond it
-- Reply renewed | not_held
-- include: clock
-- include: rates
local now = now_ms()
end_leases(now)
if not redis.call('ZSCORE', rates.flying, ARGV[1]) then return { 'not_held' } end
redis.call('ZADD', rates.flying, now + tonumber(ARGV[2]), ARGV[1])
keep_rates(tonumber(ARGV[2]) + tonumber(ARGV[3]))
return { 'renewed' }
