-- How many schedules a tenant has in one shard.
-- KEYS  1: schedules of the tenant
-- Reply count, number
return { 'count', redis.call('ZCARD', KEYS[1]) }
