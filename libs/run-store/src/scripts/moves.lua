-- Where a run went on under another Redis than it had been written by: what readers have seen beyond that may be lost.
-- KEYS  shard (6), run (7)
-- Reply moves, what is kept of them (`seq:when in epoch ms:epoch `, oldest first), and where it will go on: seq, now (empty: it has)
-- include: ctl
-- include: run-keys
-- include: store-id
local store, moves, last_seq = unpack(redis.call('HMGET', run.ctl, 'store', 'moves', 'last_seq'))
local claimed_since = not last_seq or store == store_id()
return { 'moves', moves or '', claimed_since and '' or last_seq, string.format('%.0f', now_ms()) }
