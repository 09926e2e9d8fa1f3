-- How many runs of a shard are under way, and how many of them wait for a time.
-- KEYS  the shard's tally, due
-- Reply active, queued, running, paused, calls in doubt, runs that wait for a time, runs of which somebody is still to be told
local tally = redis.call('HMGET', KEYS[1], 'queued', 'running', 'paused', 'in_doubt', 'webhooks')
for i = 1, 5 do tally[i] = math.max(0, tonumber(tally[i] or '0')) end
return { 'active', tally[1], tally[2], tally[3], tally[4], redis.call('ZCARD', KEYS[2]), tally[5] }
