-- A decision and its record, where nobody has changed the trial since it was looked at. The same decision sent again is made once.
-- KEYS  trial (7)
-- ARGV  1: version that was seen; 2: decision's id; 3: decision as JSON; 4: stage; 5: status; 6: most decisions that are kept
-- Reply decided | conflict
-- include: clock
-- include: canary-keys
local version, stage, last = unpack(redis.call('HMGET', trial.state, 'version', 'stage', 'last_decision'))
if last and last == ARGV[2] then return { 'decided' } end
if version ~= ARGV[1] then return { 'conflict' } end

redis.call('HSET', trial.state, 'stage', ARGV[4], 'status', ARGV[5], 'last_decision', ARGV[2])
redis.call('HINCRBY', trial.state, 'version', 1)
if stage ~= ARGV[4] then begin_stage(now_ms()) end
redis.call('LPUSH', trial.decisions, ARGV[3])
redis.call('LTRIM', trial.decisions, 0, tonumber(ARGV[6]) - 1)
return { 'decided' }
