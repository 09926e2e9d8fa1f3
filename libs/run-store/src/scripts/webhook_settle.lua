-- How the newest attempt of a delivery went. Said again, nothing changes.
-- KEYS  tenants
-- ARGV  1: JSON { keys, run_id, taken, type, delay_ms?, status?, error?, keep_ms?, most_ended }
-- Reply settled | stale
-- include: ctl
-- include: named-key
-- include: webhooks
local said, now = cjson.decode(ARGV[1]), now_ms()
local webhooks = said.keys
local key = delivery_key(webhooks, said.run_id)
local delivery = read_ctl(key)
if not delivery or num(delivery, 'taken') ~= said.taken then return { 'stale' } end
if num(delivery, 'settled') == said.taken then return { 'settled' } end
if delivery.state ~= 'pending' then return { 'stale' } end

local set = changes()
set.put('settled', said.taken)
if said.type ~= 'later' then
  set.put('attempts', num(delivery, 'attempts') + 1, 'tries', num(delivery, 'tries') + 1, 'last_at', whole(now), 'last_status', said.status or '', 'last_error', said.error or '')
end
if said.type == 'retry' or said.type == 'later' then
  set.put('due', whole(now + said.delay_ms))
  due_at(webhooks, delivery.tenant, delivery.lane, said.run_id, now + said.delay_ms)
else
  set.put('state', said.type, 'due', '')
  not_due(webhooks, delivery.tenant, delivery.lane, said.run_id)
  redis.call('HINCRBY', webhooks.tally, 'webhooks', -1)
  redis.call('ZADD', webhooks.expiring, whole(now + said.keep_ms), said.run_id .. ' ' .. delivery.tenant)
  local ended = named_key(webhooks.ended, delivery.tenant)
  redis.call('ZADD', ended, whole(now), said.run_id)
  set.write(key)
  while redis.call('ZCARD', ended) > said.most_ended do
    drop_delivery(webhooks, redis.call('ZRANGE', ended, 0, 0)[1], { state = 'ended', tenant = delivery.tenant })
  end
  return { 'settled' }
end
set.write(key)
return { 'settled' }
