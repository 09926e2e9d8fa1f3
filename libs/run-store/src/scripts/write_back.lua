-- Puts a run to where its archived log ends, under the claim that found the store behind it; the claim ends with what has to follow.
-- KEYS  shard (6), run (7), queue
-- ARGV  1: JSON (see restoring.ts); then events, field/value pairs, messages, ledger pairs
-- Reply written | fenced
-- include: ctl
-- include: queue
-- include: claim
-- include: shard-keys
-- include: run-keys
-- include: push
-- include: append
-- include: jobs
-- include: next
-- include: store-id
-- include: words
-- include: accept
-- include: tally
local back = cjson.decode(ARGV[1])
local ctl = read_ctl(run.ctl)
if not ctl or not may_write(ctl, back) then return { 'fenced' } end

local take = payload(2)
redis.call('DEL', run.state, run.events, run.messages, run.ledger)
local last_seq = append_events(run.events, shard, back, back.archived_seq, take(back.counts.events))
write_all('HSET', run.state, take(back.counts.fields))
write_all('RPUSH', run.messages, take(back.counts.messages))
write_all('HSET', run.ledger, take(back.counts.ledger))
redis.call('LTRIM', run.inbox, back.commands_applied, -1)
tally_status(back.tally, ctl.status, back.status)
tally_pending(back.tally, ctl.pending or '[]', back.pending)
local set = changes()
set.put('status', back.status, 'epoch', math.max(num(ctl, 'epoch'), back.event_epoch), 'last_seq', last_seq, 'last_ts', back.last_ts,
  'event_epoch', back.event_epoch, 'generation', back.generation, 'tags', back.tags, 'open_calls', back.open_calls, 'pending', back.pending,
  'decided', '[]', 'inbox_done', num(ctl, 'inbox_done') + back.commands_applied, 'archived_seq', back.archived_seq,
  'sealed_first', 0, 'sealed_last', 0, 'store', back.store_id, 'moves', moved_to(ctl, last_seq, now_ms(), num(ctl, 'epoch')))
follow(shard, keys_from(14), ctl, set, back)
set.write(run.ctl)
tell(shard, back.run_id, last_seq)
-- What was lost with it: that its parent and its children were told.
for _, told in ipairs(back.tell) do accept_command(told.keys, shard, keys_from(14), told.command) end
return { 'written' }
