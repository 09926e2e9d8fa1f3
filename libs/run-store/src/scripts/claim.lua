-- Takes a run for one delivery: only for its current job number while that job is live. The epoch rises by one, and earlier
-- claims can write no more. Where this Redis is another than the run was written by, it becomes the time in ms: beyond all that may be lost,
-- and never the same again, should this claim be lost, too.
-- The same claim id asked again raises nothing.
-- KEYS  shard (6), run (7)
-- ARGV  1: JSON { n, claim_id, held: { epoch, claim_id, last_seq } or absent }; 2: how the key of a session is spelt
-- Reply missing | stale | ended |
--       claimed, epoch, last_seq, deliveries, nudges, ms it still had to wait, inbox_in, inbox, ledger of the open calls, snapshot (empty: the held one is current), the
--       session's run before this one (empty: none), this Redis where it is another than the run was written by (else empty)
-- include: ctl
-- include: claim
-- include: shard-keys
-- include: run-keys
-- include: stored
-- include: named-key
-- include: store-id
local lost_claims = 1000
local request = cjson.decode(ARGV[1])
local ctl = read_ctl(run.ctl)
if not ctl then return { 'missing' } end
if num(ctl, 'job_n') ~= request.n then return { 'stale' } end
if has_ended(ctl) then return { 'ended' } end
if ctl.job_live ~= '1' then return { 'stale' } end

-- What a worker has in memory is current if nobody has claimed the run since, and nothing was written beyond it.
local held = request.held
local current = held and ctl.holder == held.claim_id and num(ctl, 'epoch') == held.epoch and num(ctl, 'last_seq') == held.last_seq
local epoch, deliveries, store = num(ctl, 'epoch'), num(ctl, 'deliveries'), store_id()
local moved = ctl.store ~= store
if ctl.claim ~= request.claim_id then
  epoch, deliveries = moved and math.max(epoch + lost_claims, now_ms()) or epoch + 1, deliveries + 1
  redis.call('HSET', run.ctl, 'epoch', epoch, 'claim', request.claim_id, 'holder', request.claim_id, 'deliveries', deliveries)
end

local ledger, open_calls = {}, cjson.decode(ctl.open_calls)
for _, id in ipairs(open_calls) do
  local entry = redis.call('HGET', run.ledger, id)
  if entry then ledger[#ledger + 1] = entry end
end
return {
  'claimed', epoch, ctl.last_seq, deliveries, ctl.nudges, math.max(0, num(ctl, 'not_before') - now_ms()), ctl.inbox_in, redis.call('LRANGE', run.inbox, 0, -1), ledger,
  current and {} or stored_state(run, ctl), ctl.session and redis.call('HGET', named_key(ARGV[2], ctl.session), 'last') or '',
  moved and store or '',
}
