-- Whether a run was deleted.
-- KEYS  shard (6), run (7)
-- Reply removed, tenant, when in epoch ms | no
-- include: run-keys
local deleted_at, tenant = unpack(redis.call('HMGET', run.ctl, 'deleted_at', 'tenant'))
if not deleted_at then return { 'no' } end
return { 'removed', tenant, deleted_at }
