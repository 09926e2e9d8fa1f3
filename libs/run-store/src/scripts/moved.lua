-- Whether a run was written by another Redis than this one at some time: its last writes of then may be lost.
-- KEYS  shard (6), run (7)
-- Reply moved | here
-- include: run-keys
-- include: store-id
local store, moved = unpack(redis.call('HMGET', run.ctl, 'store', 'moved'))
return { (moved == '1' or store ~= store_id()) and 'moved' or 'here' }
