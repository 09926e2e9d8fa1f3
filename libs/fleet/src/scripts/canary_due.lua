-- Whether it is time to judge; of all who ask within a while one is told so.
-- KEYS  trial (7)
-- ARGV  1: the while, ms
-- Reply due | not_due
-- include: clock
-- include: canary-keys
local stage, status, judged = unpack(redis.call('HMGET', trial.state, 'stage', 'status', 'judged'))
if not stage or status == 'rolled_back' or tonumber(stage) >= 100 then return { 'not_due' } end
local now = now_ms()
if judged and now - tonumber(judged) < tonumber(ARGV[1]) then return { 'not_due' } end
redis.call('HSET', trial.state, 'judged', string.format('%.0f', now))
return { 'due' }
