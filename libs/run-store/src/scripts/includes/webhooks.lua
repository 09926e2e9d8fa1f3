-- What is to be told of ended runs; `webhooks` is what `webhooks` in keys.ts makes. Of a shard: `lanes` (zset: lane by when to look at it),
-- `expiring` (zset: "run tenant" by time), `tally`; and how the keys of a lane (zset: run by when it is due), of a delivery (hash), of a tenant's
-- list (zset by id) and of his ended ones (zset by end) are spelt. Needs ctl and named-key.

local function whole(number) return string.format('%.0f', number) end

local function lane_key(webhooks, lane) return named_key(webhooks.lane, lane) end
local function delivery_key(webhooks, run_id) return named_key(webhooks.delivery, run_id) end

-- The lane is looked at when its first delivery is due. With more that is due it keeps its place, which is behind those that waited when it was
-- last served (`served`: now): what becomes of an attempt moves it no further to the front.
local function look_at_lane(webhooks, lane, served)
  local first = redis.call('ZRANGE', lane_key(webhooks, lane), 0, 0, 'WITHSCORES')
  if #first == 0 then
    redis.call('ZREM', webhooks.lanes, lane)
    return
  end
  local place = served or math.min(now_ms(), tonumber(redis.call('ZSCORE', webhooks.lanes, lane) or 0))
  redis.call('ZADD', webhooks.lanes, whole(math.max(tonumber(first[2]), place)), lane)
end

local function due_at(webhooks, lane, run_id, at)
  redis.call('ZADD', lane_key(webhooks, lane), whole(at), run_id)
  look_at_lane(webhooks, lane)
end

local function not_due(webhooks, lane, run_id)
  redis.call('ZREM', lane_key(webhooks, lane), run_id)
  look_at_lane(webhooks, lane)
end

local function forget_ended(webhooks, run_id, tenant)
  redis.call('ZREM', webhooks.expiring, run_id .. ' ' .. tenant)
  redis.call('ZREM', named_key(webhooks.ended, tenant), run_id)
end

-- With whatever is known of it; the caller knows that it is there.
local function drop_delivery(webhooks, run_id, delivery)
  if delivery.state == 'pending' then
    redis.call('HINCRBY', webhooks.tally, 'webhooks', -1)
    not_due(webhooks, delivery.lane, run_id)
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
  due_at(webhooks, new.lane, run_id, now)
end
