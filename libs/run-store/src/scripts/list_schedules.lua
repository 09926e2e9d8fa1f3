-- A tenant's schedules of one shard, newest first.
-- KEYS  1: schedules of the tenant
-- ARGV  1: before this id (empty: from the newest); 2: most ids
-- Reply page, the id looked at last (empty: there are no more), schedule ids…
local before = ARGV[1] == '' and '+' or '(' .. ARGV[1]
local reply = redis.call('ZREVRANGEBYLEX', KEYS[1], before, '-', 'LIMIT', 0, tonumber(ARGV[2]))
local last = #reply == tonumber(ARGV[2]) and reply[#reply] or ''
table.insert(reply, 1, last)
table.insert(reply, 1, 'page')
return reply
