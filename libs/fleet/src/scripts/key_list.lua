-- API keys, newest first.
-- KEYS  1: keys; 2: ids (of all, or of a tenant)
-- ARGV  1: only those before this id (empty: from the newest); 2: how many
-- Reply keys, id where there are more (else empty), "created JSON" of each…
local most = tonumber(ARGV[2])
local ids = redis.call('ZREVRANGEBYLEX', KEYS[2], ARGV[1] == '' and '+' or '(' .. ARGV[1], '-', 'LIMIT', 0, most + 1)
local more = #ids > most and ids[most] or ''
if #ids > most then ids[#ids] = nil end
local reply = { 'keys', more }
for _, id in ipairs(ids) do reply[#reply + 1] = redis.call('HGET', KEYS[1], id) end
return reply
