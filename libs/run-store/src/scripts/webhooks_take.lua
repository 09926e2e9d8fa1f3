-- Hands out deliveries that are due, lane by lane, and hides them for the lease; drops, a few at a time, what was kept long enough.
-- KEYS  lanes
-- ARGV  1: JSON { keys, limit, per_lane, busy, lease_ms, drops }
-- Reply taken, then for each: run id, which taking this is, tries, target, lane, body
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

local function hand_out(lane, run_id)
  local key = delivery_key(webhooks, run_id)
  local tries, target, body = unpack(redis.call('HMGET', key, 'tries', 'target', 'body'))
  if not body then
    redis.call('ZREM', lane_key(webhooks, lane), run_id)
    return
  end
  redis.call('ZADD', lane_key(webhooks, lane), whole(now + take.lease_ms), run_id)
  for _, part in ipairs({ run_id, redis.call('HINCRBY', key, 'taken', 1), tries, target, lane, body }) do reply[#reply + 1] = part end
  left = left - 1
end

-- Those that have no room here are passed over: no more of them than there are attempts under way.
local passed = 0
for _ in pairs(take.busy) do passed = passed + 1 end
for _, lane in ipairs(redis.call('ZRANGEBYSCORE', webhooks.lanes, '-inf', whole(now), 'LIMIT', 0, take.limit + passed)) do
  local room = math.min(left, take.per_lane - (take.busy[lane] or 0))
  if room > 0 then
    for _, run_id in ipairs(redis.call('ZRANGEBYSCORE', lane_key(webhooks, lane), '-inf', whole(now), 'LIMIT', 0, room)) do hand_out(lane, run_id) end
    look_at_lane(webhooks, lane, now)
  end
end
return reply
