-- How a run came out: once, in the arm that it was given. One whose end says nothing about a model takes no part any more.
-- KEYS  trial (7)
-- ARGV  1: run id; 2: "end flags active_s cost", empty where the end says nothing; 3...: names and amounts to add to the arm's sums
-- Reply counted | again | not_counted
-- include: canary-keys
local record = redis.call('HGET', trial.runs, ARGV[1])
if not record then return { 'not_counted' } end
local arm, start, ended = string.match(record, '^(%a+) (%S+) ?(.*)$')
if ended ~= '' then return { 'again' } end

if ARGV[2] == '' then
  redis.call('HDEL', trial.runs, ARGV[1])
  redis.call('ZREM', trial.order[arm], ARGV[1])
else
  redis.call('HSET', trial.runs, ARGV[1], arm .. ' ' .. start .. ' ' .. ARGV[2])
end
for at = 3, #ARGV, 2 do redis.call('HINCRBYFLOAT', trial.totals[arm], ARGV[at], ARGV[at + 1]) end
return { 'counted' }
