-- A schedule that its taker cannot serve is due again at once: another one may look at it before he comes again.
-- KEYS  1: schedule; 2: scheduled
-- ARGV  1: schedule id; 2: the time that it was found at
-- Reply left | moved
-- include: ctl
local next_ms, removed_at, paused = unpack(redis.call('HMGET', KEYS[1], 'next', 'removed_at', 'paused'))
if removed_at or paused == '1' or next_ms ~= ARGV[2] then return { 'moved' } end
redis.call('ZADD', KEYS[2], 'XX', now_ms(), ARGV[1])
return { 'left' }
