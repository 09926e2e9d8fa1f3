-- What a tenant's runs of one shard have used, day by day.
-- KEYS  the sums of each day
-- Reply sums, then for each key its fields and values, flat (empty where nothing was counted)
local reply = { 'sums' }
for i, key in ipairs(KEYS) do reply[i + 1] = redis.call('HGETALL', key) end
return reply
