-- A claimant's write: events, state, transcript, ledger, inbox, the next job and what other runs are told together, or nothing at all.
-- KEYS  shard (6), run (7), queue
-- ARGV  1: JSON of the commit (see turn-store.ts); then events, field/value pairs, messages, tool_use_id/entry pairs
-- Reply committed, unseen commands… | inbox_changed, unseen commands… | fenced
-- include: ctl
-- include: queue
-- include: claim
-- include: inbox
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
local commit = cjson.decode(ARGV[1])
local ctl = read_ctl(run.ctl)
if not ctl then return { 'fenced' } end
if is_repeat(ctl, commit) then return with_inbox('committed', run.inbox, ctl, commit.inbox_seen) end
if not may_write(ctl, commit) then return { 'fenced' } end
local goes_on = commit.next.type == 'keep' or commit.next.type == 'job'
-- A word on a call that waits for one is seen before the call waits no longer.
local decides = (ctl.pending or '[]') ~= commit.pending
if (not goes_on or commit.begins or decides) and num(ctl, 'inbox_in') > commit.inbox_seen then
  return with_inbox('inbox_changed', run.inbox, ctl, commit.inbox_seen)
end

local take, counts = payload(2), commit.counts
local last_seq = append_events(run.events, shard, commit, commit.expected_seq, take(counts.events))
write_all('HSET', run.state, take(counts.fields))
if commit.replaces then redis.call('DEL', run.messages) end
write_all('RPUSH', run.messages, take(counts.messages))
write_all('HSET', run.ledger, take(counts.ledger))
local set = changes()
if last_seq > commit.expected_seq then set.put('last_seq', last_seq, 'last_ts', commit.last_ts, 'event_epoch', commit.epoch) end
set.put('status', commit.status, 'generation', commit.generation, 'open_calls', commit.open_calls, 'pending', commit.pending,
  'commit_id', commit.commit_id, 'commit_claim', commit.claim_id, 'commit_epoch', commit.epoch)
-- What the Redis of before may have lost has been looked into.
if commit.store_id then set.put('store', commit.store_id, 'moves', moved_to(ctl, commit.expected_seq, now_ms(), commit.epoch)) end
tally_status(commit.tally, ctl.status, commit.status)
tally_pending(commit.tally, ctl.pending or '[]', commit.pending)
-- Lists look for tags in the control record.
if commit.tags then set.put('tags', commit.tags) end
local applied = commit.applies_inbox and commit.inbox_seen - num(ctl, 'inbox_done') or 0
if applied > 0 then
  redis.call('LTRIM', run.inbox, applied, -1)
  set.put('inbox_done', commit.inbox_seen)
  ctl.inbox_done = tostring(commit.inbox_seen)
end
follow(shard, keys_from(14), ctl, set, commit)
set.write(run.ctl)
-- Its parent, its children: a run that cannot take it is passed over.
for _, told in ipairs(commit.tell) do accept_command(told.keys, shard, keys_from(14), told.command) end
return with_inbox('committed', run.inbox, ctl, commit.inbox_seen)
