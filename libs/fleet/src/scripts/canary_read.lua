-- A trial as it stands.
-- KEYS  trial (7)
-- ARGV  1: decisions that are wanted, newest first; 2: runs | no_runs
-- Reply trial, now, state (flat), runs, sums of canary (flat), sums of control (flat), decisions | missing
-- include: clock
-- include: canary-keys
local state = redis.call('HGETALL', trial.state)
if #state == 0 then return { 'missing' } end
local wanted = tonumber(ARGV[1])
return {
  'trial', now_ms(), state, ARGV[2] == 'runs' and redis.call('HVALS', trial.runs) or {}, redis.call('HGETALL', trial.totals.canary), redis.call('HGETALL', trial.totals.control),
  wanted == 0 and {} or redis.call('LRANGE', trial.decisions, 0, wanted - 1),
}
