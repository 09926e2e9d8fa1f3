-- What is to be told of ended runs; `webhooks` is what `webhooks` in keys.ts makes. Of a shard: `tenants` (zset: tenant by when to look at him),
-- `expiring` (zset: "run tenant" by time), `tally`; and how the keys of a tenant's lanes (zset: lane by when to look at it), of a lane of his (zset:
-- run by when it is due), of a delivery (hash), of a tenant's list (zset by id) and of his ended ones (zset by end) are spelt. A time to look may lie
-- too early, never too late. Needs ctl and named-key.

local function whole(number) return string.format('%.0f', number) end

local function lanes_key(webhooks, tenant) return named_key(webhooks.lanes, tenant) end
local function lane_key(webhooks, tenant, lane) return named_key(webhooks.lane, tenant .. ' ' .. lane) end
local function delivery_key(webhooks, run_id) return named_key(webhooks.delivery, run_id) end

-- `member` of `outer`, which was served just now, is looked at when the first of `inner` is due, and behind those that wait.
local function served(outer, member, inner)
  local first = redis.call('ZRANGE', inner, 0, 0, 'WITHSCORES')
  if #first == 0 then
    redis.call('ZREM', outer, member)
  else
    redis.call('ZADD', outer, whole(math.max(tonumber(first[2]), now_ms())), member)
  end
end

-- Who has more that is due keeps his place, which is behind those that waited when he was last served: neither what is new nor what became of an
-- attempt moves him to the front.
local function due_at(webhooks, tenant, lane, run_id, at)
  redis.call('ZADD', lane_key(webhooks, tenant, lane), whole(at), run_id)
  redis.call('ZADD', lanes_key(webhooks, tenant), 'LT', whole(at), lane)
  redis.call('ZADD', webhooks.tenants, 'LT', whole(at), tenant)
end

local function not_due(webhooks, tenant, lane, run_id)
  redis.call('ZREM', lane_key(webhooks, tenant, lane), run_id)
  if redis.call('EXISTS', lane_key(webhooks, tenant, lane)) == 0 then redis.call('ZREM', lanes_key(webhooks, tenant), lane) end
  if redis.call('EXISTS', lanes_key(webhooks, tenant)) == 0 then redis.call('ZREM', webhooks.tenants, tenant) end
end

local function forget_ended(webhooks, run_id, tenant)
  redis.call('ZREM', webhooks.expiring, run_id .. ' ' .. tenant)
  redis.call('ZREM', named_key(webhooks.ended, tenant), run_id)
end

-- With whatever is known of it; the caller knows that it is there.
local function drop_delivery(webhooks, run_id, delivery)
  if delivery.state == 'pending' then
    redis.call('HINCRBY', webhooks.tally, 'webhooks', -1)
    not_due(webhooks, delivery.tenant, delivery.lane, run_id)
  else
    forget_ended(webhooks, run_id, delivery.tenant)
  end
  redis.call('ZREM', named_key(webhooks.list, delivery.tenant), run_id)
  redis.call('DEL', delivery_key(webhooks, run_id))
end

local function add_delivery(webhooks, run_id, new)
  local key = delivery_key(webhooks, run_id)
  if redis.call('EXISTS', key) == 1 then return end
  local now = now_ms()
  redis.call('HSET', key, 'tenant', new.tenant, 'target', new.target, 'lane', new.lane, 'body', new.body, 'state', 'pending',
    'attempts', 0, 'tries', 0, 'taken', 0, 'settled', 0, 'created', whole(now), 'due', whole(now))
  redis.call('ZADD', named_key(webhooks.list, new.tenant), 0, run_id)
  redis.call('HINCRBY', webhooks.tally, 'webhooks', 1)
  due_at(webhooks, new.tenant, new.lane, run_id, now)
end
