-- Where a run went on under another Redis than it had been written by: what readers have seen beyond that may be lost.
-- KEYS  shard (6), run (7)
-- Reply moved, seq, when in epoch ms | here
-- include: ctl
-- include: run-keys
-- include: store-id
local store, seq, at, last_seq = unpack(redis.call('HMGET', run.ctl, 'store', 'moved_seq', 'moved_at', 'last_seq'))
if not last_seq or (store == store_id() and not seq) then return { 'here' } end
-- Nobody has claimed it since.
if store ~= store_id() then return { 'moved', last_seq, string.format('%.0f', now_ms()) } end
return { 'moved', seq, at }
