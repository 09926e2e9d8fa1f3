-- A run's numbered jobs. `add_job` and `has_job` come from the queue's fragment.

local function urgency_of(ctl)
  return num(ctl, 'epoch') > 0 and 'begun' or 'first'
end

-- The number rises, so that every older job is stale, and the job of the new number is added. `set` gathers for ctl.
local function raise_job(shard, job_keys, ctl, set, options)
  local n = num(ctl, 'job_n') + 1
  set.put('job_n', n, 'job_live', 1)
  redis.call('ZREM', shard.due, options.run_id)
  redis.call('ZADD', shard.held, options.look_again, options.run_id)
  add_job(job_keys, 'turn', options.run_id, n, options.urgency, num(ctl, 'priority'))
end
