-- Begins a run: its events, state, transcript and control record, and its first job or the time of it. Idempotent by run id.
-- KEYS  shard (6), run (7), index of the tenant, session, its queue, sessions of the tenant, queue
-- ARGV  1: JSON of the run (see run-directory.ts); 2: how the key of a run's ctl is spelt; then events, field/value pairs, messages
-- Reply created, run that the session is busy with (empty: none) | exists | too_late | session_missing | session_busy, run | fenced (the parent)
-- include: ctl
-- include: claim
-- include: queue
-- include: shard-keys
-- include: run-keys
-- include: push
-- include: append
-- include: named-key
-- include: session
-- include: store-id
-- include: tally
local create = cjson.decode(ARGV[1])
local now = now_ms()
if redis.call('EXISTS', run.ctl) == 1 then return { 'exists' } end
if now > create.not_after_ms then return { 'too_late' } end
if create.parent then
  local parent = read_ctl(create.parent.ctl)
  if not parent or parent.cancelling == '1' or not holds(parent, create.parent) then return { 'fenced' } end
end

local session, session_queue = KEYS[15], KEYS[16]
local tenant, current = unpack(redis.call('HMGET', session, 'tenant', 'current'))
if create.session_mode == 'join' and tenant ~= create.tenant then return { 'session_missing' } end
local behind = busy_with(current, session_queue, ARGV[2])
if behind and create.when_busy == 'reject' then return { 'session_busy', behind } end

local take = payload(3)
local events, fields, messages = take(create.counts.events), take(create.counts.fields), take(create.counts.messages)
local last_seq = append_events(run.events, shard, create, 0, events)
write_all('HSET', run.state, fields)
write_all('RPUSH', run.messages, messages)
redis.call('HSET', run.ctl, 'tenant', create.tenant, 'agent', create.agent, 'tags', create.tags, 'priority', create.priority,
  'status', 'queued', 'epoch', 0, 'claim', '', 'holder', '', 'job_n', 1, 'deliveries', 0, 'nudges', 0,
  'last_seq', last_seq, 'last_ts', create.last_ts, 'event_epoch', 0, 'generation', create.generation,
  'inbox_in', 0, 'inbox_done', 0, 'pause_at', 0, 'cancelling', 0, 'commit_id', '', 'commit_claim', '', 'commit_epoch', 0,
  'open_calls', '[]', 'pending', '[]', 'decided', '[]', 'session', create.session, 'archived_seq', 0, 'sealed_first', 0, 'sealed_last', 0,
  'store', store_id())
tally_status(create.tally, nil, 'queued')
redis.call('ZADD', KEYS[14], 0, create.run_id)
redis.call('HSET', session, 'tenant', create.tenant)
redis.call('ZADD', KEYS[17], 0, create.session)
redis.call('PEXPIRE', session, create.keep_session_ms)
if behind then
  redis.call('HSET', run.ctl, 'job_live', 0, 'not_before', create.run_at_ms or 0)
  redis.call('RPUSH', session_queue, create.run_id)
  return { 'created', behind }
end
if current and current ~= '' then redis.call('HSET', session, 'last', current) end
redis.call('HSET', session, 'current', create.run_id)
if create.run_at_ms then
  redis.call('HSET', run.ctl, 'job_live', 0, 'not_before', create.run_at_ms)
  redis.call('ZADD', shard.due, create.run_at_ms, create.run_id)
else
  redis.call('HSET', run.ctl, 'job_live', 1, 'not_before', 0)
  redis.call('ZADD', shard.held, now + create.grace_ms, create.run_id)
  add_job(keys_from(18), 'turn', create.run_id, 1, 'first', create.priority)
end
return { 'created', '' }
