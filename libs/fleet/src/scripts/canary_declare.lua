-- A trial as the configuration has it: another model begins a new one at stage 0, the same model keeps its place.
-- KEYS  trial (7)
-- ARGV  1: definition as JSON; 2: model; 3...: stages, rising from 0
-- Reply begun | kept
-- include: clock
-- include: canary-keys
local definition, model, stage = unpack(redis.call('HMGET', trial.state, 'definition', 'model', 'stage'))
if definition == ARGV[1] then return { 'kept' } end

local has_stage = false
for at = 3, #ARGV do has_stage = has_stage or ARGV[at] == stage end
redis.call('HSET', trial.state, 'definition', ARGV[1], 'model', ARGV[2])
redis.call('HINCRBY', trial.state, 'version', 1)
if model == ARGV[2] and has_stage then return { 'kept' } end

redis.call('HSET', trial.state, 'stage', '0', 'status', 'active')
begin_stage(now_ms())
return { 'begun' }
