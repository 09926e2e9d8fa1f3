-- Puts a run back as its archived log tells it, with the job or the time that it needs. A run that is there is left alone.
-- KEYS  shard (6), run (7), index of the tenant, session, its queue, sessions of the tenant, queue
-- ARGV  1: JSON of the run (see restoring.ts); 2: how the key of a run's ctl is spelt; then events, field/value pairs, messages, ledger pairs
-- Reply restored | exists
-- include: ctl
-- include: queue
-- include: shard-keys
-- include: run-keys
-- include: push
-- include: append
-- include: named-key
-- include: session
-- include: store-id
-- include: tally
local restored = cjson.decode(ARGV[1])
if redis.call('EXISTS', run.ctl) == 1 then return { 'exists' } end

local take = payload(3)
local last_seq = append_events(run.events, shard, restored, restored.archived_seq, take(restored.counts.events))
write_all('HSET', run.state, take(restored.counts.fields))
write_all('RPUSH', run.messages, take(restored.counts.messages))
write_all('HSET', run.ledger, take(restored.counts.ledger))
local session, session_queue = KEYS[15], KEYS[16]
local current = redis.call('HGET', session, 'current')
local behind = busy_with(current, session_queue, ARGV[2])
local live = not behind and restored.job.type == 'now'
local not_before = restored.job.due_ms or 0
redis.call('HSET', run.ctl, 'tenant', restored.tenant, 'agent', restored.agent, 'tags', restored.tags, 'priority', restored.priority,
  'status', restored.status, 'epoch', restored.epoch, 'claim', '', 'holder', '', 'job_n', restored.job_n, 'job_live', live and 1 or 0,
  'deliveries', 0, 'nudges', 0, 'last_seq', last_seq, 'last_ts', restored.last_ts, 'event_epoch', restored.event_epoch,
  'generation', restored.generation, 'inbox_in', 0, 'inbox_done', 0, 'pause_at', 0, 'cancelling', 0, 'commit_id', '', 'commit_claim', '',
  'commit_epoch', 0, 'open_calls', restored.open_calls, 'pending', restored.pending, 'decided', '[]', 'session', restored.session,
  'archived_seq', restored.archived_seq, 'sealed_first', 0, 'sealed_last', 0, 'not_before', not_before,
  'store', store_id(), 'moves', moved_to({}, restored.archived_seq, now_ms(), restored.epoch))
tally_status(restored.tally, nil, restored.status)
tally_pending(restored.tally, '[]', restored.pending)
redis.call('ZADD', KEYS[14], 0, restored.run_id)
redis.call('HSET', session, 'tenant', restored.tenant)
redis.call('ZADD', KEYS[17], 0, restored.session)
redis.call('PEXPIRE', session, restored.keep_session_ms)
if behind then
  redis.call('RPUSH', session_queue, restored.run_id)
  return { 'restored' }
end
if current and current ~= '' then redis.call('HSET', session, 'last', current) end
redis.call('HSET', session, 'current', restored.run_id)
if live then
  redis.call('ZADD', shard.held, now_ms() + restored.grace_ms, restored.run_id)
  add_job(keys_from(18), 'turn', restored.run_id, restored.job_n, restored.epoch > 0 and 'begun' or 'first', restored.priority)
elseif restored.job.type == 'at' then
  redis.call('ZADD', shard.due, not_before, restored.run_id)
end
return { 'restored' }
