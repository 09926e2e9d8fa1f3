-- Increments of many runs of one shard. Each run is checked and answered for itself, as by `commit` with nothing but events.
-- KEYS  shard (6), then per run: ctl, events, inbox
-- ARGV  1: JSON list of { run_id, epoch, claim_id, expected_seq, commit_id, last_ts, inbox_seen, count, archive_after_ms }; then all events
-- Reply per run: { committed, unseen commands… } | { fenced }
-- include: ctl
-- include: claim
-- include: inbox
-- include: shard-keys
-- include: push
-- include: append
local take = payload(2)

local function append_one(write, events, ctl_key, stream, inbox)
  local ctl = read_ctl(ctl_key)
  if not ctl then return { 'fenced' } end
  if is_repeat(ctl, write) then return with_inbox('committed', inbox, ctl, write.inbox_seen) end
  if not may_write(ctl, write) then return { 'fenced' } end
  local last_seq = append_events(stream, shard, write, write.expected_seq, events)
  local set = changes()
  if #events > 0 then set.put('last_seq', last_seq, 'last_ts', write.last_ts, 'event_epoch', write.epoch) end
  set.put('commit_id', write.commit_id, 'commit_claim', write.claim_id, 'commit_epoch', write.epoch)
  set.write(ctl_key)
  return with_inbox('committed', inbox, ctl, write.inbox_seen)
end

local replies = {}
for i, write in ipairs(cjson.decode(ARGV[1])) do
  local at = 7 + (i - 1) * 3
  replies[i] = append_one(write, take(write.count), KEYS[at], KEYS[at + 1], KEYS[at + 2])
end
return replies
