-- A tenant's deliveries of one shard, of the newest runs first, at most `scan` of them looked at; or the one of a run.
-- KEYS  list of the tenant
-- ARGV  1: JSON { before?, limit, scan, state?, run_id?, tenant }; 2: how the key of a delivery is spelt
-- Reply page, the id looked at last (empty: there are no more), then for each: run id, target, state, attempts, last attempt, status, error, next attempt, created
-- include: named-key
local query = cjson.decode(ARGV[1])
local ids = query.run_id and { query.run_id }
  or redis.call('ZREVRANGEBYLEX', KEYS[1], query.before and '(' .. query.before or '+', '-', 'LIMIT', 0, query.scan)
local reply, found = { 'page', '' }, 0
for i, id in ipairs(ids) do
  local fields = redis.call('HMGET', named_key(ARGV[2], id), 'tenant', 'target', 'state', 'attempts', 'last_at', 'last_status', 'last_error', 'due', 'created')
  if fields[1] == query.tenant and (not query.state or query.state == fields[3]) then
    found = found + 1
    reply[#reply + 1] = id
    for at = 2, 9 do reply[#reply + 1] = fields[at] or '' end
  end
  local full = found == query.limit
  -- At the end of a whole scan there may be more; at the end of a shorter one there is not.
  if (full and i < #ids) or (i == #ids and #ids == query.scan) then reply[2] = id end
  if full then break end
end
return reply
