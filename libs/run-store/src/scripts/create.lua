-- Begins a run: its events, state, transcript and control record, and its first job or the time of it. Idempotent by run id.
-- KEYS  shard (6), run (7), index of the tenant, queue
-- ARGV  1: JSON of the run (see run-directory.ts); then events, field/value pairs, messages
-- Reply created | exists | too_late
-- include: ctl
-- include: queue
-- include: shard-keys
-- include: run-keys
-- include: push
-- include: append
local create = cjson.decode(ARGV[1])
local now = now_ms()
if redis.call('EXISTS', run.ctl) == 1 then return { 'exists' } end
if now > create.not_after_ms then return { 'too_late' } end

local take = payload(2)
local events, fields, messages = take(create.counts.events), take(create.counts.fields), take(create.counts.messages)
local last_seq = append_events(run.events, shard, create, 0, events)
write_all('HSET', run.state, fields)
write_all('RPUSH', run.messages, messages)
redis.call('HSET', run.ctl, 'tenant', create.tenant, 'agent', create.agent, 'tags', create.tags, 'priority', create.priority,
  'status', 'queued', 'epoch', 0, 'claim', '', 'holder', '', 'job_n', 1, 'deliveries', 0, 'nudges', 0,
  'last_seq', last_seq, 'last_ts', create.last_ts, 'event_epoch', 0, 'generation', create.generation,
  'inbox_in', 0, 'inbox_done', 0, 'pause_at', 0, 'cancelling', 0, 'commit_id', '', 'commit_claim', '', 'commit_epoch', 0,
  'open_calls', '[]', 'archived_seq', 0, 'sealed_first', 0, 'sealed_last', 0)
redis.call('ZADD', KEYS[14], 0, create.run_id)
if create.run_at_ms then
  redis.call('HSET', run.ctl, 'job_live', 0, 'not_before', create.run_at_ms)
  redis.call('ZADD', shard.due, create.run_at_ms, create.run_id)
else
  redis.call('HSET', run.ctl, 'job_live', 1, 'not_before', 0)
  redis.call('ZADD', shard.held, now + create.grace_ms, create.run_id)
  add_job(keys_from(15), 'turn', create.run_id, 1, 'first', create.priority)
end
return { 'created' }
