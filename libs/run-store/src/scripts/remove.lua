-- Deletes an ended run: its content goes at once, its control record says that it was deleted until the archive has forgotten it, too.
-- KEYS  shard (6), run (7), index of the tenant
-- ARGV  1: JSON { run_id, tenant, not_after_ms, webhooks }; 2: how the key of a session is spelt
-- Reply removed, when in epoch ms | not_ended, status | missing | too_late
-- include: ctl
-- include: shard-keys
-- include: run-keys
-- include: named-key
-- include: webhooks
local remove, now = cjson.decode(ARGV[1]), now_ms()
local ctl = read_ctl(run.ctl)
if ctl and ctl.tenant ~= remove.tenant then return { 'missing' } end
if ctl and ctl.deleted_at then return { 'removed', ctl.deleted_at } end
if now > remove.not_after_ms then return { 'too_late' } end
if ctl and not has_ended(ctl) then return { 'not_ended', ctl.status } end

-- What has left the store already had ended.
local status, session = ctl and ctl.status or 'completed', ctl and ctl.session
for _, key in pairs(run) do redis.call('DEL', key) end
redis.call('HSET', run.ctl, 'tenant', remove.tenant, 'status', status, 'job_n', ctl and ctl.job_n or 0, 'priority', ctl and ctl.priority or 50,
  'last_seq', 0, 'deleted_at', string.format('%.0f', now), 'removals', 0)
if session then
  -- Its finish job may still have to release the session.
  redis.call('HSET', run.ctl, 'session', session)
  if redis.call('HGET', named_key(ARGV[2], session), 'last') == remove.run_id then redis.call('HSET', named_key(ARGV[2], session), 'last', '') end
end
local delivery = read_ctl(delivery_key(remove.webhooks, remove.run_id))
if delivery and delivery.tenant == remove.tenant then drop_delivery(remove.webhooks, remove.run_id, delivery) end
redis.call('ZREM', KEYS[14], remove.run_id)
redis.call('ZREM', shard.expiring, remove.run_id .. ' ' .. remove.tenant)
redis.call('ZADD', shard.to_archive, now, remove.run_id)
return { 'removed', string.format('%.0f', now) }
