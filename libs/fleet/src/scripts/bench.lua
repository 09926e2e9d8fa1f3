-- Benches a target until the later of what stands there and now.
-- KEYS  1: benches
-- ARGV  1: target; 2: reason; 3: ms; 4: most benches
-- Reply benched | as_it_was
-- include: clock
-- include: bounded
local until_ms = now_ms() + tonumber(ARGV[3])
local text = redis.call('HGET', KEYS[1], ARGV[1])
if text and cjson.decode(text).until_ms >= until_ms then return { 'as_it_was' } end
make_room(KEYS[1], ARGV[1], tonumber(ARGV[4]), 'until_ms')
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({ target = ARGV[1], reason = ARGV[2], until_ms = until_ms }))
return { 'benched' }
