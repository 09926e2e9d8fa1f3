-- Runs whose next archiving is due; each is put off, so that a failure is tried again and two workers do not do the same.
-- KEYS  shard (6)
-- ARGV  1: limit; 2: ms to put off by
-- Reply due, run ids…
-- include: ctl
-- include: shard-keys
local now = now_ms()
local reply = redis.call('ZRANGEBYSCORE', shard.to_archive, '-inf', now, 'LIMIT', 0, tonumber(ARGV[1]))
for _, id in ipairs(reply) do redis.call('ZADD', shard.to_archive, now + tonumber(ARGV[2]), id) end
table.insert(reply, 1, 'due')
return reply
