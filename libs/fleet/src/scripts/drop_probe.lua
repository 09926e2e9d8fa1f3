-- Lets go of a probe.
-- KEYS  1: who probes
-- ARGV  1: token
-- Reply dropped | not_yours
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return { 'not_yours' } end
redis.call('DEL', KEYS[1])
return { 'dropped' }
