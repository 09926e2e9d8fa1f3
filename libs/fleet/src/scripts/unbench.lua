-- Takes a target from its bench.
-- KEYS  1: benches
-- ARGV  1: target
-- Reply unbenched | not_benched
-- include: clock
local text = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
return { text and cjson.decode(text).until_ms > now_ms() and 'unbenched' or 'not_benched' }
