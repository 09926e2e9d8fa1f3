-- Accepts a command into a run's inbox, and gives the run a job where it has none. Idempotent by command id.
-- KEYS  shard (6), run (7), queue
-- ARGV  1: JSON { run_id, command_id, type, subject (the call that it is about), entry, not_after_ms, inbox_limit, ids_kept, grace_ms }
--       2, 3: how the keys of a session and of a run's ctl are spelt
-- Reply missing | accepted | already_decided | too_late | inbox_full | invalid_state, status | behind, the run of its session that goes before it
-- include: ctl
-- include: queue
-- include: shard-keys
-- include: run-keys
-- include: jobs
-- include: words
-- include: named-key
-- include: session
local command = cjson.decode(ARGV[1])
-- A run that was restored as paused may still have its turn to wait for.
local before = command.type == 'resume' and run_before(read_ctl(run.ctl), command.run_id, ARGV[2], ARGV[3])
if before then return { 'behind', before } end
local now = now_ms()
local ctl = read_ctl(run.ctl)
if not ctl or ctl.deleted_at then return { 'missing' } end
if redis.call('ZSCORE', run.commands, command.command_id) then return { 'accepted' } end
if now > command.not_after_ms then return { 'too_late' } end

local done, accepted = num(ctl, 'inbox_done'), num(ctl, 'inbox_in')
local cancelling, cancels = ctl.cancelling == '1', command.type == 'cancel'
local pausing = num(ctl, 'pause_at') > done
local refusal = command.type == 'outcome' and refused_word(ctl, command.subject)
if refusal then return refusal end
if has_ended(ctl) or (cancelling and not cancels) or (command.type == 'resume' and ctl.status ~= 'paused' and not pausing) then
  return { 'invalid_state', ctl.status }
end
if cancelling then return { 'accepted' } end
if accepted - done >= command.inbox_limit then return { 'inbox_full' } end

local n = accepted + 1
redis.call('RPUSH', run.inbox, command.entry)
local set = changes()
set.put('inbox_in', n)
redis.call('ZADD', run.commands, n, command.command_id)
redis.call('ZREMRANGEBYRANK', run.commands, 0, -1 - command.ids_kept)
if cancels then set.put('cancelling', 1) end
if command.type == 'pause' then set.put('pause_at', n) end
if command.type == 'resume' then set.put('pause_at', 0) end
if command.type == 'outcome' then set.put('decided', with_word(ctl, command.subject)) end

local unclaimed, live = num(ctl, 'epoch') == 0, ctl.job_live == '1'
-- A run that has not begun keeps its time (run_at) and its place in the queue, except to be cancelled.
if (not live and not unclaimed) or (cancels and unclaimed) then
  local urgency = cancels and 'front' or urgency_of(ctl)
  raise_job(shard, keys_from(14), ctl, set, { run_id = command.run_id, urgency = urgency, look_again = now + command.grace_ms })
end
set.write(run.ctl)
return { 'accepted' }
