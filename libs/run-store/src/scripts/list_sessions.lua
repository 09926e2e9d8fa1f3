-- A tenant's sessions of one shard, newest first; those that have been forgotten leave the index.
-- KEYS  1: sessions of the tenant
-- ARGV  1: before this id (empty: from the newest); 2: most ids; 3: how the key of a session is spelt
-- Reply page, the id looked at last (empty: there are no more), session ids…
-- include: named-key
local before = ARGV[1] == '' and '+' or '(' .. ARGV[1]
local ids = redis.call('ZREVRANGEBYLEX', KEYS[1], before, '-', 'LIMIT', 0, tonumber(ARGV[2]))
local reply = { 'page', #ids == tonumber(ARGV[2]) and ids[#ids] or '' }
for _, id in ipairs(ids) do
  if redis.call('EXISTS', named_key(ARGV[3], id)) == 1 then
    reply[#reply + 1] = id
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return reply
