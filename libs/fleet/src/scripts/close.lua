-- Closes a breaker and forgets it; by a probe only where it still holds and nobody has forced the breaker meanwhile.
-- KEYS  1: breakers; 2: who probes
-- ARGV  1: id; 2: token of the probe, empty for a person
-- Reply closed | not_open | not_yours
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return { 'not_open' } end
if ARGV[2] ~= '' and (cjson.decode(text).forced or redis.call('GET', KEYS[2]) ~= ARGV[2]) then return { 'not_yours' } end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return { 'closed' }
