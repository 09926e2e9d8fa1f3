-- A schedule as it stands, one that was removed included.
-- KEYS  1: schedule
-- Reply schedule, field, value… | missing
local flat = redis.call('HGETALL', KEYS[1])
if #flat == 0 then return { 'missing' } end
table.insert(flat, 1, 'schedule')
return flat
