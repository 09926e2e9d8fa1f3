-- The arm of a new run, in which it takes part in the stage; asked again for the same run: the same. Where there is nothing to compare
-- (rolled back, or the model is the primary) the run takes part in nothing.
-- KEYS  trial (7)
-- ARGV  1: model; 2: run id; 3: bucket, 0 to below 100; 4: epoch ms before which it may not begin; 5, 6: most runs of canary, control
-- Reply assigned, arm, stage | none
-- include: clock
-- include: canary-keys
local model, stage, status = unpack(redis.call('HMGET', trial.state, 'model', 'stage', 'status'))
if model ~= ARGV[1] then return { 'none' } end
local known = redis.call('HGET', trial.runs, ARGV[2])
if known then return { 'assigned', string.match(known, '^%a+'), stage } end

local arm = tonumber(ARGV[3]) < tonumber(stage) and 'canary' or 'control'
if status == 'rolled_back' or tonumber(stage) >= 100 then return { 'assigned', arm, stage } end

local start = string.format('%.0f', math.max(now_ms(), tonumber(ARGV[4])))
redis.call('HSET', trial.runs, ARGV[2], arm .. ' ' .. start)
redis.call('ZADD', trial.order[arm], start, ARGV[2])
if redis.call('ZCARD', trial.order[arm]) > tonumber(arm == 'canary' and ARGV[5] or ARGV[6]) then
  redis.call('HDEL', trial.runs, redis.call('ZPOPMIN', trial.order[arm])[1])
end
return { 'assigned', arm, stage }
