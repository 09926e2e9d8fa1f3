-- A tenant's runs of one shard, newest first, at most `scan` of them looked at.
-- KEYS  index of the tenant
-- ARGV  1: JSON { before, limit, scan, live, status?, agent?, tag?, session? }; 2: how the key of a run's ctl is spelt
-- Reply page, the id looked at last (empty: there are no more), run ids…
-- include: ctl
-- include: named-key
local query = cjson.decode(ARGV[1])
local before = query.before and '(' .. query.before or '+'
local ids = redis.call('ZREVRANGEBYLEX', KEYS[1], before, '-', 'LIMIT', 0, query.scan)

local function matches(id)
  local ctl = redis.call('HMGET', named_key(ARGV[2], id), 'status', 'agent', 'tags', 'session')
  if not ctl[1] or (query.status and query.status ~= ctl[1]) or (query.agent and query.agent ~= ctl[2]) or (query.session and query.session ~= ctl[4]) then return false end
  if query.live and has_ended({ status = ctl[1] }) then return false end
  if not query.tag then return true end
  for _, tag in ipairs(cjson.decode(ctl[3])) do
    if tag == query.tag then return true end
  end
  return false
end

local reply = { 'page', '' }
for i, id in ipairs(ids) do
  if matches(id) then reply[#reply + 1] = id end
  local full = #reply - 2 == query.limit
  -- At the end of a whole scan there may be more; at the end of a shorter one there is not.
  if (full and i < #ids) or (i == #ids and #ids == query.scan) then reply[2] = id end
  if full then break end
end
return reply
