-- Notes what a worker says, forgets who has been silent, and tells who is there.
-- KEYS  1: workers
-- ARGV  1: ms after which a worker is forgotten; 2: name (empty: nobody says anything); 3: JSON of what it says (empty: it leaves)
-- Reply workers, JSON of each…
-- include: clock
local now = now_ms()
if ARGV[2] ~= '' and ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[2]) end
if ARGV[2] ~= '' and ARGV[3] ~= '' then redis.call('HSET', KEYS[1], ARGV[2], string.format('%.0f ', now) .. ARGV[3]) end
local reply = { 'workers' }
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local seen = tonumber(string.match(all[i + 1], '^%d+'))
  if seen + tonumber(ARGV[1]) < now then redis.call('HDEL', KEYS[1], all[i]) else reply[#reply + 1] = all[i + 1] end
end
return reply
