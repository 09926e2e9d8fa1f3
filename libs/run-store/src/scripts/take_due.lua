-- What is due in a list by time; each is put off, so that a failure is tried again and two workers do not do the same.
-- KEYS  1: the list
-- ARGV  1: limit; 2: ms to put off by
-- Reply due, now in epoch ms, ids…
-- include: ctl
local now = now_ms()
local reply = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, tonumber(ARGV[1]))
for _, id in ipairs(reply) do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), id) end
table.insert(reply, 1, string.format('%.0f', now))
table.insert(reply, 1, 'due')
return reply
