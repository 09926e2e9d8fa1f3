-- A session as it stands: a run that has ended is not under way, whether or not its last duty is done.
-- KEYS  1: session
-- ARGV  1: how the key of a run's ctl is spelt
-- Reply session, tenant, current (empty: none), last (empty: none) | missing
-- include: ctl
-- include: named-key
-- include: session
local tenant, current, last = unpack(redis.call('HMGET', KEYS[1], 'tenant', 'current', 'last'))
if not tenant then return { 'missing' } end
if current and current ~= '' and not is_under_way(current, ARGV[1]) then
  last, current = current, ''
end
return { 'session', tenant, current or '', last or '' }
