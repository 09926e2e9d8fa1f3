-- One probe at a time; asked by its holder, the lease begins anew.
-- KEYS  1: breakers; 2: who probes
-- ARGV  1: id of the breaker; 2: token; 3: ms of the lease
-- Reply taken | not_now
-- include: clock
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[2] then return { 'not_now' } end
local text = redis.call('HGET', KEYS[1], ARGV[1])
local breaker = text and cjson.decode(text)
if not holder and breaker and (breaker.forced or now_ms() < breaker.probe_at_ms) then return { 'not_now' } end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return { 'taken' }
