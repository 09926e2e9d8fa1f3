-- Opens a breaker for everybody, or again when its probe time has come, or by a person.
-- KEYS  1: breakers
-- ARGV  1: id; 2: target; 3: error type; 4: ms until a probe; 5: 1 = by a person; 6: most breakers
-- Reply opened | as_it_was
-- include: clock
-- include: bounded
local now, forced = now_ms(), ARGV[5] == '1'
local text = redis.call('HGET', KEYS[1], ARGV[1])
local breaker = text and cjson.decode(text) or { id = ARGV[1], target = ARGV[2], error_type = ARGV[3], openings = 0, probe_at_ms = 0, forced = false }
if now >= breaker.probe_at_ms and not breaker.forced then
  breaker.openings = breaker.openings + 1
  breaker.opened_at_ms = now
  breaker.probe_at_ms = now + tonumber(ARGV[4])
elseif not forced or breaker.forced then
  return { 'as_it_was' }
end
breaker.forced = forced
make_room(KEYS[1], ARGV[1], tonumber(ARGV[6]), 'opened_at_ms')
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(breaker))
return { 'opened' }
