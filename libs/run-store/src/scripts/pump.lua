-- Turns due runs into jobs, adds again what was lost of the runs that should have a job, and drops expired runs from the index.
-- KEYS  shard (6), queue
-- ARGV  1: limit per kind; 2: grace in ms; 3, 4: how the key of a run's ctl and of a tenant's index are spelt, * for the name
-- Reply pumped, woken, nudged
-- include: ctl
-- include: queue
-- include: shard-keys
-- include: jobs
-- include: named-key
local limit, now, job_keys = tonumber(ARGV[1]), now_ms(), keys_from(7)
local look_again = now + tonumber(ARGV[2])
local woken, nudged = 0, 0

for _, id in ipairs(redis.call('ZRANGEBYSCORE', shard.due, '-inf', now, 'LIMIT', 0, limit)) do
  local key = named_key(ARGV[3], id)
  local ctl = read_ctl(key)
  redis.call('ZREM', shard.due, id)
  if ctl and not has_ended(ctl) and ctl.job_live ~= '1' then
    redis.call('HSET', key, 'job_live', 1)
    redis.call('ZADD', shard.held, look_again, id)
    add_job(job_keys, 'turn', id, num(ctl, 'job_n'), urgency_of(ctl), num(ctl, 'priority'))
    woken = woken + 1
  end
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', shard.held, '-inf', now, 'LIMIT', 0, limit)) do
  local key = named_key(ARGV[3], id)
  local ctl = read_ctl(key)
  local kind = ctl and (has_ended(ctl) and 'finish' or ctl.job_live == '1' and 'turn')
  if not kind then
    redis.call('ZREM', shard.held, id)
  else
    redis.call('ZADD', shard.held, look_again, id)
    local n = kind == 'turn' and num(ctl, 'job_n') or 0
    if not has_job(job_keys, kind, id, n) then
      add_job(job_keys, kind, id, n, kind == 'turn' and urgency_of(ctl) or 'front', num(ctl, 'priority'))
      if kind == 'turn' then redis.call('HINCRBY', key, 'nudges', 1) end
      nudged = nudged + 1
    end
  end
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', shard.expiring, '-inf', now, 'LIMIT', 0, limit)) do
  local id, tenant = string.match(member, '^(%S+) (.*)$')
  redis.call('ZREM', named_key(ARGV[4], tenant), id)
  redis.call('ZREM', shard.expiring, member)
end
return { 'pumped', woken, nudged }
