-- What follows a commit that ends its claim; `set` gathers for ctl. Every claim that ends this way was progress, and deliveries and nudges
-- start anew; but one that took over what an earlier one had begun only did not die itself.

local function follow(shard, job_keys, ctl, set, commit)
  local next_type, now = commit.next.type, now_ms()
  if next_type == 'keep' then return end
  local died = commit.took_over == 'no' and 0 or math.max(0, num(ctl, 'deliveries') - (commit.took_over == 'counted' and 1 or 0))
  set.put('claim', '', 'deliveries', died, 'nudges', 0)
  local not_before = 0
  if next_type == 'job' then
    raise_job(shard, job_keys, ctl, set, { run_id = commit.run_id, urgency = 'begun', look_again = now + commit.grace_ms })
  elseif next_type == 'end' then
    set.put('job_live', 0)
    redis.call('ZREM', shard.due, commit.run_id)
    -- Stays in held until `finished`, so that a lost finish job is added again.
    redis.call('ZADD', shard.held, now + commit.grace_ms, commit.run_id)
    redis.call('ZADD', shard.to_archive, now, commit.run_id)
    add_job(job_keys, 'finish', commit.run_id, 0, 'front', num(ctl, 'priority'))
  else
    set.put('job_n', num(ctl, 'job_n') + 1, 'job_live', 0)
    redis.call('ZREM', shard.held, commit.run_id)
    redis.call('ZREM', shard.due, commit.run_id)
    if next_type == 'wait' then
      not_before = now + commit.next.delay_ms
      redis.call('ZADD', shard.due, not_before, commit.run_id)
    end
  end
  set.put('not_before', not_before)
end
