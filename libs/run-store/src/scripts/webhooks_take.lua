-- Hands out deliveries that are due, tenant by tenant and lane by lane, and hides them for the lease; drops, a few at a time, what was kept long enough.
-- KEYS  tenants
-- ARGV  1: JSON { keys, limit, per_tenant, per_lane, busy: tenant → lane → number, lease_ms, drops }
-- Reply taken, then for each: run id, which taking this is, tries, tenant, target, lane, body
-- include: ctl
-- include: named-key
-- include: webhooks
local take, now = cjson.decode(ARGV[1]), now_ms()
local webhooks = take.keys

for _, member in ipairs(redis.call('ZRANGEBYSCORE', webhooks.expiring, '-inf', whole(now), 'LIMIT', 0, take.drops)) do
  local run_id, tenant = string.match(member, '^(%S+) (.*)$')
  drop_delivery(webhooks, run_id, { state = 'ended', tenant = tenant })
end

local reply, left = { 'taken' }, take.limit

local function hand_out(tenant, lane, run_id)
  local key = delivery_key(webhooks, run_id)
  local tries, target, body = unpack(redis.call('HMGET', key, 'tries', 'target', 'body'))
  if not body then
    redis.call('ZREM', lane_key(webhooks, tenant, lane), run_id)
    return
  end
  redis.call('ZADD', lane_key(webhooks, tenant, lane), whole(now + take.lease_ms), run_id)
  for _, part in ipairs({ run_id, redis.call('HINCRBY', key, 'taken', 1), tries, tenant, target, lane, body }) do reply[#reply + 1] = part end
  left = left - 1
end

-- Those that have no room here are passed over: no more of them than there are attempts under way.
local function those_due(key, most, busy)
  for _ in pairs(busy) do most = most + 1 end
  return redis.call('ZRANGEBYSCORE', key, '-inf', whole(now), 'LIMIT', 0, most)
end

local function serve(tenant, busy, room)
  local enough = left - room
  for _, lane in ipairs(those_due(lanes_key(webhooks, tenant), room, busy)) do
    local most = math.min(left - enough, take.per_lane - (busy[lane] or 0))
    if most > 0 then
      for _, run_id in ipairs(redis.call('ZRANGEBYSCORE', lane_key(webhooks, tenant, lane), '-inf', whole(now), 'LIMIT', 0, most)) do hand_out(tenant, lane, run_id) end
      served(lanes_key(webhooks, tenant), lane, lane_key(webhooks, tenant, lane))
    end
  end
end

for _, tenant in ipairs(those_due(webhooks.tenants, take.limit, take.busy)) do
  local busy, under_way = take.busy[tenant] or {}, 0
  for _, number in pairs(busy) do under_way = under_way + number end
  local room = math.min(left, take.per_tenant - under_way)
  if room > 0 then
    serve(tenant, busy, room)
    served(webhooks.tenants, tenant, lanes_key(webhooks, tenant))
  end
end
return reply
