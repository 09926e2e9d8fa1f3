-- A delivery that has ended, or waits for its next attempt, is due now, with its schedule from the beginning. The same request again changes nothing.
-- KEYS  tenants
-- ARGV  1: JSON { keys, run_id, tenant, request_id, not_after_ms }
-- Reply due | pending (an attempt is under way, or due already) | missing | too_late
-- include: ctl
-- include: named-key
-- include: webhooks
local asked, now = cjson.decode(ARGV[1]), now_ms()
local webhooks = asked.keys
local key = delivery_key(webhooks, asked.run_id)
local delivery = read_ctl(key)
if not delivery or delivery.tenant ~= asked.tenant then return { 'missing' } end
if delivery.request == asked.request_id then return { 'due' } end
if now > asked.not_after_ms then return { 'too_late' } end
if delivery.state == 'pending' then
  if num(delivery, 'taken') ~= num(delivery, 'settled') or num(delivery, 'due') <= now then return { 'pending' } end
else
  forget_ended(webhooks, asked.run_id, delivery.tenant)
  redis.call('HINCRBY', webhooks.tally, 'webhooks', 1)
end
redis.call('HSET', key, 'state', 'pending', 'tries', 0, 'due', whole(now), 'request', asked.request_id)
due_at(webhooks, delivery.tenant, delivery.lane, asked.run_id, now)
return { 'due' }
