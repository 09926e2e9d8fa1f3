-- The end of an archived run's time in the store: of all its keys, and of its place in the tenant's index (by the pump).
local function expire_at(run, shard, owner, at)
  for _, key in pairs(run) do redis.call('PEXPIREAT', key, string.format('%.0f', at)) end
  redis.call('ZADD', shard.expiring, at, owner.run_id .. ' ' .. owner.tenant)
end
