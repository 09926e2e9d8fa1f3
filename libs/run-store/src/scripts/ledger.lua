-- Every call that a run has begun.
-- KEYS  shard (6), run (7)
-- Reply ledger, entries… | missing
-- include: run-keys
if not redis.call('HGET', run.ctl, 'status') or redis.call('HGET', run.ctl, 'deleted_at') then return { 'missing' } end
local reply = redis.call('HVALS', run.ledger)
table.insert(reply, 1, 'ledger')
return reply
