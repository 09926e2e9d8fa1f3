-- Accepts a command into a run's inbox, and gives the run a job where it has none. Idempotent by command id.
-- `run` has the keys ctl, inbox and commands; `command` is what `commandHeader` (run-directory.ts) makes.
-- Answers what the script `command` replies.

local function accept_command(run, shard, job_keys, command)
  local now, ctl = now_ms(), read_ctl(run.ctl)
  if not ctl or ctl.deleted_at then return { 'missing' } end
  if redis.call('ZSCORE', run.commands, command.command_id) then return { 'accepted' } end
  if now > command.not_after_ms then return { 'too_late' } end

  local done, accepted = num(ctl, 'inbox_done'), num(ctl, 'inbox_in')
  local cancelling, cancels = ctl.cancelling == '1', command.type == 'cancel'
  local pausing = num(ctl, 'pause_at') > done
  local refusal = command.word and refused_word(ctl, command.word)
  if refusal then return refusal end
  if has_ended(ctl) or (cancelling and not cancels) or (command.type == 'resume' and ctl.status ~= 'paused' and not pausing) then
    return { 'invalid_state', ctl.status }
  end
  if cancelling then return { 'accepted' } end
  -- A child ends once, and there are only so many of them.
  if accepted - done >= command.inbox_limit and command.type ~= 'child_ended' then return { 'inbox_full' } end

  local n, set = accepted + 1, changes()
  redis.call('RPUSH', run.inbox, command.entry)
  set.put('inbox_in', n)
  redis.call('ZADD', run.commands, n, command.command_id)
  redis.call('ZREMRANGEBYRANK', run.commands, 0, -1 - command.ids_kept)
  if cancels then set.put('cancelling', 1) end
  if command.type == 'pause' then set.put('pause_at', n) end
  if command.type == 'resume' then set.put('pause_at', 0) end
  if command.word then set.put('decided', with_word(ctl, command.word)) end

  local unclaimed, live = num(ctl, 'epoch') == 0, ctl.job_live == '1'
  -- A run that has not begun keeps its time (run_at) and its place in the queue, except to be cancelled.
  if (not live and not unclaimed) or (cancels and unclaimed) then
    local urgency = cancels and 'front' or urgency_of(ctl)
    raise_job(shard, job_keys, ctl, set, { run_id = command.run_id, urgency = urgency, look_again = now + command.grace_ms })
  end
  set.write(run.ctl)
  return { 'accepted' }
end
