-- KEYS 1 to 7 of every script about a trial.
local trial = {
  state = KEYS[1], runs = KEYS[2], order = { canary = KEYS[3], control = KEYS[4] }, totals = { canary = KEYS[5], control = KEYS[6] }, decisions = KEYS[7],
}

-- A stage begins with no runs.
local function begin_stage(now)
  redis.call('DEL', trial.runs, trial.order.canary, trial.order.control, trial.totals.canary, trial.totals.control)
  redis.call('HSET', trial.state, 'since', string.format('%.0f', now))
  redis.call('HDEL', trial.state, 'judged')
end
