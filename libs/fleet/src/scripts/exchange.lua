-- Tells what a process has seen, and answers what is known.
-- KEYS  1: outcomes; 2: breakers; 3: benches; 4: number of this process's last exchange
-- ARGV  1: process; 2: number of this exchange; 3: what was seen, JSON, empty for nothing; 4: read after this id, empty for all; 5: ms of a window
-- Reply known, now, entries of others ({ id, what they have seen }…), breakers (JSON…), benches (JSON…)
-- include: clock
local now, window = now_ms(), tonumber(ARGV[5])
local from = string.format('%.0f-0', now - window)
if ARGV[3] ~= '' and (tonumber(redis.call('GET', KEYS[4])) or 0) < tonumber(ARGV[2]) then
  redis.call('XADD', KEYS[1], 'MINID', from, '*', 'by', ARGV[1], 'seen', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], window)
  redis.call('SET', KEYS[4], ARGV[2], 'PX', window)
end
-- The later of the two: an id is "ms-n".
if ARGV[4] ~= '' and tonumber(string.match(ARGV[4], '^%d+')) >= now - window then from = '(' .. ARGV[4] end
local others = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], from, '+')) do
  if entry[2][2] ~= ARGV[1] then others[#others + 1] = { entry[1], entry[2][4] } end
end
local benches = {}
local flat = redis.call('HGETALL', KEYS[3])
for i = 1, #flat, 2 do
  if cjson.decode(flat[i + 1]).until_ms > now then
    benches[#benches + 1] = flat[i + 1]
  else
    redis.call('HDEL', KEYS[3], flat[i])
  end
end
return { 'known', now, others, redis.call('HVALS', KEYS[2]), benches }
